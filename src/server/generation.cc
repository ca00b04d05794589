// See generation.h.
#include "server/generation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/answer.h"
#include "api/json_body.h"
#include "server/http/request_id.h"
#include "server/json_endpoint.h"
#include "server/logged_exchange.h"
#include "server/replies.h"

namespace headrace::server {
namespace {

using std::chrono::milliseconds;

/// Events that may wait for the worker.
constexpr size_t kMaxWaitingEvents = 512;
/// A stream that nothing came of for so long begins all the same, so that its connection is not
/// taken for dead.
constexpr milliseconds kBeginAnyway{5'000};
/// Of the completions of one request.
constexpr size_t kMaxTimelines = 8;
constexpr const char* kEventStream = "text/event-stream; charset=utf-8";

class Generation final : public EventSink, public std::enable_shared_from_this<Generation> {
 public:
  Generation(ServerState& state, const api::Protocol& protocol, std::shared_ptr<Exchange> exchange,
             std::shared_ptr<const ModelSet> models)
      : state_(state),
        protocol_(protocol),
        exchange_(std::move(exchange)),
        models_(std::move(models)),
        arrived_ns_(state.clock.now_ns()) {
    trace_.request_id = exchange_->request().id;
    trace_.path = protocol.path;
  }

  void start() {
    const HttpRequest& request = exchange_->request();
    key_ = key_of(state_, request);
    trace_.owner = owner();
    record_ = record_of(request, trace_.owner);
    exchange_->on_over([self = shared_from_this()](ExchangeEnd end) { self->over(end); });
    std::optional<Refusal> refusal;
    ticket_ = state_.admission.enter(owner(), key_ != nullptr ? key_->max_requests : 0,
                                     static_cast<int64_t>(request.body.size()),
                                     std::chrono::steady_clock::now(), refusal);
    if (refusal) {
      reply(refusal_reply(*refusal));
      return;
    }
    if (auto begun = begin(); !begun.ok()) {
      reply_error(begun.error());
      streams_.clear();  // those already submitted are cancelled
    }
  }

  // EventSink, on the pump's thread.
  bool wants_more() const override {
    const std::lock_guard lock(mutex_);
    return inbox_.size() < kMaxWaitingEvents &&
           exchange_->unsent_bytes() <= state_.options.max_unsent_bytes;
  }
  void take(size_t stream, std::vector<Event> events) override {
    const std::lock_guard lock(mutex_);
    for (Event& each : events) inbox_.emplace_back(stream, std::move(each));
    schedule();
  }
  void stream_ended(size_t /*stream*/) noexcept override {
    const std::lock_guard lock(mutex_);
    ++num_ended_;
    try {
      schedule();
    } catch (...) {
      // No memory for the worker's task: what was scheduled before may still see the end.
    }
  }

 private:
  std::string owner() const { return key_ != nullptr ? key_->owner : ""; }

  void schedule() {
    if (is_scheduled_) return;
    exchange_->post([self = shared_from_this()] { self->work(); });
    is_scheduled_ = true;
  }

  /// Errors are answered by the caller.
  Result<void> begin() {
    api::Json body;
    HEADRACE_TRY(check_client());
    HEADRACE_TRY(api::parse_body(exchange_->take_body(), models_->first().served->limits, body));
    HEADRACE_ASSIGN(model_, named_model(*models_, body));
    HEADRACE_ASSIGN(api::PreparedRequest prepared,
                    protocol_.prepare(body, *model_->served, state_.clock));
    HEADRACE_TRY(check_client());
    ticket_->tokenized();
    trace_.tokenized_ms = since_arrival_ms();
    for (Request& each : prepared.requests) {
      each.keeps_timeline = true;
      each.owner = owner();
      each.priority = std::clamp(each.priority + (key_ != nullptr ? key_->priority : 0),
                                 kMinPriority, kMaxPriority);
      each.cache_scope = api::cache_scope(state_.options.shares_prefixes ? "" : owner(),
                                          prepared.params.cache_salt);
    }
    request_ = std::make_shared<const api::PreparedRequest>(std::move(prepared));
    api::ResponseHead head;
    head.id = std::string(protocol_.id_prefix) + random_name();
    head.created_unix_seconds = state_.clock.unix_seconds();
    trace_.id = head.id;
    trace_.created_unix_seconds = head.created_unix_seconds;
    trace_.model = model_->name();
    trace_.is_streamed = request_->params.is_streamed;
    return submit(head);
  }

  /// Nobody works for a client that has gone.
  Result<void> check_client() const {
    if (!exchange_->is_over()) return {};
    return Error{ErrorCode::cancelled, "the client has gone", "", ""};
  }

  Result<void> submit(const api::ResponseHead& head) {
    answer_.emplace(*request_, model_->served->tokenizer);
    format_ = protocol_.make_format(head, request_, model_->served);
    for (const Request& each : request_->requests) {
      auto stream = model_->engine->submit(each);
      if (!stream.ok()) {
        return api::named_for_request(std::move(stream).error(),
                                      std::string(request_->prompt_field));
      }
      streams_.push_back(std::make_shared<Stream>(std::move(stream).value()));
    }
    trace_.submitted_ms = since_arrival_ms();
    // From here on the streams end before this does.
    is_submitted_ = true;
    keeps_itself_ = shared_from_this();
    for (size_t i = 0; i < streams_.size(); ++i) {
      model_->pump->add(streams_[i], weak_from_this(), i);
    }
    if (request_->params.is_streamed && request_->params.timeout_ms == 0) {
      exchange_->post_after(kBeginAnyway, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->begin_stream();
      });
    }
    return {};
  }

  void reply(HttpReply reply) {
    record_.status = reply.status;
    trace_.sent_bytes = static_cast<int64_t>(reply.body.size());
    if (reply.status >= 400) state_.metrics.count_refused(reply.status);
    exchange_->reply(std::move(reply));
  }

  void reply_error(const Error& error) {
    const api::ApiError fault = api::api_error(error);
    record_.code = fault.code;
    HttpReply reply = json_reply(protocol_.error_body(fault), fault.status);
    if (fault.status == 429 || fault.status == 503) {
      reply.headers.push_back({"Retry-After", std::to_string(state_.admission.retry_after_seconds(
                                                  std::chrono::steady_clock::now()))});
    }
    this->reply(std::move(reply));
  }

  void write(std::string bytes) {
    trace_.sent_bytes += static_cast<int64_t>(bytes.size());
    exchange_->write(std::move(bytes));
  }

  void begin_stream() {
    if (std::exchange(has_begun_, true) || is_over_) return;
    StreamHead head;
    head.reply.content_type = kEventStream;
    head.reply.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
    head.idle_chunk = ": keep-alive\n\n";
    head.idle_after = state_.options.keep_alive;
    record_.status = head.reply.status;
    exchange_->begin(std::move(head));
    std::string out;
    format_->begin(out);
    write(std::move(out));
  }

  /// What came, on the worker. An exception, for want of memory say, ends the request.
  void work() {
    try {
      take_events();
    } catch (...) {
      for (const auto& each : streams_) each->cancel();
      has_thrown_ = true;
      end_streams();
      throw;  // the exchange answers
    }
    end_streams();
  }

  /// Once all streams have ended, it is let go.
  void end_streams() {
    {
      const std::lock_guard lock(mutex_);
      if (num_ended_ < streams_.size() || !inbox_.empty()) return;
    }
    const auto self = std::exchange(keeps_itself_, nullptr);
    has_ended_ = true;
    conclude();
  }

  void take_events() {
    std::vector<std::pair<size_t, Event>> events;
    size_t num_ended = 0;
    {
      const std::lock_guard lock(mutex_);
      is_scheduled_ = false;
      events.swap(inbox_);
      num_ended = num_ended_;
    }
    const double begun_ms = since_arrival_ms();
    for (const auto& [stream, event] : events) {
      if (!answer_->has_failed()) {
        if (const auto choice = answer_->take(stream, event)) streams_[stream]->cancel(*choice);
      }
      note(stream, event, begun_ms);
    }
    const bool has_ended = num_ended >= streams_.size();
    if (has_ended && !is_complete() && !answer_->has_failed()) {
      answer_->fail({ErrorCode::resource_exhausted, "the server had to end this request", "", ""});
    }
    if (has_thrown_) return;
    if (!is_answered_ && !is_over_) {
      if (answer_->has_failed()) {
        fail();
      } else if (request_->params.is_streamed && !events.empty()) {
        send_more();
      }
    }
    if (has_ended && !is_answered_ && !is_over_) complete();
    state_.metrics.observe_gaps(trace_.model, gaps_);
    gaps_.clear();
    trace_.format_ms += since_arrival_ms() - begun_ms;
  }

  /// Whether every choice has come to its end.
  bool is_complete() const {
    const auto has_ended = [](const api::Choice& choice) {
      return choice.end != api::ChoiceEnd::running;
    };
    return std::all_of(answer_->choices().begin(), answer_->choices().end(), has_ended);
  }

  /// What an event tells of times.
  void note(size_t stream, const Event& event, double now_ms) {
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
      TraceChoice choice;
      choice.prompt = static_cast<int64_t>(stream);
      choice.reason = finish->reason;
      choice.stop_token = finish->stop_token;
      choice.stats = finish->stats;
      if (trace_.choices.size() < kMaxTimelines) choice.timeline = finish->timeline;
      const auto& answered =
          answer_->choices()[stream * static_cast<size_t>(request_->params.num_choices) +
                             static_cast<size_t>(finish->choice)];
      // A stop string ends a choice by cancelling it.
      if (answered.end == api::ChoiceEnd::stop) choice.reason = FinishReason::stop;
      choice.has_stop_string = answered.stop_string.has_value();
      if (state_.options.keeps_prompts) choice.stop_string = answered.stop_string.value_or("");
      trace_.choices.push_back(std::move(choice));
    } else if (const auto* error = std::get_if<ErrorEvent>(&event)) {
      trace_.error = error->error.message;
    }
  }

