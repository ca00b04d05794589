// How commands speak: errors and warnings on standard error, results on standard output. With
// --json a failure also prints {"error": {"code", "message", "where", "hint"}} on standard output,
// so that a program always reads one JSON value.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace::cli {

/// For work that failed: prints one line, `headrace: error: WHERE: MESSAGE (HINT)`; returns
/// kFailed.
int fail(const Error& error, bool json);

/// For a fault of the command line itself, not of what a file or stream that it names holds:
/// prints one line, `headrace COMMAND: WHERE: MESSAGE (HINT); see headrace COMMAND --help`; returns
/// kWrongUsage. `command` may be empty.
int fail_usage(std::string_view command, const Error& error, bool json);

/// Prints `headrace: warning: TEXT` on standard error.
void warn(std::string_view text);

/// Writes text to standard output as it is. Untrusted text must be `printable` already.
void print(std::string_view text);

/// Writes one JSON value and a line end; bytes that are not UTF-8 become U+FFFD.
void print_json(const nlohmann::json& value);

/// Whether everything printed has reached its file; false once a write has failed (full disk).
bool flush_output();

}  // namespace headrace::cli
