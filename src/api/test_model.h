// A served model for tests: a small vocabulary, ChatML, no weights.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/json_body.h"
#include "api/params_json.h"
#include "api/served_model.h"
#include "text/test_vocabulary.h"

namespace headrace::api {

inline constexpr const char* kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] | trim + "
    "'<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

struct TestModel {
  ChatTemplate chat_template;
  ServedModel model;
};

inline std::unique_ptr<TestModel> make_test_model(const std::string& source = kChatMl) {
  auto parsed = ChatTemplate::parse(source);
  EXPECT_TRUE(parsed.ok());
  auto made = std::make_unique<TestModel>(TestModel{std::move(parsed).value(), {}});
  made->model.name = "tiny";
  made->model.fingerprint = "test-1";
  made->model.tokenizer = text::byte_level_example().build();
  made->model.chat_template = &made->chat_template;
  made->model.vocab_size = made->model.tokenizer->vocab_size();
  made->model.sampling.temperature = 0.5F;
  return made;
}

/// JSON that must be good.
inline Json parsed(std::string_view text) {
  Json out;
  const auto read = parse_body(text, RequestLimits{}, out);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().to_string()) << " in " << text;
  return out;
}

inline ParamsContext test_context() {
  ParamsContext context;
  context.vocab_size = 266;
  context.sampling.temperature = 0.5F;
  return context;
}

}  // namespace headrace::api
