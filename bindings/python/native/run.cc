// See run.h.
#include "bindings/python/native/run.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace headrace::python {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

milliseconds left_until(Clock::time_point end) {
  return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(end - Clock::now()));
}

}  // namespace

Run::Run(Stream stream, const std::shared_ptr<const Tokenizer>& tokenizer, int32_t num_choices,
         bool keeps_pieces, std::shared_ptr<const std::atomic<bool>> is_abandoned)
    : stream_(std::make_unique<Stream>(std::move(stream))),
      keeps_pieces_(keeps_pieces),
      is_abandoned_(std::move(is_abandoned)) {
  for (int32_t i = 0; i < num_choices; ++i) {
    state_.choices.push_back(ChoiceState{Detokenizer(tokenizer, true), {}, {}, {}, -1, {}});
  }
}

Run::~Run() {
  if (is_abandoned_->load()) static_cast<void>(stream_.release());
}

bool Run::wait_for_end(milliseconds time) {
  const auto end = Clock::now() + time;
  for (;;) {
    take_events();
    {
      const std::lock_guard lock(mutex_);
      if (has_ended_) return true;
    }
    if (Clock::now() >= end) return false;
    stream_->wait_for(left_until(end));
  }
}

bool Run::wait_for_pieces(milliseconds time) {
  const auto end = Clock::now() + time;
  for (;;) {
    take_events();
    {
      const std::lock_guard lock(mutex_);
      if (has_ended_ || !pieces_.empty()) return true;
    }
    if (Clock::now() >= end) return false;
    stream_->wait_for(left_until(end));
  }
}

std::vector<Piece> Run::take_pieces() {
  const std::lock_guard lock(mutex_);
  return std::exchange(pieces_, {});
}

void Run::cancel() {
  if (!is_abandoned_->load()) stream_->cancel();
}

RunState Run::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

/// All events that are there. Others may wait on the stream too: who finds one takes it under the
/// lock, so that next() never waits and the order stays.
void Run::take_events() {
  const std::lock_guard lock(mutex_);
  while (!has_ended_ && stream_->wait_for(milliseconds(0))) {
    auto event = stream_->next();
    if (!event) {
      has_ended_ = true;
      return;
    }
    std::visit([this](auto&& each) { take(std::move(each)); }, std::move(*event));
  }
}

ChoiceState* Run::choice(int32_t index) {
  const bool is_known = index >= 0 && static_cast<size_t>(index) < state_.choices.size();
  return is_known ? &state_.choices[static_cast<size_t>(index)] : nullptr;
}

void Run::keep(Piece piece) {
  if (keeps_pieces_) pieces_.push_back(std::move(piece));
}

void Run::take(TokenEvent&& event) {
  ChoiceState* at = choice(event.choice);
  if (at == nullptr) return;
  std::string text = at->detokenizer.push(event.id);
  at->text += text;
  at->tokens.push_back(event);
  keep({event.choice, std::move(text), std::move(event), std::nullopt});
}

void Run::take(PromptLogprobsEvent&& event) {
  std::move(event.tokens.begin(), event.tokens.end(), std::back_inserter(state_.prompt_logprobs));
}

void Run::take(FinishEvent&& event) {
  ChoiceState* at = choice(event.choice);
  if (at == nullptr) return;
  std::string text = at->detokenizer.finish();
  at->text += text;
  at->reason = event.reason;
  at->stop_token = event.stop_token;
  at->stats = std::move(event.stats);
  keep({event.choice, std::move(text), std::nullopt, event.reason});
}

void Run::take(ErrorEvent&& event) {
  for (ChoiceState& at : state_.choices) {
    if (!at.reason) at.text += at.detokenizer.finish();
  }
  state_.error = std::move(event.error);
}

}  // namespace headrace::python
