// Chat templates: Jinja source and a conversation in, prompt segments out. Must not know
// tokenizers' files, tensors or the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"
#include "text/tokenizer.h"

namespace headrace {

/// Limits on one rendering; a template past one of them gets an Error, never a hang.
struct TemplateLimits {
  /// Evaluated nodes and loop turns; work on long strings and lists counts in proportion.
  int64_t max_steps = 20'000'000;
  /// Of any one string; all values together may take four times as much and 16 MiB.
  int64_t max_output_bytes = 64 * 1024 * 1024;
  /// Nested blocks and expressions of the source, nested containers of a value; the evaluation may
  /// nest four times as deep (a macro's call takes a few levels). 256 needs less than 4 MiB of
  /// stack.
  int32_t max_depth = 256;
};

/// What a template is rendered with. Strings inside `messages`, `tools` and `documents` are
/// untrusted; the variables below and the template's own text are trusted.
struct TemplateInput {
  std::string bos_token;
  std::string eos_token;
  std::string pad_token;
  std::string unk_token;
  bool add_generation_prompt = true;
  int64_t now_unix_seconds = 0;  ///< for strftime_now, in UTC
};

/// With the tokenizer's special tokens: what its file calls the end of a text, and so on.
TemplateInput template_input(const Tokenizer& tokenizer);

/// A parsed template. Safe to render from several threads at once.
///
/// The language is Jinja 3.1 in its immutable sandbox, with the settings and additions of
/// transformers: trim_blocks, lstrip_blocks, loop controls, generation blocks, plain-JSON tojson,
/// raise_exception, strftime_now. It differs where that cannot matter to a prompt: integers have 64
/// bits and overflow is an error; generators run when they are made; special tokens that a model
/// lacks are empty strings; include, import, extends, autoescape and the filters random and
/// urlize are unsupported.
class ChatTemplate {
 public:
  /// Errors: invalid_argument with line and what was expected; unsupported constructs by name.
  static Result<ChatTemplate> parse(std::string_view source, const TemplateLimits& limits = {});

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  /// `messages`: array of objects. `tools`, `documents`: null where absent. `extra`: an object of
  /// further variables (chat_template_kwargs), or null. Neighbouring segments of equal trust are
  /// merged; joined they are the prompt. Errors: what raise_exception said (invalid_argument);
  /// undefined attribute and type errors with the line; limits (resource_exhausted).
  Result<std::vector<TextSegment>> render(const TemplateInput& input,
                                          const nlohmann::ordered_json& messages,
                                          const nlohmann::ordered_json& tools,
                                          const nlohmann::ordered_json& documents,
                                          const nlohmann::ordered_json& extra) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
