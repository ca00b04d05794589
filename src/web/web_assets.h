// The files of the page, compressed, as they are in the binary. Owns the table and how to inflate
// an entry. Must not know: HTTP, or what is in the files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "headrace/result.h"

namespace headrace::web {

/// One file of the page. All views live as long as the program.
struct WebAsset {
  std::string_view path;          ///< below the server's root, from "/": "/assets/app.js"
  std::string_view content_type;  ///< "text/javascript; charset=utf-8"
  std::string_view gzip;          ///< its bytes as a gzip member
  std::string_view etag;          ///< in its quotes, of the compressed bytes
  size_t plain_bytes = 0;         ///< inflated
};

/// All files, sorted by path.
std::span<const WebAsset> web_assets();

/// The file at `path`, exactly as written there, or null.
const WebAsset* find_web_asset(std::string_view path);

/// The file inflated, for a client that takes no gzip. Error: corrupt_data, if the bytes are not
/// those of `plain_bytes` (never for an entry of web_assets()); resource_exhausted.
Result<std::string> plain(const WebAsset& asset);

}  // namespace headrace::web
