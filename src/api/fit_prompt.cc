// See fit_prompt.h.
#include "api/fit_prompt.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "api/prepare_parts.h"

namespace headrace::api {
namespace {

/// Of the prompts of one request; the last says that there are more.
constexpr size_t kMaxCutWarnings = 8;
/// The tokens at the begin of a text that was cut may be others than in the whole.
constexpr int64_t kMoreTokens = 16;

void warn_of_cut(const GenerationParams& params, std::string_view what, const std::string& text,
                 std::vector<std::string>& warnings) {
  const std::string name = std::string(params.truncation_name) + ": ";
  const auto num = static_cast<size_t>(
      std::count_if(warnings.begin(), warnings.end(),
                    [&](const std::string& each) { return each.starts_with(name); }));
  if (num > kMaxCutWarnings) return;
  if (num == kMaxCutWarnings) {
    warnings.push_back(name + "more prompts of this request were cut in the same way");
    return;
  }
  warnings.push_back(name + (what.empty() ? "" : std::string(what) + ": ") + text);
}

/// A conversation without some of its messages, as a prompt.
struct Rendered {
  size_t num_bytes = 0;
  bool is_counted = false;  ///< else it has more tokens than are allowed, for its bytes alone
  std::vector<TokenId> ids;

  bool fits(int64_t most) const { return is_counted && static_cast<int64_t>(ids.size()) <= most; }
  std::string size_text() const {
    return is_counted ? std::to_string(ids.size()) + " tokens"
                      : std::to_string(num_bytes) + " bytes";
  }
};

Result<Rendered> render(const ServedModel& model, const Json& messages,
                        const ChatPromptOptions& options, const std::string& field, int64_t most) {
  HEADRACE_ASSIGN(const auto segments, chat_segments(model, messages, options, field));
  Rendered out;
  for (const TextSegment& each : segments) out.num_bytes += each.text.size();
  if (model.longest_token_bytes > 0 &&
      static_cast<int64_t>(out.num_bytes) / model.longest_token_bytes > most) {
    return out;
  }
  HEADRACE_ASSIGN(out.ids, model.tokenizer->encode(std::span<const TextSegment>(segments), true));
  out.is_counted = true;
  return out;
}

/// The messages to go on with, without any before them but the system's.
std::vector<size_t> turns_of_users(const Json& messages, size_t num_system) {
  std::vector<size_t> out;
  for (size_t i = num_system; i < messages.size(); ++i) {
    if (i > num_system && messages[i].value("role", "") == "user") out.push_back(i);
  }
  return out;
}

Json without_middle(const Json& messages, size_t num_system, size_t from) {
  Json out = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    if (i < num_system || i >= from) out.push_back(messages[i]);
  }
  return out;
}

Error too_long(const GenerationParams& params, const Rendered& least, int64_t most,
               const std::string& field) {
  return {ErrorCode::context_length_exceeded,
          "the system message and the last message of a user have " + least.size_text() + ", and " +
              std::string(params.truncation_name) + " leaves room for " + std::to_string(most) +
              " tokens of prompt",
          field, "shorten them, or open the model with a larger context"};
}

}  // namespace

std::optional<int64_t> most_prompt_tokens(const ServedModel& model,
                                          const GenerationParams& params) {
  if (params.truncate_prompt_tokens > 0) return params.truncate_prompt_tokens;
  if (params.truncate_prompt_tokens == 0 || model.max_context <= 0) return std::nullopt;
  const int64_t quarter = std::max<int64_t>(model.max_context / 4, 1);
  const int64_t wanted = params.stop.max_tokens;
  int64_t answer = quarter;
  if (wanted >= 0) answer = params.has_max_tokens ? wanted : std::min(wanted, quarter);
  // An answer that fills the context is for the engine to refuse.
  if (answer >= model.max_context) return std::nullopt;
  return model.max_context - answer;
}

std::string_view end_of_text(const ServedModel& model, std::string_view text, int64_t num_tokens) {
  if (model.longest_token_bytes <= 0) return text;
  const int64_t most = static_cast<int64_t>(text.size()) / model.longest_token_bytes;
  if (num_tokens > most - kMoreTokens) return text;
  const auto num_bytes =
      static_cast<size_t>((num_tokens + kMoreTokens) * model.longest_token_bytes);
  text.remove_prefix(text.size() - num_bytes);
  const auto is_within = [](char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; };
  for (int i = 0; i < 3 && !text.empty() && is_within(text.front()); ++i) text.remove_prefix(1);
  return text;
}

void cut_prompt(const ServedModel& model, const GenerationParams& params, bool keeps_bos,
                size_t num_bytes, std::string_view what, std::vector<TokenId>& ids,
                std::vector<std::string>& warnings) {
  const auto most = most_prompt_tokens(model, params);
  const auto num_tokens = static_cast<int64_t>(ids.size());
  if (!most || (num_tokens <= *most && num_bytes == 0)) return;
  const TokenId bos = model.tokenizer->special().bos;
  const bool has_bos = keeps_bos && bos >= 0 && !ids.empty() && ids.front() == bos && *most > 1;
  if (num_tokens > *most) {
    ids.erase(ids.begin() + (has_bos ? 1 : 0), ids.end() - (*most - (has_bos ? 1 : 0)));
  }
  const std::string whole = num_bytes > 0 ? "a prompt of " + std::to_string(num_bytes) + " bytes"
                                          : std::to_string(num_tokens) + " prompt tokens";
  warn_of_cut(params, what,
              "the last " + std::to_string(ids.size()) + " tokens were kept of " + whole, warnings);
}

Result<std::vector<TokenId>> fitting_chat_ids(const ServedModel& model, const Json& messages,
                                              const ChatPromptOptions& options,
                                              const std::string& field, PreparedRequest& out) {
  const auto most = most_prompt_tokens(model, out.params);
  if (!most) return chat_ids(model, messages, options, field);
  HEADRACE_ASSIGN(Rendered whole, render(model, messages, options, field, *most));
  if (whole.fits(*most)) return std::move(whole.ids);
  const size_t num_system = !messages.empty() && messages[0].value("role", "") == "system" ? 1 : 0;
  const std::vector<size_t> turns = turns_of_users(messages, num_system);
  if (turns.empty()) return too_long(out.params, whole, *most, field);
  // The first turn from which on all fits; what begins with the last one must.
  size_t first = 0;
  size_t last = turns.size() - 1;
  const auto from = [&](size_t turn) {
    return render(model, without_middle(messages, num_system, turns[turn]), options, field, *most);
  };
  HEADRACE_ASSIGN(Rendered kept, from(last));
  if (!kept.fits(*most)) return too_long(out.params, kept, *most, field);
  while (first < last) {
    const size_t middle = first + (last - first) / 2;
    HEADRACE_ASSIGN(Rendered longer, from(middle));
    if (longer.fits(*most)) {
      kept = std::move(longer);
      last = middle;
    } else {
      first = middle + 1;
    }
  }
  warn_of_cut(out.params, "",
              std::to_string(turns[last] - num_system) + " of " + std::to_string(messages.size()) +
                  " messages were left out, so that the prompt has " + kept.size_text() + ", not " +
                  whole.size_text(),
              out.warnings);
  return std::move(kept.ids);
}

}  // namespace headrace::api
