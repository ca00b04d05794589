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

Run::Run(Stream stream, const std::shared_ptr<const Tokenizer>& tokenizer,
         const RunOptions& options, std::shared_ptr<const std::atomic<bool>> is_abandoned)
    : stream_(std::make_unique<Stream>(std::move(stream))),
      keeps_pieces_(options.keeps_pieces),
      has_stop_strings_(!options.stop_strings.empty()),
      is_abandoned_(std::move(is_abandoned)) {
  api::ChoiceTextOptions text{.min_tokens = options.min_tokens};
  if (has_stop_strings_) {
    text.stop_strings = std::make_shared<const api::StopStrings>(options.stop_strings);
  }
  state_.choices.resize(static_cast<size_t>(options.num_choices));
  for (int32_t i = 0; i < options.num_choices; ++i) texts_.emplace_back(tokenizer, text);
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

bool Run::is_choice(int32_t index) const {
  return index >= 0 && static_cast<size_t>(index) < texts_.size();
}

void Run::keep(Piece piece) {
  if (keeps_pieces_) pieces_.push_back(std::move(piece));
}

void Run::take(TokenEvent&& event) {
  if (!is_choice(event.choice)) return;
  const int32_t index = event.choice;
  api::ChoiceText& text = texts_[static_cast<size_t>(index)];
  if (text.has_stopped()) return;  // computed past a stop string
  ChoiceState& choice = state_.choices[static_cast<size_t>(index)];
  std::string piece = text.push(event);
  choice.text += piece;
  choice.tokens.push_back(event);
  keep({index, std::move(piece), std::move(event), std::nullopt});
  if (text.has_stopped()) {
    choice.stop_string = text.stop();
    stream_->cancel(index);
  }
}

void Run::take(PromptLogprobsEvent&& event) {
  std::move(event.tokens.begin(), event.tokens.end(), std::back_inserter(state_.prompt_logprobs));
}

void Run::take(FinishEvent&& event) {
  if (!is_choice(event.choice)) return;
  api::ChoiceText& text = texts_[static_cast<size_t>(event.choice)];
  ChoiceState& choice = state_.choices[static_cast<size_t>(event.choice)];
  std::string piece = text.finish();
  choice.text += piece;
  choice.reason = text.has_stopped() ? FinishReason::stop : event.reason;
  choice.stop_token = text.has_stopped() ? -1 : event.stop_token;
  choice.stats = std::move(event.stats);
  keep({event.choice, std::move(piece), std::nullopt, choice.reason});
}

void Run::take(ErrorEvent&& event) {
  for (size_t i = 0; i < texts_.size(); ++i) {
    if (!state_.choices[i].reason) state_.choices[i].text += texts_[i].finish();
  }
  state_.error = std::move(event.error);
}

}  // namespace headrace::python
