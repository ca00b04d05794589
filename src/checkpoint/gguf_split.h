// Models split over several GGUF files, NAME-00001-of-00005.gguf and so on: names and keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/metadata.h"
#include "headrace/result.h"

namespace headrace {

/// The name of one part. Parts are counted from 1 here, as in the file's name.
struct SplitName {
  std::string prefix;  ///< all before "-00001-of-00005.gguf", folder included
  int64_t part = 0;
  int64_t num_parts = 0;

  /// The path of another part of the same set.
  std::string path(int64_t other_part) const;
};

/// Takes a path apart; nothing if it does not end in -NNNNN-of-NNNNN.gguf.
std::optional<SplitName> parse_split_name(const std::string& path);

/// What a part says about itself: `split.no` (from 0 in the file, from 1 here), `split.count` and
/// `split.tensors.count`.
struct SplitKeys {
  int64_t part = 1;
  int64_t num_parts = 1;
  std::optional<int64_t> num_tensors;  ///< of all parts together
};

/// Nothing for a file that is not split. Errors: keys of the wrong type, or a part number that is
/// not below the count.
Result<std::optional<SplitKeys>> read_split_keys(const Metadata& metadata);

}  // namespace headrace
