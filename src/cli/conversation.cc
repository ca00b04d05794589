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

void Conversation::set_system(std::string text) {
  has_changed_ = has_changed_ || text != system_;
  system_ = std::move(text);
}

void Conversation::clear() {
  has_changed_ = has_changed_ || !turns_.empty();
  turns_ = nlohmann::ordered_json::array();
  tokens_.clear();
}

Result<Messages> check_messages(const nlohmann::ordered_json& all) {
  const Error wrong{ErrorCode::corrupt_data, "it holds no conversation", "",
                    "delete it, or give another name"};
  if (!all.is_array()) return wrong;
  Messages out;
  for (const auto& message : all) {
    if (!message.is_object() || message.size() != 2 || !message.contains("role") ||
        !message.contains("content") || !message["content"].is_string()) {
      return wrong;
    }
    const auto& role = message["role"];
    if (role == "system" && &message == &all.front()) {
      out.system = message["content"].get<std::string>();
    } else if (role == "user" || role == "assistant") {
      out.turns.push_back(message);
    } else {
      return wrong;
    }
  }
  return out;
}

void Conversation::restore(Messages messages, std::vector<TokenId> tokens) {
  system_ = std::move(messages.system);
  turns_ = std::move(messages.turns);
  tokens_ = std::move(tokens);
  has_changed_ = false;
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
  request.adapters = model_.adapters;
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
  auto tokens = request.prompt;
  HEADRACE_ASSIGN(Generation done,
                  generate(engine_, model_.tokenizer, std::move(request), false, on_text));
  tokens.insert(tokens.end(), done.ids.begin(), done.ids.end());
  tokens_ = std::move(tokens);
  has_changed_ = true;
  turns_.push_back(api::chat_message("assistant", done.text));
  last_stats_ = done.stats;
  return done;
}

}  // namespace headrace::cli
