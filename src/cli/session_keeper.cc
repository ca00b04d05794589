// See session_keeper.h.
#include "cli/session_keeper.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "app/session_target.h"
#include "base/os/signals.h"
#include "cli/make_option.h"
#include "cli/report.h"

namespace headrace::cli {
namespace {

/// Milliseconds since it was made.
class Watch {
 public:
  double ms() const {
    const std::chrono::duration<double, std::milli> past = std::chrono::steady_clock::now() - from_;
    return past.count();
  }

 private:
  std::chrono::steady_clock::time_point from_ = std::chrono::steady_clock::now();
};

/// "NAME.2", or the next number for which there is no file.
std::string unused_name(const std::string& name) {
  std::error_code ignored;
  for (int i = 2;; ++i) {
    std::string tried = name + "." + std::to_string(i);
    if (!std::filesystem::exists(tried, ignored)) return tried;
  }
}

}  // namespace

void add_session_options(std::vector<Option>& options, SessionArgs& args, std::string help) {
  options.push_back(path_option("--session,--prompt-cache", "FILE", std::move(help), &args.file));
  options.push_back(make_option("--session-read-only,--prompt-cache-ro", "",
                                "Use the file of --session and leave it as it is",
                                &args.read_only));
}

Result<void> check_session_args(const SessionArgs& args) {
  if (!args.read_only || !args.file.empty()) return {};
  return Error{ErrorCode::invalid_argument, "no file is given", "--session-read-only",
               "give one with --session FILE"};
}

Result<void> check_session_file(const SessionArgs& args) {
  if (args.file.empty()) return {};
  if (!args.read_only) return check_session_target(args.file);
  std::error_code ignored;
  if (std::filesystem::exists(args.file, ignored)) return {};
  return Error{ErrorCode::not_found, "there is no such session file", args.file,
               "save one first, without --session-read-only"};
}

Result<std::optional<LoadedSession>> SessionKeeper::load() {
  const Watch watch;
  seen_ = stamp();
  auto loaded = engine_.load_session(args_.file, scope_);
  if (!loaded.ok()) {
    if (loaded.error().code == ErrorCode::not_found && !args_.read_only) {
      return std::optional<LoadedSession>();
    }
    return std::move(loaded).error();
  }
  load_ms_ = watch.ms();
  has_loaded_ = true;
  num_loaded_ = static_cast<int64_t>(loaded->tokens.size());
  return std::optional(std::move(loaded).value());
}

SessionKeeper::Stamp SessionKeeper::stamp() const {
  std::error_code time_error;
  std::error_code size_error;
  const auto time = std::filesystem::last_write_time(file_, time_error);
  const auto size = std::filesystem::file_size(file_, size_error);
  if (time_error || size_error) return std::nullopt;
  return std::pair(time, size);
}

Result<void> SessionKeeper::save(std::span<const TokenId> tokens, std::string_view note) {
  if (!is_on() || args_.read_only) return {};
  const InterruptGuard guard({.catch_terminate = true});
  const Watch watch;
  if (stamp() != seen_) {
    file_ = unused_name(args_.file);
    warn(args_.file + " was written by another program meanwhile; this goes to " + file_);
  }
  HEADRACE_ASSIGN(num_saved_, engine_.save_session(tokens, scope_, file_, note));
  seen_ = stamp();
  save_ms_ = watch.ms();
  return {};
}

std::string SessionKeeper::stats_text() const {
  return fmt::format("session     {:6} tokens loaded in {:.1f} ms, {} saved in {:.1f} ms\n",
                     num_loaded_, load_ms_, num_saved_, save_ms_);
}

}  // namespace headrace::cli
