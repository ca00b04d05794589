// One request under way: its events become text, whoever waits for them. Thread-safe. Must not know
// Python.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/choice_text.h"
#include "headrace/engine.h"
#include "text/tokenizer.h"

namespace headrace::python {

/// What one token adds to a choice, or its end.
struct Piece {
  int32_t choice = 0;
  std::string text;                    ///< what became certain; may be empty
  std::optional<TokenEvent> token;     ///< none: the end
  std::optional<FinishReason> reason;  ///< of the end
};

/// One completion so far.
struct ChoiceState {
  std::string text;
  std::vector<TokenEvent> tokens;      ///< those of a stop string too
  std::optional<FinishReason> reason;  ///< none: it goes on, or the request failed
  TokenId stop_token = -1;
  std::optional<std::string> stop_string;  ///< that ended it
  RequestStats stats;
};

/// What a request has come to.
struct RunState {
  std::vector<ChoiceState> choices;
  std::vector<PromptLogprob> prompt_logprobs;  ///< of the prompt's second token on
  std::optional<Error> error;
};

struct RunOptions {
  int32_t num_choices = 1;
  std::vector<std::string> stop_strings = {};  ///< none is empty
  int64_t min_tokens = 0;                      ///< in whose text no stop string is looked for
  bool keeps_pieces = false;                   ///< for take_pieces()
};

class Run {
 public:
  /// `is_abandoned` becomes true in the child of a fork, where
  /// the engine's locks are nobody's: they are then left alone.
  Run(Stream stream, const std::shared_ptr<const Tokenizer>& tokenizer, const RunOptions& options,
      std::shared_ptr<const std::atomic<bool>> is_abandoned);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Waits at most `time`; whether the request has ended.
  bool wait_for_end(std::chrono::milliseconds time);
  /// Waits at most `time`; whether there is a piece to take, or none will come.
  bool wait_for_pieces(std::chrono::milliseconds time);
  /// What came since the last call, in order.
  std::vector<Piece> take_pieces();

  /// Whether its text may end it, which only who takes its events finds out.
  bool has_stop_strings() const { return has_stop_strings_; }
  /// Whether somebody takes its pieces, at a pace of their own.
  bool keeps_pieces() const { return keeps_pieces_; }

  /// Asks the engine to stop; the end follows within a step.
  void cancel();

  /// As it is now.
  RunState state() const;

 private:
  void take_events();
  void take(TokenEvent&& event);
  void take(PromptLogprobsEvent&& event);
  void take(EmbeddingEvent&& /*event*/) {}  // no request of this kind is made here
  void take(FinishEvent&& event);
  void take(ErrorEvent&& event);
  bool is_choice(int32_t index) const;
  void keep(Piece piece);

  std::unique_ptr<Stream> stream_;
  const bool keeps_pieces_;
  const bool has_stop_strings_;
  const std::shared_ptr<const std::atomic<bool>> is_abandoned_;

  mutable std::mutex mutex_;
  RunState state_;
  std::vector<api::ChoiceText> texts_;  ///< one a choice
  std::vector<Piece> pieces_;
  bool has_ended_ = false;
};

}  // namespace headrace::python
