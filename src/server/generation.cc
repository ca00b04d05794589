// See generation.h.
#include "server/generation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/answer.h"
#include "api/json_body.h"
#include "server/generation_record.h"
#include "server/http/request_id.h"
#include "server/json_endpoint.h"
#include "server/replies.h"
#include "server/route.h"
#include "server/submission.h"

namespace headrace::server {
namespace {

using std::chrono::milliseconds;

/// Events that may wait for the worker.
constexpr size_t kMaxWaitingEvents = 512;
/// A stream that nothing came of for so long begins all the same, so that its connection is not
/// taken for dead.
constexpr milliseconds kBeginAnyway{5'000};
constexpr const char* kEventStream = "text/event-stream; charset=utf-8";

/// A request that the engine could take, or why there is none.
struct Prepared {
  std::optional<Error> fault;
  ModelEntry* model = nullptr;
  std::shared_ptr<const api::PreparedRequest> request;
  double at_ms = 0;
};

/// On its way it is on three kinds of threads: start() on the I/O thread; prepare() on one for long
/// work, which only reads; all else on the exchange's strand.
class Generation final : public EventSink, public std::enable_shared_from_this<Generation> {
 public:
  Generation(ServerState& state, const api::Protocol& protocol, std::shared_ptr<Exchange> exchange,
             std::shared_ptr<const ModelSet> models)
      : state_(state),
        protocol_(protocol),
        exchange_(std::move(exchange)),
        models_(std::move(models)),
        key_(key_of(state_, exchange_->request())),
        record_(state_, exchange_->request(), protocol.path,
                key_ != nullptr ? key_->owner : std::string()) {}

  void start() {
    std::optional<Refusal> refusal;
    const auto num_bytes = static_cast<int64_t>(exchange_->request().body.size());
    ticket_ = state_.admission.enter(record_.owner(), key_ != nullptr ? key_->max_requests : 0,
                                     num_bytes, std::chrono::steady_clock::now(), refusal);
    exchange_->on_over([self = shared_from_this()](ExchangeEnd end) { self->over(end); });
    try {
      if (refusal) {
        reply(refusal_reply(*refusal, error_shape(protocol_.path)));
      } else {
        post_prepare();
      }
    } catch (...) {
      exchange_->abort();  // for who is told of its end holds it
      throw;
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
  void schedule() {
    if (is_scheduled_) return;
    exchange_->post([self = shared_from_this()] { self->work(); });
    is_scheduled_ = true;
  }

  /// The ticket is held until the body is no more, though the client goes before.
  void post_prepare() {
    exchange_->post_long([self = shared_from_this(), ticket = ticket_] {
      const auto prepared = std::make_shared<Prepared>();
      if (auto made = self->prepare(*prepared); !made.ok()) {
        prepared->fault = std::move(made).error();
      }
      ticket->tokenized();
      self->exchange_->post([self, prepared] { self->begin(*prepared); });
    });
  }

  /// Parsed, templated, tokenised.
  Result<void> prepare(Prepared& out) const {
    api::Json body;
    HEADRACE_TRY(check_client());
    HEADRACE_TRY(api::parse_body(exchange_->take_body(), models_->first().served->limits, body));
    HEADRACE_ASSIGN(out.model, named_model(*models_, body));
    HEADRACE_ASSIGN(api::PreparedRequest prepared,
                    api::prepare(protocol_, body, *out.model->served, state_.clock));
    HEADRACE_TRY(check_client());
    const int priority = allowed_priority(state_.options.keys, key_, prepared.params.priority);
    if (prepared.params.priority < 0 && state_.options.keys.size() > 1) {
      prepared.warnings.emplace_back(
          "priority: a request may not come before others of its API key; taken as 0");
    }
    for (Request& each : prepared.requests) {
      each.keeps_timeline = true;
      each.owner = record_.owner();
      each.priority = priority;
      each.cache_scope = api::cache_scope(state_.options.shares_prefixes ? "" : record_.owner(),
                                          prepared.params.cache_salt);
    }
    out.request = std::make_shared<const api::PreparedRequest>(std::move(prepared));
    out.at_ms = record_.since_arrival_ms();
    return {};
  }

  /// Nobody works for a client that has gone.
  Result<void> check_client() const {
    if (!exchange_->is_over()) return {};
    return Error{ErrorCode::cancelled, "the client has gone", "", ""};
  }

  void begin(const Prepared& prepared) {
    if (is_over_) return;
    if (prepared.fault) {
      reply_error(*prepared.fault);
      return;
    }
    if (auto submitted = submit(prepared); !submitted.ok()) reply_error(submitted.error());
  }

  /// Errors are answered by the caller.
  Result<void> submit(const Prepared& prepared) {
    auto taken = server::submit(*prepared.model, prepared.request);
    model_ = taken.ok() ? taken->model : prepared.model;
    request_ = taken.ok() ? taken->request : prepared.request;
    record_.tokenized(prepared.at_ms);
    api::ResponseHead head;
    head.id = std::string(protocol_.id_prefix) + random_name();
    head.created_unix_seconds = state_.clock.unix_seconds();
    record_.named(head.id, head.created_unix_seconds, *model_, request_);
    answer_.emplace(*request_, model_->served->tokenizer);
    format_ =
        protocol_.make_format(head, request_, api::answering_model(*request_, model_->served));
    if (!taken.ok()) return std::move(taken).error();
    streams_ = std::move(taken->streams);
    record_.submitted();
    read_streams();
    return {};
  }

  /// From here on the streams end before this does.
  void read_streams() {
    is_submitted_ = true;
    keeps_itself_ = shared_from_this();
    for (size_t i = 0; i < streams_.size(); ++i) {
      model_->pump->add(streams_[i], weak_from_this(), i);
    }
    if (request_->params.is_streamed) {
      // A limit of time that passes is answered by a status (504) as long as that keeps nobody
      // without a sign of life for longer than the operator wants; then by an event.
      const milliseconds keep_alive = state_.options.keep_alive;
      const bool has_limit = request_->params.timeout_ms > 0;
      const milliseconds patience = has_limit ? keep_alive : std::min(kBeginAnyway, keep_alive);
      exchange_->post_after(patience, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->begin_stream();
      });
    }
  }

  void reply(HttpReply reply) {
    record_.answered(reply.status);
    record_.wrote(reply.body.size());
    if (reply.status >= 400) state_.metrics.count_refused(reply.status);
    exchange_->reply(std::move(reply));
  }

  void reply_error(const Error& error) {
    const api::ApiError fault = api::api_error(error);
    record_.failed(fault.code);
    HttpReply reply = json_reply(protocol_.error_body(fault), fault.status);
    if (fault.status == 429 || fault.status == 503) {
      reply.headers.push_back({"Retry-After", std::to_string(state_.admission.retry_after_seconds(
                                                  std::chrono::steady_clock::now()))});
    }
    this->reply(std::move(reply));
  }

  void write(std::string bytes) {
    record_.wrote(bytes.size());
    exchange_->write(std::move(bytes));
  }

  void begin_stream() {
    if (std::exchange(has_begun_, true) || is_over_) return;
    StreamHead head;
    head.reply.content_type = kEventStream;
    head.reply.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
    head.idle_chunk = ": keep-alive\n\n";
    head.idle_after = state_.options.keep_alive;
    record_.answered(head.reply.status);
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
    const double begun_ms = record_.since_arrival_ms();
    for (const auto& [stream, event] : events) {
      if (!answer_->has_failed()) {
        if (const auto choice = answer_->take(stream, event)) streams_[stream]->cancel(*choice);
      }
      record_.note(stream, event, *answer_, begun_ms);
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
    record_.formatted(begun_ms);
  }

  /// Whether every choice has come to its end.
  bool is_complete() const {
    const auto has_ended = [](const api::Choice& choice) {
      return choice.end != api::ChoiceEnd::running;
    };
    return std::all_of(answer_->choices().begin(), answer_->choices().end(), has_ended);
  }

  /// Once the streams have ended and the client has its answer, or is gone: what is kept of it.
  void conclude() {
    if (!has_ended_ || !is_over_ || std::exchange(is_concluded_, true)) return;
    record_.conclude(is_submitted_);
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
    record_.failed(fault.code);
    format_->failed(fault, out);
    write(std::move(out));
    exchange_->end();
  }

  void over(ExchangeEnd end) {
    is_over_ = true;
    record_.over(end);
    if (end != ExchangeEnd::complete) {
      for (const auto& each : streams_) each->cancel();
    }
    if (!is_submitted_) has_ended_ = true;
    conclude();
    ticket_.reset();
  }

  ServerState& state_;
  const api::Protocol& protocol_;
  const std::shared_ptr<Exchange> exchange_;
  const std::shared_ptr<const ModelSet> models_;
  const ApiKey* const key_;  ///< may be null

  // The strand's own, once start() is done.
  GenerationRecord record_;
  std::shared_ptr<Admission::Ticket> ticket_;
  ModelEntry* model_ = nullptr;
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
    exchange->reply(unavailable_reply("Loading model", 1, error_shape(protocol.path)));
    return;
  }
  std::make_shared<Generation>(state, protocol, std::move(exchange), std::move(models))->start();
}

}  // namespace headrace::server
