// --session: the file that a command begins with and leaves behind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "headrace/engine.h"

namespace headrace::cli {

struct SessionArgs {
  std::string file;  ///< empty: none
  bool read_only = false;
};

/// --session and --session-read-only.
void add_session_options(std::vector<Option>& options, SessionArgs& args, std::string help);

/// Error: read_only without a file.
Result<void> check_session_args(const SessionArgs& args);
/// Before a model is opened. Errors: a file that cannot be written, or with read_only is not there.
Result<void> check_session_file(const SessionArgs& args);

class SessionKeeper {
 public:
  /// `args` and `engine` must outlive it. `scope`: see prefix_scope().
  SessionKeeper(const SessionArgs& args, Engine& engine, std::string scope)
      : args_(args), engine_(engine), scope_(std::move(scope)), file_(args.file) {}

  bool is_on() const { return !args_.file.empty(); }
  bool is_read_only() const { return args_.read_only; }
  /// Where it is saved.
  const std::string& file() const { return file_; }

  /// What the file holds; nothing, if there is none of that name yet. Errors: those of
  /// Engine::load_session: a file that cannot be used is never taken for none.
  Result<std::optional<LoadedSession>> load();
  /// Writes the file, unless it is only to be read. Where somebody else wrote it since load() or
  /// the last save, it stays as it is, and another name beside it is taken, with a warning. A
  /// Ctrl-C or SIGTERM meanwhile is without effect. Errors: those of Engine::save_session.
  Result<void> save(std::span<const TokenId> tokens, std::string_view note);

  /// Whether load() found a file.
  bool has_loaded() const { return has_loaded_; }
  // Of the last load and save.
  int64_t num_loaded() const { return num_loaded_; }
  int64_t num_saved() const { return num_saved_; }
  /// For people, a line for standard error.
  std::string stats_text() const;

 private:
  /// What tells one content of the file from another: nothing where there is none.
  using Stamp = std::optional<std::pair<std::filesystem::file_time_type, uintmax_t>>;
  Stamp stamp() const;

  const SessionArgs& args_;
  Engine& engine_;
  std::string scope_;
  std::string file_;
  Stamp seen_;  ///< when it was loaded or saved
  bool has_loaded_ = false;
  int64_t num_loaded_ = 0;
  int64_t num_saved_ = 0;
  double load_ms_ = 0;
  double save_ms_ = 0;
};

}  // namespace headrace::cli
