// A folder that holds a model in several files, and the rule that none of them lies elsewhere. Must
// not know what is in the files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/os/mapped_file.h"
#include "headrace/result.h"

namespace headrace {

/// A file is inside of the folder if its path, links followed, is. In Hugging Face's cache
/// (models--ORG--NAME/snapshots/REVISION) files are links into models--ORG--NAME/blobs, which
/// counts as inside.
class ModelDirectory {
 public:
  /// Errors: not_found, io_error (no folder).
  static Result<ModelDirectory> open(const std::string& path);

  /// As the user gave it.
  const std::string& path() const { return path_; }
  std::string path_of(std::string_view name) const;

  bool has(std::string_view name) const;
  /// `name` is relative to the folder. Errors: invalid_argument (a name or link that leaves the
  /// folder); those of MappedFile::open.
  Result<MappedFile> open_file(std::string_view name) const;
  /// Nothing where the file is absent or empty.
  Result<std::optional<MappedFile>> open_optional(std::string_view name) const;

 private:
  Result<void> check_inside(std::string_view name) const;

  std::string path_;
  std::string root_;   ///< what links may not leave, in its canonical form
  std::string blobs_;  ///< or empty
};

/// The bytes of a file as text.
std::string_view text_of(const MappedFile& file);

}  // namespace headrace
