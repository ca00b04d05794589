// Lines of the log: what is in them, what never is, and that nobody waits for them.
#include "server/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <streambuf>
#include <vector>

#include "server/log_rate.h"
#include "server/logged_exchange.h"

namespace headrace::server {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

RequestRecord sample_record() {
  RequestRecord record;
  record.id = "req-1";
  record.client = "127.0.0.1:4711";
  record.owner = "key-1";
  record.method = "POST";
  record.path = "/v1/chat/completions";
  record.model = "small";
  record.status = 200;
  record.end = "complete";
  record.total_ms = 412.04;
  record.queue_ms = 0.2;
  record.first_token_ms = 33;
  record.prompt_tokens = 250;
  record.cached_tokens = 200;
  record.completion_tokens = 64;
  return record;
}

/// What a log of these options writes of `records`.
std::string written(LogOptions options, const std::vector<RequestRecord>& records) {
  std::ostringstream out;
  options.to = &out;
  auto log = make_log(options);
  for (const RequestRecord& each : records) log->write(each);
  log.reset();
  return out.str();
}

TEST(Log, HasALineForARequest) {
  const std::string text = written({}, {sample_record()});
  EXPECT_THAT(text, HasSubstr(" POST /v1/chat/completions 200 412.0 ms model=small prompt=250 "
                              "cached=200 tokens=64 queue=0.2 first=33.0 key=key-1 "
                              "client=127.0.0.1:4711 id=req-1\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(Log, HasAnObjectForARequest) {
  const json line = json::parse(written({.is_json = true}, {sample_record()}));
  EXPECT_EQ(line["event"], "request");
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["id"], "req-1");
  EXPECT_EQ(line["status"], 200);
  EXPECT_EQ(line["total_ms"], 412.0);
  EXPECT_EQ(line["prompt_tokens"], 250);
  EXPECT_EQ(line["key"], "key-1");
  EXPECT_FALSE(line.contains("code"));
  EXPECT_FALSE(line["time"].get<std::string>().empty());
}

TEST(Log, WhatClientsSendStaysOnOneLine) {
  RequestRecord record = sample_record();
  record.path = "/a b\n\x1b[31m\"\\\xff" + std::string(1, '\0') + "{}%v%%";
  record.owner = "x y";
  const std::string text = written({}, {record});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_THAT(text, HasSubstr("/a\\x20b\\x0a\\x1b[31m\"\\x5c\\xff\\x00{}%v%%"));
  EXPECT_THAT(text, HasSubstr("key=x\\x20y"));
  const std::string object = written({.is_json = true}, {record});
  EXPECT_EQ(std::count(object.begin(), object.end(), '\n'), 1);
  EXPECT_THAT(json::parse(object)["path"].get<std::string>(), HasSubstr("/a b\n\x1b[31m\"\\"));
  record.path = std::string(100'000, 'x');
  EXPECT_LT(written({}, {record}).size(), 600U);
  EXPECT_LT(written({.is_json = true}, {record}).size(), 800U);
}

TEST(Log, LevelsSayWhatIsWritten) {
  RequestRecord health = sample_record();
  health.path = "/health";
  health.is_routine = true;
  RequestRecord fault = sample_record();
  fault.status = 500;
  fault.path = "/fault";
  const auto lines_at = [&](LogLevel level) {
    return written({.level = level}, {health, sample_record(), fault});
  };
  EXPECT_THAT(lines_at(LogLevel::debug), HasSubstr("/health"));
  EXPECT_THAT(lines_at(LogLevel::info), Not(HasSubstr("/health")));
  EXPECT_THAT(lines_at(LogLevel::info), HasSubstr("/v1/chat"));
  EXPECT_THAT(lines_at(LogLevel::warning), Not(HasSubstr("/v1/chat")));
  EXPECT_THAT(lines_at(LogLevel::error), HasSubstr("/fault"));
  for (const std::string& name : log_level_names()) EXPECT_TRUE(log_level_of(name));
  EXPECT_FALSE(log_level_of("loud"));
}

TEST(Log, TellsWhatWentWrong) {
  RequestRecord record;
  record.method = "POST";
  record.path = "/completion";
  record.status = 429;
  record.end = "refused";
  record.code = "overloaded";
  record.num_left_out = 17;
  EXPECT_THAT(written({}, {record}),
              HasSubstr("429 0.0 ms end=refused code=overloaded and 17 more like it\n"));
  EXPECT_EQ(json::parse(written({.is_json = true}, {record}))["left_out"], 17);
}

TEST(Log, NotesAreLinesToo) {
  std::ostringstream out;
  auto log = make_log({.to = &out});
  log->note(LogLevel::info, "serves \xc3\xa4\nnow {}");
  log->note(LogLevel::warning, "hot");
  log.reset();
  EXPECT_THAT(out.str(), HasSubstr(" serves \xc3\xa4\\x0anow {}\n"));
  EXPECT_THAT(out.str(), HasSubstr(" warning: hot\n"));
}

/// Takes nothing until it is opened.
class ClosedStream : public std::streambuf {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }

 private:
  std::streamsize xsputn(const char* /*bytes*/, std::streamsize count) override {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return is_open_; });
    return count;
  }
  int_type overflow(int_type c) override { return c; }

  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
};

