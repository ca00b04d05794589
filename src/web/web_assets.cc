// See web_assets.h. The table itself is made by web_assets.cmake.
#include "web/web_assets.h"

#include <zlib.h>

#include <algorithm>

namespace headrace::web {
namespace {

constexpr int kGzipOnly = 15 + 16;  // zlib's window bits: the largest window, a gzip header

/// Ends an inflate however the function that began it is left.
struct Inflating {
  z_stream stream{};
  ~Inflating() { inflateEnd(&stream); }
};

}  // namespace

const WebAsset* find_web_asset(std::string_view path) {
  const std::span<const WebAsset> assets = web_assets();
  const auto found = std::lower_bound(
      assets.begin(), assets.end(), path,
      [](const WebAsset& asset, std::string_view wanted) { return asset.path < wanted; });
  return found != assets.end() && found->path == path ? &*found : nullptr;
}

Result<std::string> plain(const WebAsset& asset) {
  Inflating inflating;
  z_stream& stream = inflating.stream;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) {
    return Error{ErrorCode::resource_exhausted, "no memory to inflate", std::string(asset.path),
                 ""};
  }
  std::string out(asset.plain_bytes, '\0');
  // zlib's interface is older than const.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(asset.gzip.data()));
  stream.avail_in = static_cast<uInt>(asset.gzip.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  if (status != Z_STREAM_END || stream.total_out != out.size() || stream.avail_in != 0) {
    return Error{ErrorCode::corrupt_data, "not a gzip member of the length that the table states",
                 std::string(asset.path), ""};
  }
  return out;
}

}  // namespace headrace::web
