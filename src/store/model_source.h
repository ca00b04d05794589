// Where a user says that a model comes from: `hf:org/repo@rev:file-or-quant`, an address, a
// package, or a name. Must not know how any of them is fetched.
#pragma once

#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace {

enum class SourceKind {
  name,     ///< of the catalogue or the store
  hub,      ///< a repository of a model hub
  url,      ///< one file
  package,  ///< of the Python package index
};

struct ModelSource {
  SourceKind kind = SourceKind::name;
  std::string name;      ///< of `name`: as given
  std::string repo;      ///< of `hub`: "org/repo", or "repo"
  std::string revision;  ///< of `hub`: a branch, tag or commit; "main" unless given
  std::string url;
  std::string package;
  std::string version;   ///< of `package`; empty: the newest
  std::string selector;  ///< of `hub` and `package`: a file or a quantisation; may be empty

  /// The source as it can be given again: "hf:org/repo:Q8_0". Of an address without what is behind
  /// its question mark, which may be a secret.
  std::string to_string() const;
};

/// Reads what a user gave. "org/repo[...]" without "hf:" is of the hub too. Errors:
/// invalid_argument, with what is wrong and how it is written.
Result<ModelSource> parse_model_source(std::string_view text);

/// The file that an address names: the last part of its path, "%20" decoded, without a query.
std::string url_file_name(std::string_view url);

}  // namespace headrace
