// See conversation.h.
#include "cli/conversation.h"

#include <fmt/format.h>

#include <utility>

#include "api/chat_prompt.h"
#include "cli/chat_prompt.h"
#include "cli/model_options.h"

namespace headrace::cli {

nlohmann::ordered_json Conversation::messages() const {
  auto all = nlohmann::ordered_json::array();
  if (!system_.empty()) all.push_back(api::chat_message("system", system_));
  for (const auto& turn : turns_) all.push_back(turn);
  return all;
}

void Conversation::clear() {
  turns_ = nlohmann::ordered_json::array();
  num_tokens_ = 0;
}

Result<Generation> Conversation::ask(std::string_view text, const TextSink& on_text) {
  turns_.push_back(api::chat_message("user", text));
  auto answered = answer(on_text);
  if (!answered.ok()) turns_.erase(turns_.size() - 1);
  return answered;
}

Result<Generation> Conversation::retry(const TextSink& on_text) {
  if (turns_.empty()) {
    return Error{ErrorCode::invalid_argument, "nothing was asked yet", "", ""};
  }
  const auto before = turns_;
  if (turns_.back()["role"] == "assistant") turns_.erase(turns_.size() - 1);
  ++num_retries_;
  auto answered = answer(on_text);
  if (!answered.ok()) turns_ = before;
  return answered;
}

Result<Generation> Conversation::answer(const TextSink& on_text) {
  Request request;
  HEADRACE_ASSIGN(request.prompt, chat_prompt_ids(model_, messages(), false));
  request.sampling = sampling_;
  if (request.sampling.seed) *request.sampling.seed += num_retries_;
  request.stop = stop_;
  auto fits = fit_to_context(engine_, request.prompt.size(), request.stop, "");
  if (!fits.ok()) {
    return Error{ErrorCode::context_length_exceeded,
                 fmt::format("the conversation has {} tokens, the context {}, and an answer needs "
                             "room",
                             request.prompt.size(), engine_.max_context()),
                 "", context_hint(model_, "/clear begins a new one")};
  }
  HEADRACE_ASSIGN(Generation done,
                  generate(engine_, model_.tokenizer, std::move(request), on_text));
  turns_.push_back(api::chat_message("assistant", done.text));
  num_tokens_ = done.stats.prompt_tokens + static_cast<int64_t>(done.ids.size());
  last_stats_ = done.stats;
  return done;
}

}  // namespace headrace::cli
