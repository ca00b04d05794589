// Bodies of requests of all protocols, and lines of batch files: whatever they hold, what comes is
// a prepared request within the limits, or an error that can be sent. The bytes behind a 0 are then
// the tokens of the answer, which is written whole and streamed, and read again: both have one
// text, and nothing of a stop string is in it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/answer.h"
#include "api/batch_line.h"
#include "api/error_json.h"
#include "api/json_body.h"
#include "api/protocol.h"
#include "api/sse.h"
#include "api/test_sse.h"
#include "api/text_tools.h"
#include "text/test_vocabulary.h"
#include "text/unicode.h"

namespace {

using namespace headrace;
using api::Json;

void check(bool holds) {
  if (!holds) std::abort();
}

class FixedClock final : public Clock {
 public:
  int64_t now_ns() const override { return 0; }
  int64_t unix_seconds() const override { return 1768469400; }
};

/// The last of the file's limits are small, so that each of them is met.
struct Scene {
  Scene() {
    constexpr std::string_view kSource =
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' }}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>' }}{% endif %}"
        "{{ enable_thinking }}{{ date_string }}";
    TemplateLimits template_limits;
    template_limits.max_steps = 20'000;
    template_limits.max_output_bytes = 64 * 1024;
    chat_template.emplace(std::move(ChatTemplate::parse(kSource, template_limits)).value());
    model.name = "tiny";
    model.fingerprint = "fuzz-1";
    model.tokenizer = text::byte_level_example().build();
    model.chat_template = &*chat_template;
    model.vocab_size = model.tokenizer->vocab_size();
    model.answers_any_name = true;
    model.limits.max_values = 2'000;
    model.limits.max_object_keys = 100;
    model.limits.max_messages = 8;
    model.limits.max_prompts = 8;
    model.limits.max_choices = 12;
    model.limits.max_stop_strings = 4;
    model.limits.max_stop_token_ids = 8;
    model.limits.max_name_bytes = 40;
  }
  std::optional<ChatTemplate> chat_template;
  api::ServedModel model;
};

void check_error(const Error& error) {
  check(!error.message.empty());
  const api::ApiError sent = api::api_error(error);
  check(sent.status >= 400 && sent.status < 500);
  for (const api::Protocol& protocol : api::protocols()) {
    const Json body = Json::parse(protocol.error_body(sent));
    check(!body["error"]["message"].get<std::string>().empty());
  }
}

template <class T>
std::shared_ptr<const T> unowned(const T& value) {
  return {std::shared_ptr<const T>(), &value};
}

/// Appends what an event of a stream has of each choice's text.
void add_texts(const Json& event, std::vector<std::string>& texts) {
  if (event.contains("choices")) {
    for (const Json& choice : event["choices"]) {
      std::string& text = texts.at(choice["index"].get<size_t>());
      text += choice.contains("delta") ? choice["delta"].value("content", "")
                                       : choice["text"].get<std::string>();
    }
  } else if (event.value("type", "") == "response.output_text.delta") {
    texts.at(0) += event["delta"].get<std::string>();
  } else if (event.value("type", "") == "content_block_delta") {
    texts.at(0) += event["delta"]["text"].get<std::string>();
  } else if (event.contains("content")) {
    texts.at(event["index"].get<size_t>()) += event["content"].get<std::string>();
  }
}

void check_stream(const std::string& bytes, const api::PreparedRequest& request,
                  const api::Answer& answer) {
  check(text::replace_invalid(bytes) == bytes);
  std::vector<std::string> texts(answer.choices().size());
  for (const api::SseEvent& event : api::read_sse(bytes)) {
    if (event.data != "[DONE]") add_texts(Json::parse(event.data), texts);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string echo = request.echoes.empty() ? "" : request.echoes[answer.prompt_of(i)];
    check(texts[i] == text::replace_invalid(echo) + answer.choices()[i].text);
  }
}

/// Takes the events of an answer whose tokens are `tokens`; calls `tell` after some of them.
template <class Tell>
void take_all(const api::PreparedRequest& request, std::string_view tokens, api::Answer& answer,
              const Tell& tell) {
  for (size_t prompt = 0; prompt < request.requests.size(); ++prompt) {
    const int32_t num_choices = request.requests[prompt].num_choices;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto byte = static_cast<uint8_t>(tokens[i]);
      answer.take(prompt, TokenEvent{.id = static_cast<TokenId>((byte * 7 + i) % 266),
                                     .logprob = static_cast<float>(byte) / -8,
                                     .top = {{5, -1}, {200, -2}},
                                     .choice = static_cast<int32_t>(i) % num_choices});
      if (byte % 3 == 0) tell();
    }
    for (int32_t choice = 0; choice < num_choices; ++choice) {
      const bool cancelled = answer.choices()[prompt * size_t(num_choices) + size_t(choice)].end ==
                             api::ChoiceEnd::running;
      FinishEvent finish;
      finish.reason = cancelled ? FinishReason::length : FinishReason::stop;
      finish.choice = choice;
      answer.take(prompt, finish);
      tell();
    }
  }
}

