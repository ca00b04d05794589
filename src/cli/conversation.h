// A conversation with a model: its messages and the next answer. Must not know the terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/open_model.h"
#include "cli/generate.h"

namespace headrace::cli {

struct Messages {
  std::string system;  ///< "" is none
  nlohmann::ordered_json turns = nlohmann::ordered_json::array();
};

/// What Conversation::messages() gave, from outside. Error: corrupt_data (anything else).
Result<Messages> check_messages(const nlohmann::ordered_json& all);

class Conversation {
 public:
  /// `model` (which must have a chat template) and `engine` must outlive it.
  Conversation(const OpenedModel& model, Engine& engine, SamplingParams sampling, StopParams stop)
      : model_(model), engine_(engine), sampling_(std::move(sampling)), stop_(std::move(stop)) {}

  /// "" is none: the template may then bring its own.
  void set_system(std::string text);
  const std::string& system() const { return system_; }

  /// Adds the user's message and generates the answer, which is kept, a cancelled one too. On an
  /// error the conversation is as it was before. Errors: the template's, context_length_exceeded,
  /// the engine's.
  Result<Generation> ask(std::string_view text, const TextSink& on_text);

  /// Generates the last answer anew; with a fixed seed, from the next one. Errors:
  /// invalid_argument if nothing was asked yet; those of ask().
  Result<Generation> retry(const TextSink& on_text);

  /// Forgets all messages but the system message.
  void clear();

  /// Takes up a conversation from outside: what messages() and tokens() gave.
  void restore(Messages messages, std::vector<TokenId> tokens);

  /// All messages, the system message first: what `headrace render --messages` reads.
  nlohmann::ordered_json messages() const;
  size_t num_messages() const { return turns_.size(); }
  /// These tokens: the prompt of the last answer, and the answer.
  const std::vector<TokenId>& tokens() const { return tokens_; }
  /// Whether anything was said, or taken back, since it was made or restored.
  bool has_changed() const { return has_changed_; }
  /// Tokens of the context that the conversation takes up, as of the last answer.
  int64_t num_tokens() const { return static_cast<int64_t>(tokens_.size()); }
  const std::optional<RequestStats>& last_stats() const { return last_stats_; }

 private:
  Result<Generation> answer(const TextSink& on_text);

  const OpenedModel& model_;
  Engine& engine_;
  SamplingParams sampling_;
  StopParams stop_;
  std::string system_;
  nlohmann::ordered_json turns_ = nlohmann::ordered_json::array();  ///< without the system message
  uint64_t num_retries_ = 0;
  std::vector<TokenId> tokens_;
  bool has_changed_ = false;
  std::optional<RequestStats> last_stats_;
};

}  // namespace headrace::cli
