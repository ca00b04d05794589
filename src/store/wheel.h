// Reads files out of a wheel (a zip archive): their names, and one of them in pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "headrace/result.h"
#include "store/select_files.h"

namespace headrace {

/// The files of a wheel, with their sizes when unpacked. Errors: corrupt_data (not a zip file, a
/// name that leads out of the folder, a file without a size, far more files than a package has).
Result<std::vector<RepoFile>> list_wheel(const std::string& wheel);

/// Gives the bytes of `member` to `sink`, in order, until it returns an error. Errors: not_found
/// (no such member), corrupt_data (not a zip file, damaged), the sink's.
Result<void> read_wheel_member(const std::string& wheel, const std::string& member,
                               const std::function<Result<void>(std::span<const std::byte>)>& sink);

}  // namespace headrace