  /// Once the streams have ended and the client has its answer, or is gone: what is kept of it.
  void conclude() {
    if (!has_ended_ || !is_over_ || std::exchange(is_concluded_, true)) return;
    if (!is_submitted_) {
      log(end_name(end_));
      return;
    }
    if (end_ == ExchangeEnd::client_gone) state_.metrics.count_gone(trace_.model, phase());
    if (end_ == ExchangeEnd::complete && trace_.error.empty()) {
      state_.metrics.count_answered(trace_);
    }
    trace_.end = end_ == ExchangeEnd::complete && !trace_.error.empty() ? "failed" : end_name(end_);
    if (state_.options.keeps_prompts) {
      for (const Request& each : request_->requests) trace_.prompts.push_back(each.prompt);
    }
    log(trace_.end);
    state_.traces.add(std::make_shared<const RequestTrace>(std::move(trace_)));
  }

  void log(const std::string& end) {
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
  void note_prompts() {
    std::vector<bool> noted(streams_.size());
    for (const TraceChoice& each : trace_.choices) {
      if (noted[static_cast<size_t>(each.prompt)]) continue;
      noted[static_cast<size_t>(each.prompt)] = true;
      record_.prompt_tokens += each.stats.prompt_tokens;
      record_.cached_tokens += each.stats.cached_tokens;
    }
  }

  GonePhase phase() const {
    if (trace_.first_token_ms > 0) return GonePhase::decode;
    const auto has_begun = [](const TraceChoice& choice) { return choice.stats.prefill_ms > 0; };
    return std::any_of(trace_.choices.begin(), trace_.choices.end(), has_begun) ? GonePhase::prefill
                                                                                : GonePhase::queue;
  }

  double since_arrival_ms() const {
    return static_cast<double>(state_.clock.now_ns() - arrived_ns_) * 1e-6;
  }

  void send_more() {
    begin_stream();
    std::string out;
    format_->more(*answer_, out);
    write(std::move(out));
  }

  void complete() {
    is_answered_ = true;
    state_.admission.count_done(std::chrono::steady_clock::now());
    if (!request_->params.is_streamed) {
      reply(json_reply(format_->whole(*answer_)));
      return;
    }
    begin_stream();
    std::string out;
    format_->end(*answer_, out);
    write(std::move(out));
    exchange_->end();
  }

  void fail() {
    is_answered_ = true;
    for (const auto& each : streams_) each->cancel();
    if (!has_begun_) {
      reply_error(answer_->error());
      return;
    }
    std::string out;
    const api::ApiError fault = api::api_error(answer_->error());
    record_.code = fault.code;
    format_->failed(fault, out);
    write(std::move(out));
    exchange_->end();
  }

  void over(ExchangeEnd end) {
    is_over_ = true;
    end_ = end;
    trace_.sent_ms = since_arrival_ms();
    if (end != ExchangeEnd::complete) {
      for (const auto& each : streams_) each->cancel();
    }
    ticket_.reset();
    if (!is_submitted_) has_ended_ = true;
    conclude();
  }

  ServerState& state_;
  const api::Protocol& protocol_;
  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<const ModelSet> models_;
  const int64_t arrived_ns_;
  const ApiKey* key_ = nullptr;
  ModelEntry* model_ = nullptr;
  std::unique_ptr<Admission::Ticket> ticket_;

  // The worker's own, once it was submitted.
  std::shared_ptr<const api::PreparedRequest> request_;
  std::optional<api::Answer> answer_;
  std::unique_ptr<api::ReplyFormat> format_;
  std::vector<std::shared_ptr<Stream>> streams_;
  bool is_submitted_ = false;  ///< an engine has it
  bool has_begun_ = false;     ///< the streamed reply
  bool is_answered_ = false;   ///< all of the reply was written
  bool is_over_ = false;
  bool has_ended_ = false;   ///< all streams
  bool has_thrown_ = false;  ///< the exchange has answered
  bool is_concluded_ = false;
  ExchangeEnd end_ = ExchangeEnd::complete;
  RequestTrace trace_;
  RequestRecord record_;
  std::vector<double> last_token_ms_;  ///< by completion
  std::vector<double> gaps_;           ///< seconds, not yet observed
  std::shared_ptr<Generation> keeps_itself_;

  mutable std::mutex mutex_;
  std::vector<std::pair<size_t, Event>> inbox_;
  size_t num_ended_ = 0;
  bool is_scheduled_ = false;
};

}  // namespace

void generate(ServerState& state, const api::Protocol& protocol,
              std::shared_ptr<Exchange> exchange) {
  auto models = state.models();
  if (!models) {
    exchange->reply(unavailable_reply("Loading model", 1));
    return;
  }
  std::make_shared<Generation>(state, protocol, std::move(exchange), std::move(models))->start();
}

}  // namespace headrace::server
