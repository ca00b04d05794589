// See batch_files.h.
#include "api/batch_files.h"

#include <filesystem>
#include <utility>

#include "api/batch_reader.h"

namespace headrace::api {

namespace fs = std::filesystem;

Result<InputStream> open_batch_input(const std::string& path) {
  if (path == "-") return InputStream::standard_input();
  return InputStream::open(path);
}

bool can_go_on_with(const std::string& output) {
  std::error_code ignored;
  return output != "-" && (!fs::exists(output, ignored) || fs::is_regular_file(output, ignored));
}

Result<std::optional<FileLock>> lock_batch_output(const std::string& output) {
  std::error_code ignored;
  if (output != "-" && fs::is_directory(output, ignored)) {
    return Error{ErrorCode::io_error, "a directory, not a file", output, "name a file in it"};
  }
  if (!can_go_on_with(output)) return std::optional<FileLock>();
  auto lock = FileLock::acquire(output, [] { return false; });
  if (lock.ok()) return std::optional<FileLock>(std::move(lock).value());
  if (lock.error().code == ErrorCode::cancelled) {
    return Error{ErrorCode::io_error, "another batch run is writing it", output,
                 "wait for that one, or name another file"};
  }
  return Error{ErrorCode::io_error, "cannot be written", output, "check its folder and rights"};
}

Result<AnsweredLines> read_answered(const std::string& input, const std::string& output,
                                    const ServedModel& model) {
  if (!can_go_on_with(output)) return AnsweredLines();
  HEADRACE_ASSIGN(InputStream file, InputStream::open(output));
  auto answered = AnsweredLines::read(file, model);
  if (!answered.ok()) return std::move(answered).error().at(output);
  // What comes from a pipe can be read only once.
  std::error_code ignored;
  if (answered->num_lines() > 0 && fs::is_regular_file(input, ignored)) {
    HEADRACE_ASSIGN(InputStream in, InputStream::open(input));
    auto checked = check_answers_of(std::move(in), model.limits, *answered);
    if (!checked.ok()) return std::move(checked).error().at(output);
  }
  return answered;
}

Result<AppendFile> open_batch_output(const std::string& output, const AnsweredLines& answered) {
  if (output == "-") return AppendFile::standard_output();
  HEADRACE_ASSIGN(AppendFile file, AppendFile::open(output));
  if (file.is_regular()) HEADRACE_TRY(file.truncate(answered.whole_bytes()));
  return file;
}

}  // namespace headrace::api