TEST(Log, NobodyWaitsForATerminal) {
  ClosedStream closed;
  std::ostream out(&closed);
  auto log = make_log({.to = &out, .max_waiting = 16});
  for (int i = 0; i < 1000; ++i) log->write(sample_record());  // would never return
  EXPECT_GE(log->num_dropped(), 1000 - 16 - 2);
  closed.open();
  log.reset();
}

TEST(Log, NotEvenItsEndWaitsForLong) {
  // The thread that writes is still there at the end, and so must be what it writes to.
  static ClosedStream& closed = *new ClosedStream;
  static std::ostream& out = *new std::ostream(&closed);
  auto log = make_log({.to = &out});
  log->write(sample_record());
  const auto begin = std::chrono::steady_clock::now();
  log.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  closed.open();
}

TEST(LogRate, WritesSoManyASecondAndCountsTheRest) {
  LogRate rate(2);
  const LogRate::Time begin = std::chrono::steady_clock::now();
  EXPECT_EQ(rate.take(begin), 0);
  EXPECT_EQ(rate.take(begin), 0);
  EXPECT_FALSE(rate.take(begin));
  EXPECT_FALSE(rate.take(begin + std::chrono::milliseconds(999)));
  EXPECT_EQ(rate.take(begin + std::chrono::seconds(1)), 2);
  EXPECT_EQ(rate.take(begin + std::chrono::seconds(1)), 0);
}

/// An exchange that a test ends.
class FakeExchange final : public Exchange {
 public:
  FakeExchange() { request_.id = "req-7"; }
  const HttpRequest& request() const override { return request_; }
  std::string take_body() override { return ""; }
  void reply(HttpReply /*reply*/) override { ++num_replies; }
  void begin(StreamHead /*head*/) override { ++num_replies; }
  void write(std::string /*bytes*/) override {}
  void end() override {}
  void abort() override {}
  size_t unsent_bytes() const override { return 0; }
  bool is_over() const override { return false; }
  void on_over(std::function<void(ExchangeEnd)> then) override { over.push_back(std::move(then)); }
  void post(std::function<void()> work) override { work(); }
  void post_long(std::function<void()> work) override { work(); }
  void post_after(std::chrono::milliseconds /*time*/, std::function<void()> /*work*/) override {}

  int num_replies = 0;
  std::vector<std::function<void(ExchangeEnd)>> over;

 private:
  HttpRequest request_;
};

class KeptLog final : public RequestLog {
 public:
  void write(const RequestRecord& record) override { records.push_back(record); }
  std::vector<RequestRecord> records;
};

RequestRecord recorded(const std::vector<int>& statuses, ExchangeEnd end) {
  KeptLog log;
  const auto fake = std::make_shared<FakeExchange>();
  auto exchange = logged_exchange(fake, log, record_of(fake->request(), "me"));
  for (const int status : statuses) exchange->reply({.status = status});
  EXPECT_EQ(fake->num_replies, static_cast<int>(statuses.size()));
  exchange.reset();
  for (const auto& each : fake->over) each(end);
  EXPECT_EQ(log.records.size(), 1U);
  return log.records.empty() ? RequestRecord() : log.records[0];
}

TEST(LoggedExchange, TellsHowItWent) {
  const RequestRecord record = recorded({404, 200}, ExchangeEnd::complete);
  EXPECT_EQ(record.id, "req-7");
  EXPECT_EQ(record.owner, "me");
  EXPECT_EQ(record.status, 404);  // only the first answer counts
  EXPECT_EQ(record.end, "complete");
  EXPECT_EQ(recorded({}, ExchangeEnd::client_gone).status, 0);
  EXPECT_EQ(recorded({}, ExchangeEnd::client_gone).end, "client gone");
  EXPECT_EQ(recorded({}, ExchangeEnd::complete).status, 500);
}

}  // namespace
}  // namespace headrace::server
