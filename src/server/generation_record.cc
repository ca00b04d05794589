// See generation_record.h.
#include "server/generation_record.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "api/error_json.h"
#include "server/logged_exchange.h"

namespace headrace::server {
namespace {

/// Of the completions of one request.
constexpr size_t kMaxTimelines = 8;

}  // namespace

GenerationRecord::GenerationRecord(ServerState& state, const HttpRequest& request,
                                   std::string_view path, std::string owner)
    : state_(state), arrived_ns_(state.clock.now_ns()), record_(record_of(request, owner)) {
  trace_.request_id = request.id;
  trace_.path = path;
  trace_.owner = std::move(owner);
}

double GenerationRecord::since_arrival_ms() const {
  return static_cast<double>(state_.clock.now_ns() - arrived_ns_) * 1e-6;
}

void GenerationRecord::named(std::string id, int64_t created_unix_seconds, const ModelEntry& model,
                             std::shared_ptr<const api::PreparedRequest> request) {
  trace_.id = std::move(id);
  trace_.created_unix_seconds = created_unix_seconds;
  trace_.model = model.name();
  trace_.is_streamed = request->params.is_streamed;
  request_ = std::move(request);
}

void GenerationRecord::note(size_t stream, const Event& event, const api::Answer& answer,
                            double now_ms) {
  if (const auto* token = std::get_if<TokenEvent>(&event)) {
    if (trace_.first_token_ms == 0) trace_.first_token_ms = now_ms;
    trace_.last_token_ms = now_ms;
    const size_t place = stream * static_cast<size_t>(request_->params.num_choices) +
                         static_cast<size_t>(token->choice);
    if (place >= last_token_ms_.size()) last_token_ms_.resize(place + 1, 0);
    if (const double last = std::exchange(last_token_ms_[place], now_ms); last > 0) {
      gaps_.push_back((now_ms - last) * 1e-3);
    }
  } else if (const auto* finish = std::get_if<FinishEvent>(&event)) {
    note_finish(stream, *finish, answer);
  } else if (const auto* error = std::get_if<ErrorEvent>(&event)) {
    trace_.error = api::api_error(error->error).message;  // as its client reads it
  }
}

void GenerationRecord::note_finish(size_t stream, const FinishEvent& finish,
                                   const api::Answer& answer) {
  TraceChoice choice;
  choice.prompt = static_cast<int64_t>(stream);
  choice.reason = finish.reason;
  choice.stop_token = finish.stop_token;
  choice.stats = finish.stats;
  if (trace_.choices.size() < kMaxTimelines) choice.timeline = finish.timeline;
  const auto& answered =
      answer.choices()[stream * static_cast<size_t>(request_->params.num_choices) +
                       static_cast<size_t>(finish.choice)];
  // A stop string ends a choice by cancelling it.
  if (answered.end == api::ChoiceEnd::stop) choice.reason = FinishReason::stop;
  choice.has_stop_string = answered.stop_string.has_value();
  if (state_.options.keeps_prompts) choice.stop_string = answered.stop_string.value_or("");
  trace_.choices.push_back(std::move(choice));
}

void GenerationRecord::formatted(double begun_ms) {
  state_.metrics.observe_gaps(trace_.model, gaps_);
  gaps_.clear();
  trace_.format_ms += since_arrival_ms() - begun_ms;
}

void GenerationRecord::over(ExchangeEnd end) {
  end_ = end;
  trace_.sent_ms = since_arrival_ms();
}

void GenerationRecord::conclude(bool is_submitted) {
  if (is_submitted) {
    keep();
  } else {
    log(end_name(end_));
  }
}

void GenerationRecord::keep() {
  const bool has_failed = !trace_.error.empty();
  if (end_ == ExchangeEnd::client_gone) state_.metrics.count_gone(trace_.model, phase());
  if (end_ == ExchangeEnd::complete && !has_failed) {
    state_.metrics.count_answered(trace_);
  } else {
    state_.metrics.count_unanswered(trace_, num_completions());
  }
  trace_.end = end_ == ExchangeEnd::complete && has_failed ? "failed" : end_name(end_);
  if (state_.options.keeps_prompts) {
    for (const Request& each : request_->requests) trace_.prompts.push_back(each.prompt);
  }
  log(trace_.end);
  state_.traces.add(std::make_shared<const RequestTrace>(std::move(trace_)));
}

void GenerationRecord::log(const std::string& end) {
  if (state_.log == nullptr) return;
  record_.end = end;
  record_.model = trace_.model;
  record_.total_ms = trace_.sent_ms;
  record_.first_token_ms = trace_.first_token_ms;
  // What a thrown exception left unanswered is answered by who called.
  if (record_.status == 0 && end_ == ExchangeEnd::complete) record_.status = 500;
  for (const TraceChoice& each : trace_.choices) {
    record_.completion_tokens += each.stats.completion_tokens;
    record_.queue_ms = std::max(record_.queue_ms, each.stats.queue_ms);
  }
  note_prompts();
  state_.log->write(record_);
}

/// Each prompt once, however many choices it has.
void GenerationRecord::note_prompts() {
  std::vector<bool> noted(request_ ? request_->requests.size() : 0);
  for (const TraceChoice& each : trace_.choices) {
    if (noted[static_cast<size_t>(each.prompt)]) continue;
    noted[static_cast<size_t>(each.prompt)] = true;
    record_.prompt_tokens += each.stats.prompt_tokens;
    record_.cached_tokens += each.stats.cached_tokens;
  }
}

size_t GenerationRecord::num_completions() const {
  return request_->requests.size() * static_cast<size_t>(request_->params.num_choices);
}

GonePhase GenerationRecord::phase() const {
  if (trace_.first_token_ms > 0) return GonePhase::decode;
  const auto has_begun = [](const TraceChoice& choice) { return choice.stats.prefill_ms > 0; };
  return std::any_of(trace_.choices.begin(), trace_.choices.end(), has_begun) ? GonePhase::prefill
                                                                              : GonePhase::queue;
}

}  // namespace headrace::server
