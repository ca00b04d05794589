// See chat_prompt.h.
#include "cli/chat_prompt.h"

#include "api/chat_prompt.h"
#include "base/check.h"
#include "base/clock.h"

namespace headrace::cli {

Result<std::vector<TokenId>> chat_prompt_ids(const OpenedModel& model,
                                             const nlohmann::ordered_json& messages,
                                             bool parse_special) {
  HEADRACE_CHECK(model.chat_template.has_value());
  return api::chat_prompt_ids(
      *model.chat_template, *model.tokenizer, messages,
      {.now_unix_seconds = SystemClock().unix_seconds(), .parses_special = parse_special});
}

}  // namespace headrace::cli