void check_answer(const Scene& scene, const api::Protocol& protocol,
                  const api::PreparedRequest& request, std::string_view tokens) {
  const auto make_format = [&] {
    return protocol.make_format({"id", 1}, unowned(request), unowned(scene.model));
  };
  api::Answer answer(request, scene.model.tokenizer);
  const auto format = make_format();
  std::string stream;
  format->begin(stream);
  take_all(request, tokens, answer, [&] { format->more(answer, stream); });
  check(!answer.has_failed());
  format->end(answer, stream);
  check_stream(stream, request, answer);
  const std::string body = make_format()->whole(answer);
  check(text::replace_invalid(body) == body);
  const Json whole = Json::parse(body);
  if (whole.contains("choices")) check(whole["choices"].size() == answer.choices().size());
  if (request.params.stop.min_tokens > 0) return;
  for (const api::Choice& choice : answer.choices()) {
    check(text::replace_invalid(choice.text) == choice.text);
    for (const std::string& stop : request.params.stop_strings) {
      check(choice.text.find(stop) == std::string::npos);
    }
  }
}

/// Whatever is written comes back, but that the three line ends are one.
void check_sse(std::string_view text) {
  std::string bytes;
  api::append_sse(bytes, text.substr(0, 5), text);
  api::append_sse_comment(bytes);
  api::append_sse(bytes, "", "next");
  const auto events = api::read_sse(bytes);
  check(events.size() == 2 && events[1].data == "next" && events[1].name.empty());
  std::string wanted;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    wanted += text[i] == '\r' ? '\n' : text[i];
  }
  check(events[0].data == wanted);
}

void check_tool(const Result<Json>& result) {
  if (result.ok()) {
    const std::string text = result->dump();  // throws where it is not UTF-8
    check(!text.empty());
  } else {
    check_error(result.error());
  }
}

void check_tool(const Result<std::string>& result) {
  if (!result.ok()) return check_error(result.error());
  check(Json::accept(*result));
}

void check_tools(const Json& body, const api::ServedModel& model) {
  check_tool(api::tokenize(body, model, FixedClock()));
  check_tool(api::detokenize(body, model));
  check_tool(api::apply_template(body, model, FixedClock()));
  check_tool(api::count_tokens(body, model, FixedClock()));
}

/// The same body as a request for vectors and for a ranking.
void check_vectors(const Json& body, const Scene& scene) {
  api::ServedModel model = scene.model;
  model.embedding_length = 2;
  model.num_classes = 1;
  for (const api::Protocol& protocol : api::vector_protocols()) {
    const auto request = protocol.prepare(body, model, FixedClock());
    if (!request.ok()) {
      check_error(request.error());
      continue;
    }
    check(!request->requests.empty() && request->requests.size() <= model.limits.max_inputs);
    api::Answer answer(*request, model.tokenizer);
    for (size_t i = 0; i < request->requests.size(); ++i) {
      for (const TokenId id : request->requests[i].prompt) check(id >= 0 && id < model.vocab_size);
      answer.take(i, EmbeddingEvent{{0.5F, -0.25F}});
      answer.take(i, FinishEvent{});
    }
    check(!answer.has_failed());
    const auto format = protocol.make_format({"id", 1}, unowned(*request), unowned(model));
    check(Json::accept(format->whole(answer)));
  }
}

void check_limits(const api::PreparedRequest& request, const api::ServedModel& model) {
  check(!request.requests.empty() && request.requests.size() <= model.limits.max_prompts);
  for (const Request& part : request.requests) {
    check(part.num_choices >= 1 && part.num_choices <= model.limits.max_choices);
    check(part.num_logprobs >= -1 && part.num_logprobs <= model.limits.max_logprobs);
    check(validate(part.sampling, part.stop, model.vocab_size).ok());
    for (const TokenId id : part.prompt) check(id >= 0 && id < model.vocab_size);
  }
  for (const std::string& warning : request.warnings) check(warning.size() < 400);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Scene scene;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t zero = input.find('\0');
  const std::string_view text = input.substr(0, zero);
  const std::string_view tokens =
      zero == std::string_view::npos ? std::string_view() : input.substr(zero + 1);

  check_sse(input);
  const api::Protocol* protocol =
      api::protocol_at((data[0] & 1) != 0 ? "/v1/chat/completions" : "/v1/completions");
  if (const size_t other = data[0] >> 3; other > 0) {
    protocol = &api::protocols()[other % api::protocols().size()];
  }
  Json body;
  if ((data[0] & 2) != 0) {
    const api::BatchLine line =
        api::parse_batch_line(text, 3, (data[0] & 4) != 0, scene.model.limits);
    const std::string written = line.error ? api::batch_failure(line, api::api_error(*line.error))
                                           : api::batch_success(line, "{}");
    const auto again = api::read_batch_answer(written);
    check(again.ok() && again->key == line.key && again->custom_id == line.custom_id);
    if (line.error) {
      check_error(*line.error);
      return 0;
    }
    protocol = line.protocol;
    body = *line.body;
  } else if (const auto read = api::parse_body(text, scene.model.limits, body); !read.ok()) {
    check_error(read.error());
    return 0;
  }
  check_tools(body, scene.model);
  check_vectors(body, scene);
  if (!protocol->generates) return 0;
  const auto request = protocol->prepare(body, scene.model, FixedClock());
  if (!request.ok()) {
    check_error(request.error());
    return 0;
  }
  check_limits(*request, scene.model);
  check_answer(scene, *protocol, *request, tokens);
  return 0;
}
