// What a model hub answers about a repository: addresses and the JSON of its API. Must not know how
// it is fetched. Source: the hub's OpenAPI description, and huggingface_hub.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"
#include "store/select_files.h"

namespace headrace {

struct RepoListing {
  std::string commit;   ///< 40 hexadecimal digits
  std::string license;  ///< SPDX id or the licence's name; may be empty
  bool is_gated = false;
  std::vector<RepoFile> files;  ///< names are checked
};

/// {endpoint}/api/models/{repo}/revision/{revision}?blobs=true
std::string listing_url(const std::string& endpoint, const std::string& repo,
                        const std::string& revision);
/// {endpoint}/{repo}/resolve/{revision}/{file}
std::string file_url(const std::string& endpoint, const std::string& repo,
                     const std::string& revision, const std::string& file);

inline constexpr size_t kMaxListingBytes = size_t{32} << 20;

/// Reads the API's answer. Errors: corrupt_data (no JSON, no commit, a file's name that leads out
/// of the folder, a checksum that is none), which name the key.
Result<RepoListing> parse_listing(std::string_view text);

/// A commit as git writes it: 40 hexadecimal digits.
bool is_commit(std::string_view text);

}  // namespace headrace
