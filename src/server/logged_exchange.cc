// See logged_exchange.h.
#include "server/logged_exchange.h"

#include <atomic>
#include <chrono>
#include <utility>

namespace headrace::server {
namespace {

using Clock = std::chrono::steady_clock;

class LoggedExchange final : public Exchange {
 public:
  LoggedExchange(std::shared_ptr<Exchange> exchange, std::shared_ptr<std::atomic<int>> status)
      : exchange_(std::move(exchange)), status_(std::move(status)) {}

  const HttpRequest& request() const override { return exchange_->request(); }
  std::string take_body() override { return exchange_->take_body(); }
  void reply(HttpReply reply) override {
    answered(reply.status);
    exchange_->reply(std::move(reply));
  }
  void begin(StreamHead head) override {
    answered(head.reply.status);
    exchange_->begin(std::move(head));
  }
  void write(std::string bytes) override { exchange_->write(std::move(bytes)); }
  void end() override { exchange_->end(); }
  void abort() override { exchange_->abort(); }
  size_t unsent_bytes() const override { return exchange_->unsent_bytes(); }
  bool is_over() const override { return exchange_->is_over(); }
  void on_over(std::function<void(ExchangeEnd)> then) override {
    exchange_->on_over(std::move(then));
  }
  void post(std::function<void()> work) override { exchange_->post(std::move(work)); }
  void post_long(std::function<void()> work) override { exchange_->post_long(std::move(work)); }
  void post_after(std::chrono::milliseconds time, std::function<void()> work) override {
    exchange_->post_after(time, std::move(work));
  }

 private:
  /// Only the first answer counts.
  void answered(int status) {
    int none = 0;
    status_->compare_exchange_strong(none, status);
  }

  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<std::atomic<int>> status_;
};

}  // namespace

RequestRecord record_of(const HttpRequest& request, std::string owner) {
  RequestRecord record;
  record.id = request.id;
  record.client = request.client;
  record.owner = std::move(owner);
  record.method = request.method;
  record.path = request.path;
  return record;
}

const char* end_name(ExchangeEnd end) {
  switch (end) {
    case ExchangeEnd::complete:
      return "complete";
    case ExchangeEnd::client_gone:
      return "client gone";
    case ExchangeEnd::client_stuck:
      return "stuck client";
    case ExchangeEnd::cut:
      return "cut";
  }
  return "";
}

std::shared_ptr<Exchange> logged_exchange(std::shared_ptr<Exchange> exchange, RequestLog& log,
                                          RequestRecord record) {
  auto status = std::make_shared<std::atomic<int>>(0);
  exchange->on_over(
      [&log, status, record = std::move(record), began = Clock::now()](ExchangeEnd end) mutable {
        record.end = end_name(end);
        record.status = *status;
        // A handler that failed has the answer made by who called it.
        if (record.status == 0 && end == ExchangeEnd::complete) record.status = 500;
        record.total_ms = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
        log.write(record);
      });
  return std::make_shared<LoggedExchange>(std::move(exchange), std::move(status));
}

}  // namespace headrace::server
