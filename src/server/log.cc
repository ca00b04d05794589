// See log.h.
#include "server/log.h"

#include <fmt/format.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <ostream>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/standard_error.h"

namespace headrace::server {
namespace {

constexpr size_t kLongestField = 200;
/// That the last lines have when the log ends.
constexpr std::chrono::seconds kLastWait{2};

/// One word, whatever a client sent: anything that is no visible ASCII is escaped.
std::string one_word(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kLongestField)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '\\') {
      out.push_back(c);
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  if (text.size() > kLongestField) out += "...";
  return out.empty() ? "-" : out;
}

/// A line of text: as it is but for control characters.
std::string one_line_of(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out.push_back(c);
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  return out;
}

LogLevel level_of(const RequestRecord& record) {
  // Expected of a server that loads or drains, and of a request with a timeout.
  if (record.status == 503 || record.status == 504) return LogLevel::info;
  if (record.status >= 500) return LogLevel::error;
  if (record.end == "failed" || record.end == "stuck client") return LogLevel::warning;
  return record.is_routine && record.status < 400 ? LogLevel::debug : LogLevel::info;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  constexpr std::array kLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                               spdlog::level::err};
  return kLevels[static_cast<size_t>(level)];
}

std::string as_words(const RequestRecord& record) {
  std::string out = fmt::format("{} {} {} {:.1f} ms", one_word(record.method),
                                one_word(record.path), record.status, record.total_ms);
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) out += fmt::format(" {}={}", name, one_word(value));
  };
  add("model", record.model);
  if (record.prompt_tokens > 0) {
    out += fmt::format(" prompt={} cached={} tokens={} queue={:.1f} first={:.1f}",
                       record.prompt_tokens, record.cached_tokens, record.completion_tokens,
                       record.queue_ms, record.first_token_ms);
  }
  if (record.end != "complete") {
    std::string end = record.end;
    std::replace(end.begin(), end.end(), ' ', '-');
    add("end", end);
  }
  add("code", record.code);
  add("key", record.owner);
  add("client", record.client);
  add("id", record.id);
  if (record.num_left_out > 0) {
    out += fmt::format(" and {} more like it", record.num_left_out);
  }
  return out;
}

double in_tenths(double ms) {
  return std::round(ms * 10) / 10;
}

/// The members of an object, without its braces: the time and the level come before them.
std::string as_members(const RequestRecord& record) {
  nlohmann::ordered_json json = {
      {"event", "request"},
      {"id", record.id},
      {"client", record.client},
      {"key", record.owner},
      {"method", record.method},
      {"path", record.path.substr(0, kLongestField)},
      {"status", record.status},
      {"end", record.end},
      {"total_ms", in_tenths(record.total_ms)},
  };
  if (!record.code.empty()) json["code"] = record.code;
  if (!record.model.empty()) json["model"] = record.model;
  if (record.prompt_tokens > 0) {
    json["prompt_tokens"] = record.prompt_tokens;
    json["cached_tokens"] = record.cached_tokens;
    json["completion_tokens"] = record.completion_tokens;
    json["queue_ms"] = in_tenths(record.queue_ms);
    json["first_token_ms"] = in_tenths(record.first_token_ms);
  }
  if (record.num_left_out > 0) json["left_out"] = record.num_left_out;
  const std::string text = json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

/// Knows how many lines are with their reader.
class LineSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit LineSink(std::ostream* to) : to_(to) {}
  int64_t num_written() const { return num_written_; }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (to_ != nullptr) {
      to_->write(line.data(), static_cast<std::streamsize>(line.size()));
    } else {
      write_standard_error({line.data(), line.size()});  // who does not read misses it
    }
    ++num_written_;
  }
  void flush_() override {}  // standard error keeps nothing back

  std::ostream* const to_;
  std::atomic<int64_t> num_written_ = 0;
};

/// Whose end would be waited for; never destroyed, and always reachable.
void keep_for_ever(std::shared_ptr<spdlog::details::thread_pool> pool) {
  static std::mutex& mutex = *new std::mutex;
  static auto& kept = *new std::vector<std::shared_ptr<spdlog::details::thread_pool>>;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(pool));
}

class SpdLog final : public ServerLog {
 public:
  explicit SpdLog(const LogOptions& options)
      : is_json_(options.is_json),
        sink_(std::make_shared<LineSink>(options.to)),
        pool_(std::make_shared<spdlog::details::thread_pool>(options.max_waiting, 1)) {
    logger_ = std::make_shared<spdlog::async_logger>("server", sink_, pool_,
                                                     spdlog::async_overflow_policy::overrun_oldest);
    logger_->set_pattern(is_json_ ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})"
                                  : "%Y-%m-%d %H:%M:%S.%e %v");
    logger_->set_level(spdlog_level(options.level));
  }
  ~SpdLog() override {
    const auto end = std::chrono::steady_clock::now() + kLastWait;
    while (sink_->num_written() + num_dropped() < num_put_) {
      if (std::chrono::steady_clock::now() > end) {
        // Its thread would be waited for as long as nobody reads: it ends with the process.
        keep_for_ever(std::move(pool_));
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  SpdLog(const SpdLog&) = delete;
  SpdLog& operator=(const SpdLog&) = delete;

  void write(const RequestRecord& record) override {
    const auto level = spdlog_level(level_of(record));
    if (!logger_->should_log(level)) return;
    put(level, is_json_ ? as_members(record) : as_words(record));
  }

  void note(LogLevel level, std::string_view text) override {
    const auto at = spdlog_level(level);
    if (!logger_->should_log(at)) return;
    if (!is_json_) {
      const bool is_fault = level >= LogLevel::warning;
      put(at, (is_fault ? fmt::format("{}: ", log_level_names()[static_cast<size_t>(level)]) : "") +
                  one_line_of(text));
      return;
    }
    const nlohmann::json json = text;
    put(at, R"("event":"note","text":)" +
                json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  }

  int64_t num_dropped() const override { return static_cast<int64_t>(pool_->overrun_counter()); }

 private:
  void put(spdlog::level::level_enum level, const std::string& line) {
    ++num_put_;
    logger_->log(level, spdlog::string_view_t(line.data(), line.size()));
  }

  const bool is_json_;
  const std::shared_ptr<LineSink> sink_;
  std::atomic<int64_t> num_put_ = 0;
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  std::shared_ptr<spdlog::async_logger> logger_;
};

}  // namespace

const std::vector<std::string>& log_level_names() {
  static const std::vector<std::string> kNames = {"debug", "info", "warning", "error"};
  return kNames;
}

std::optional<LogLevel> log_level_of(std::string_view name) {
  const auto& names = log_level_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<LogLevel>(found - names.begin());
}

std::unique_ptr<ServerLog> make_log(const LogOptions& options) {
  return std::make_unique<SpdLog>(options);
}

}  // namespace headrace::server
