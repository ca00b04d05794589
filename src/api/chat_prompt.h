// From messages to a prompt: the chat template's output and its token ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "headrace/result.h"
#include "text/chat_template/chat_template.h"
#include "text/tokenizer.h"

namespace headrace::api {

struct ChatPromptOptions {
  int64_t now_unix_seconds = 0;  ///< for templates that write the date
  bool adds_generation_prompt = true;
  /// The prompt ends within the last message, behind its content, so that the answer goes on there.
  bool continues_last_message = false;
  /// Control tokens are looked for in messages too.
  bool parses_special = false;
  const Json* variables = nullptr;  ///< an object of further variables of the template, or null
};

/// {"role": role, "content": content}.
Json chat_message(std::string_view role, std::string_view content);

/// The segments of the prompt. Errors: the template's own words (invalid_argument), its limits;
/// unsupported, where the template leaves out or changes a message that is to be continued.
Result<std::vector<TextSegment>> render_chat(const ChatTemplate& chat_template,
                                             const Tokenizer& tokenizer, const Json& messages,
                                             const ChatPromptOptions& options);

/// render_chat(), tokenised. The template's own control tokens become ids, those typed by a user
/// stay text. Errors: those of render_chat(), and of Tokenizer::encode.
Result<std::vector<TokenId>> chat_prompt_ids(const ChatTemplate& chat_template,
                                             const Tokenizer& tokenizer, const Json& messages,
                                             const ChatPromptOptions& options);

}  // namespace headrace::api
