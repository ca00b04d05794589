#include "text/chat_template/chat_template.h"

#include <new>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "text/chat_template/interpreter.h"
#include "text/chat_template/json.h"
#include "text/chat_template/parser.h"

namespace headrace {

namespace {

using jinja::Budget;
using jinja::Entries;
using jinja::Fault;
using jinja::Kind;
using jinja::Text;
using jinja::Value;

Error to_error(const Fault& fault, int line) {
  Error error;
  error.code = fault.code;
  error.message = fault.message;
  if (fault.own_words) {
    error.where = "chat template";
    error.hint = "the chat template refused the conversation";
    return error;
  }
  if (fault.line > 0) line = fault.line;
  error.where = line > 0 ? "chat template line " + std::to_string(line) : "chat template";
  return error;
}

Error out_of_memory() {
  return {ErrorCode::resource_exhausted, "out of memory", "chat template", ""};
}

Value string_value(const std::string& text) {
  return Value(Kind::string, std::make_shared<jinja::String>(Text(text, true), nullptr));
}

Entries make_context(Budget& budget, const TemplateInput& input,
                     const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                     const nlohmann::ordered_json& documents, const nlohmann::ordered_json& extra) {
  Entries context;
  const auto set = [&](const char* name, Value value) {
    context.set(string_value(name), std::move(value));
  };
  jinja::add_globals(context);
  set("bos_token", string_value(input.bos_token));
  set("eos_token", string_value(input.eos_token));
  set("pad_token", string_value(input.pad_token));
  set("unk_token", string_value(input.unk_token));
  set("add_generation_prompt", Value::boolean(input.add_generation_prompt));
  if (extra.is_object()) {
    for (const auto& [key, value] : extra.items()) {
      set(key.c_str(), jinja::from_json(budget, value));
    }
  } else if (!extra.is_null()) {
    jinja::fail("extra variables: expected an object, found " + std::string(extra.type_name()));
  }
  set("messages", jinja::from_json(budget, messages));
  set("tools", jinja::from_json(budget, tools));
  set("documents", jinja::from_json(budget, documents));
  return context;
}

std::vector<TextSegment> to_segments(const Text& text) {
  std::vector<TextSegment> segments;
  text.for_each_run(0, text.size(), [&](size_t begin, size_t end, bool trusted) {
    segments.push_back({text.bytes().substr(begin, end - begin), trusted});
  });
  return segments;
}

}  // namespace

TemplateInput template_input(const Tokenizer& tokenizer) {
  const SpecialTokens& special = tokenizer.special();
  const auto spelling = [&](TokenId id) {
    return id >= 0 && id < tokenizer.vocab_size() ? std::string(tokenizer.piece(id))
                                                  : std::string();
  };
  TemplateInput input;
  input.bos_token = spelling(special.bos);
  input.eos_token = spelling(special.eos);
  input.pad_token = spelling(special.pad);
  input.unk_token = spelling(special.unk);
  return input;
}

struct ChatTemplate::Impl {
  jinja::Body body;
  TemplateLimits limits;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const TemplateLimits& limits) {
  constexpr size_t kMaxSource = 16 << 20;
  if (source.size() > kMaxSource) {
    return Error{ErrorCode::resource_exhausted, "the template is larger than 16 MiB",
                 "chat template", ""};
  }
  try {
    auto impl = std::make_unique<Impl>();
    impl->limits = limits;
    impl->body = jinja::parse_template(source, limits.max_depth);
    return ChatTemplate(std::move(impl));
  } catch (const Fault& fault) {
    return to_error(fault, 0);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

Result<std::vector<TextSegment>> ChatTemplate::render(const TemplateInput& input,
                                                      const nlohmann::ordered_json& messages,
                                                      const nlohmann::ordered_json& tools,
                                                      const nlohmann::ordered_json& documents,
                                                      const nlohmann::ordered_json& extra) const {
  HEADRACE_CHECK(impl_ != nullptr);
  const auto& limits = impl_->limits;
  Budget budget(limits.max_steps, limits.max_output_bytes, limits.max_depth);
  int line = 0;
  try {
    auto context = make_context(budget, input, messages, tools, documents, extra);
    jinja::Interpreter interpreter(budget, input.now_unix_seconds, std::move(context));
    try {
      return to_segments(interpreter.run(impl_->body));
    } catch (const Fault&) {
      line = interpreter.line();
      throw;
    }
  } catch (const Fault& fault) {
    return to_error(fault, line);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {
    return out_of_memory();
  }
}

}  // namespace headrace
