// Streams of chunks: the same answer as the one that comes whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "api/test_scene.h"
#include "api/test_sse.h"

namespace headrace::api {
namespace {

/// The events of a stream as JSON; [DONE], if any, is the last and left out.
std::vector<Json> chunks_of(const std::string& bytes, bool is_done = true) {
  auto events = read_sse(bytes);
  EXPECT_FALSE(events.empty());
  if (is_done && !events.empty()) {
    EXPECT_EQ(events.back().data, "[DONE]");
    events.pop_back();
  }
  std::vector<Json> chunks;
  for (const SseEvent& event : events) chunks.push_back(Json::parse(event.data));
  return chunks;
}

struct ToTake {
  template <class Any>
  ToTake(size_t of, Any&& what) : prompt(of), event(std::forward<Any>(what)) {}

  size_t prompt;
  Event event;
};

/// The stream of `events`, told after each of them or after several.
std::string stream_of(const Scene& scene, const std::vector<ToTake>& events, std::mt19937* random) {
  const auto format = scene.format();
  Answer answer = scene.answer();
  std::string out;
  format->begin(out);
  for (const ToTake& next : events) {
    answer.take(next.prompt, next.event);
    if (random == nullptr || (*random)() % 3 == 0) format->more(answer, out);
  }
  EXPECT_FALSE(answer.has_failed());
  format->end(answer, out);
  return out;
}

std::vector<ToTake> hello(const Scene& scene, FinishReason reason = FinishReason::length) {
  std::vector<ToTake> events;
  for (const TokenId id : scene.byte_ids("hi\xC3\xA9")) events.emplace_back(0, token(id));
  events.emplace_back(0, finish(reason));
  return events;
}

TEST(Stream, OfAChat) {
  Scene scene;
  scene.path = kChat;
  scene.request.params.include_usage = true;
  scene.request.warnings = {"careful"};
  const auto chunks = chunks_of(stream_of(scene, hello(scene), nullptr));
  ASSERT_EQ(chunks.size(), 6u);
  for (const Json& chunk : chunks) {
    EXPECT_EQ(chunk["id"], "cmpl-1");
    EXPECT_EQ(chunk["object"], "chat.completion.chunk");
    EXPECT_EQ(chunk["created"], 5);
    EXPECT_EQ(chunk["model"], "tiny");
    EXPECT_EQ(chunk["system_fingerprint"], "test-1");
    EXPECT_TRUE(chunk.contains("usage"));
  }
  EXPECT_EQ(chunks[0]["choices"].dump(),
            R"([{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,)"
            R"("finish_reason":null}])");
  EXPECT_EQ(chunks[3]["choices"].dump(), R"([{"index":0,"delta":{"content":"é"},)"
                                         R"("logprobs":null,"finish_reason":null}])");
  EXPECT_TRUE(chunks[3]["usage"].is_null());
  EXPECT_FALSE(chunks[3].contains("timings"));
  EXPECT_EQ(chunks[4]["choices"].dump(), R"([{"index":0,"delta":{},"logprobs":null,)"
                                         R"("finish_reason":"length","stop_reason":null}])");
  EXPECT_EQ(chunks[4]["timings"]["cache_n"], 4);
  EXPECT_EQ(chunks[4]["warnings"].dump(), R"(["careful"])");
  EXPECT_EQ(chunks[5]["choices"], Json::array());
  EXPECT_EQ(chunks[5]["usage"]["completion_tokens"], 4);
  EXPECT_EQ(chunks[5]["usage"]["prompt_tokens_details"]["cached_tokens"], 4);
}

TEST(Stream, NoUsageUnlessAskedFor) {
  Scene scene;
  for (const std::string_view path : {kChat, kCompletions}) {
    scene.path = path;
    for (const Json& chunk : chunks_of(stream_of(scene, hello(scene), nullptr))) {
      EXPECT_FALSE(chunk.contains("usage"));
      EXPECT_EQ(chunk["choices"].size(), 1u);
    }
  }
}

TEST(Stream, EachChoiceEndsUnderItsOwnIndex) {
  for (const std::string_view path : {kChat, kCompletions}) {
    Scene scene;
    scene.path = path;
    scene.request.params.num_choices = 3;
    scene.request.params.include_usage = true;
    const auto letters = scene.byte_ids("abc");
    std::vector<ToTake> events;
    for (const int32_t i : {2, 0, 1}) events.emplace_back(0, token(letters[size_t(i)], i));
    events.emplace_back(0, finish(FinishReason::length, 1));
    events.emplace_back(0, finish(FinishReason::stop, 2));
    events.emplace_back(0, finish(FinishReason::length, 0));
    const auto chunks = chunks_of(stream_of(scene, events, nullptr));
    std::map<size_t, std::string> ends;
    std::map<size_t, std::string> texts;
    for (const Json& chunk : chunks) {
      for (const Json& choice : chunk["choices"]) {
        const auto i = choice["index"].get<size_t>();
        EXPECT_EQ(ends.count(i), 0u) << "nothing comes behind the end";
        if (!choice["finish_reason"].is_null()) ends[i] = choice["finish_reason"];
        if (path == kChat) {
          texts[i] += choice["delta"].value("content", "");
        } else {
          texts[i] += choice["text"].get<std::string>();
        }
      }
    }
    EXPECT_EQ(ends, (std::map<size_t, std::string>{{0, "length"}, {1, "length"}, {2, "stop"}}));
    EXPECT_EQ(texts, (std::map<size_t, std::string>{{0, "a"}, {1, "b"}, {2, "c"}}));
    EXPECT_EQ(std::count_if(chunks.begin(), chunks.end(),
                            [](const Json& chunk) {
                              return chunk["usage"].is_object() && chunk["choices"].empty();
                            }),
              1);
  }
}

TEST(Stream, AFailureIsAnErrorEventWithoutADone) {
  Scene scene;
  for (const Protocol& protocol : protocols()) {
    scene.path = protocol.path;
    scene.request.repeated = std::make_shared<const Json>(
        parsed(R"({"prompts":[""],"metadata":{},"instructions":null})"));
    const auto format = scene.format();
    Answer answer = scene.answer();
    std::string out;
    format->begin(out);
    answer.take(0, token(scene.ids("he")[0]));
    format->more(answer, out);
    format->failed(api_error({ErrorCode::deadline_exceeded, "too late", "timeout_ms", ""}), out);
    EXPECT_EQ(out.find("[DONE]"), std::string::npos);
    const auto events = read_sse(out);
    const auto error = std::find_if(events.begin(), events.end(),
                                    [](const SseEvent& event) { return event.name == "error"; });
    ASSERT_NE(error, events.end()) << protocol.path;
    EXPECT_NE(error->data.find("too late"), std::string::npos);
  }
}

TEST(Stream, AnEchoComesFirstAndOnce) {
  Scene scene;
  scene.request.requests.resize(2);
  scene.request.echoes = {"one ", "two "};
  scene.request.goes_on = true;
  std::vector<ToTake> events;
  for (const TokenId id : scene.byte_ids("ab")) events.emplace_back(1, token(id));
  events.emplace_back(0, finish(FinishReason::length));
  events.emplace_back(1, finish(FinishReason::length));
  std::map<size_t, std::vector<std::string>> texts;
  for (const Json& chunk : chunks_of(stream_of(scene, events, nullptr))) {
    for (const Json& choice : chunk["choices"]) {
      texts[choice["index"]].push_back(choice["text"]);
    }
  }
  EXPECT_EQ(texts[0], (std::vector<std::string>{"one ", ""}));
  EXPECT_EQ(texts[1], (std::vector<std::string>{"two a", "b", ""}));
}

/// What a client puts together of one choice.
struct Joined {
  std::string text;
  std::string end;
  Json stop_reason;
  Json tokens = Json::array();
  Json offsets = Json::array();
  bool operator==(const Joined&) const = default;
};

void join(const Json& choice, bool is_chat, bool is_chunk, Joined& to) {
  const Json none = Json::object();
  if (is_chat) {
    to.text += choice[is_chunk ? "delta" : "message"].value("content", "");
  } else {
    to.text += choice["text"].get<std::string>();
  }
  if (!choice["finish_reason"].is_null()) {
    to.end = choice["finish_reason"];
    to.stop_reason = choice["stop_reason"];
  }
  if (choice["logprobs"].is_null()) return;
  for (const Json& token : choice["logprobs"][is_chat ? "content" : "tokens"]) {
    to.tokens.push_back(token);
  }
  if (is_chat) return;
  for (const Json& offset : choice["logprobs"]["text_offset"]) to.offsets.push_back(offset);
  for (const Json& number : choice["logprobs"]["token_logprobs"]) to.tokens.push_back(number);
}

/// Tokens for all choices in a random order, with a stop string now and then.
std::vector<ToTake> random_events(const Scene& scene, std::mt19937& random) {
  const std::string text = "he hel \xC3\xA9 llo \xF0\x9F\x98\x8A! hhe o hello";
  std::vector<ToTake> events;
  const size_t num_prompts = scene.request.requests.size();
  const auto num_choices = static_cast<size_t>(scene.request.params.num_choices);
  std::vector<std::vector<ToTake>> queues;
  for (size_t i = 0; i < num_prompts * num_choices; ++i) {
    const size_t from = random() % text.size();
    const std::string part = text.substr(from, random() % 24);
    auto ids = random() % 2 == 0 ? scene.ids(part) : scene.byte_ids(part);
    if (random() % 4 == 0) ids.insert(ids.begin(), scene.ids("<|im_end|>")[0]);
    auto& queue = queues.emplace_back();
    const auto choice = static_cast<int32_t>(i % num_choices);
    for (const TokenId id : ids) {
      queue.emplace_back(i / num_choices,
                         token(id, choice, -0.25F * float(random() % 9), {{5, -1}}));
    }
    queue.emplace_back(i / num_choices, finish(FinishReason::length, choice));
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < queues.size(); ++i) order.insert(order.end(), queues[i].size(), i);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<size_t> next(queues.size(), 0);
  for (const size_t i : order) events.push_back(queues[i][next[i]++]);
  return events;
}

TEST(Stream, DeltasJoinToTheWhole) {
  std::mt19937 random(11);
  for (int round = 0; round < 600; ++round) {
    Scene scene;
    const bool is_chat = round % 2 == 0;
    scene.path = is_chat ? kChat : kCompletions;
    scene.request.params.num_choices = 1 + static_cast<int32_t>(random() % 3);
    scene.request.params.num_logprobs = static_cast<int32_t>(random() % 3) - 1;
    scene.request.params.include_usage = random() % 2 == 0;
    if (!is_chat && random() % 2 == 0) {
      scene.request.requests.resize(2);
      scene.request.echoes = {"a\xC3\xA9", ""};
    }
    if (random() % 3 != 0)
      scene.request.params.stop_strings = {"hell", "o h", "\xF0\x9F\x98\x8A!", "\xC3\xA9 l"};
    if (random() % 4 == 0) scene.request.params.stop.min_tokens = 3;
    const auto events = random_events(scene, random);

    Answer answer = scene.answer();
    for (const ToTake& next : events) answer.take(next.prompt, next.event);
    const Json whole = Json::parse(scene.whole(answer));
    std::vector<Joined> wanted(answer.choices().size());
    for (const Json& choice : whole["choices"])
      join(choice, is_chat, false, wanted[choice["index"]]);

    std::vector<Joined> joined(wanted.size());
    Json usage;
    for (const Json& chunk : chunks_of(stream_of(scene, events, &random))) {
      for (const Json& choice : chunk["choices"]) {
        join(choice, is_chat, true, joined[choice["index"]]);
      }
      if (chunk.contains("usage") && !chunk["usage"].is_null()) usage = chunk["usage"];
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(joined[i].text, wanted[i].text) << round;
      EXPECT_EQ(joined[i].end, wanted[i].end) << round;
      EXPECT_EQ(joined[i].stop_reason, wanted[i].stop_reason) << round;
      EXPECT_EQ(joined[i].offsets, wanted[i].offsets) << round;
      auto sorted = [](const Json& list) {
        auto out = list.get<std::vector<Json>>();
        std::stable_partition(out.begin(), out.end(), [](const Json& e) { return e.is_string(); });
        return out;
      };
      EXPECT_EQ(sorted(joined[i].tokens), sorted(wanted[i].tokens)) << round;
    }
    EXPECT_EQ(usage.is_null(), !scene.request.params.include_usage);
    if (!usage.is_null()) {
      EXPECT_EQ(usage, whole["usage"]);
    }
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace headrace::api
