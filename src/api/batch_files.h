// The two files of a batch run: what may be gone on with, and under which conditions. Must not know
// the command line's words.
#pragma once

#include <optional>
#include <string>

#include "api/answered_lines.h"
#include "api/served_model.h"
#include "base/os/append_file.h"
#include "base/os/file_lock.h"
#include "base/os/input_stream.h"
#include "headrace/result.h"

namespace headrace::api {

/// "-" is standard input. Errors: not_found, io_error.
Result<InputStream> open_batch_input(const std::string& path);

/// Whether a later run can go on with this output: a file on a disk, or one that is not there yet;
/// not standard output ("-"), a pipe or a device.
bool can_go_on_with(const std::string& output);

/// Keeps other runs from writing the output, as long as it lives; makes the file where it is
/// absent. Nothing where nobody can go on with it. Errors: io_error (another run has it; it is a
/// folder, or cannot be written).
Result<std::optional<FileLock>> lock_batch_output(const std::string& output);

/// What is answered in the output already. Where the input is a file on a disk too, each answer
/// must be to one of its lines. Errors: those of reading; mismatch: answers of another model or to
/// another input, or no answers at all.
Result<AnsweredLines> read_answered(const std::string& input, const std::string& output,
                                    const ServedModel& model);

/// To write behind what is answered; a line that was cut is removed. Errors: io_error.
Result<AppendFile> open_batch_output(const std::string& output, const AnsweredLines& answered);

}  // namespace headrace::api
