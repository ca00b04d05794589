// See hub_api.h.
#include "store/hub_api.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_depth.h"
#include "store/file_names.h"
#include "store/http_download.h"

namespace headrace {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr size_t kMaxFiles = 100'000;
constexpr size_t kSha1Digits = 40;
constexpr size_t kSha256Digits = 64;

Error bad_listing(std::string message, std::string where) {
  return {ErrorCode::corrupt_data, "the hub's answer is not understood: " + std::move(message),
          std::move(where), "is HF_ENDPOINT the address of a model hub?"};
}

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_of(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

/// The first of the keys that holds a checksum of `digits` digits; "" where none is there. Errors:
/// one is there, and is none.
Result<std::string> checksum(const Json& object, std::initializer_list<const char*> keys,
                             size_t digits, const std::string& where) {
  for (const char* key : keys) {
    const std::string text = text_of(object, key);
    if (text.empty()) continue;
    const std::string sum = lower_case(text.starts_with("sha256:") ? text.substr(7) : text);
    if (is_hex(sum, digits)) return sum;
    return bad_listing(std::string(key) + " is no checksum", where);
  }
  return std::string();
}

uint64_t size_of(const Json& object, uint64_t otherwise) {
  const Json* size = member(object, "size");
  return size != nullptr && size->is_number_unsigned() ? size->get<uint64_t>() : otherwise;
}

Result<RepoFile> read_file_entry(const Json& entry) {
  RepoFile file;
  file.path = text_of(entry, "rfilename");
  HEADRACE_TRY(check_file_name(file.path));
  file.size_bytes = size_of(entry, 0);
  HEADRACE_ASSIGN(file.blob_id, checksum(entry, {"blobId", "oid"}, kSha1Digits, file.path));
  if (const Json* lfs = member(entry, "lfs")) {
    HEADRACE_ASSIGN(file.sha256, checksum(*lfs, {"sha256", "oid"}, kSha256Digits, file.path));
    file.size_bytes = size_of(*lfs, file.size_bytes);
    file.blob_id.clear();  // of the pointer
  }
  return file;
}

std::string license_of(const Json& root) {
  const Json* card = member(root, "cardData");
  if (card != nullptr) {
    const std::string license = text_of(*card, "license");
    const std::string name = text_of(*card, "license_name");
    if (!name.empty() && (license.empty() || license == "other")) return name.substr(0, 100);
    if (!license.empty()) return license.substr(0, 100);
  }
  const Json* tags = member(root, "tags");
  if (tags == nullptr || !tags->is_array()) return "";
  constexpr std::string_view kTag = "license:";
  for (const Json& tag : *tags) {
    if (!tag.is_string()) continue;
    const auto& text = tag.get_ref<const std::string&>();
    if (text.starts_with(kTag)) return text.substr(kTag.size(), 100);
  }
  return "";
}

}  // namespace

std::string listing_url(const std::string& endpoint, const std::string& repo,
                        const std::string& revision) {
  std::string escaped = url_escaped(revision);
  for (size_t at = 0; (at = escaped.find('/', at)) != std::string::npos;) {
    escaped.replace(at, 1, "%2F");
  }
  return endpoint + "/api/models/" + url_escaped(repo) + "/revision/" + escaped + "?blobs=true";
}

std::string file_url(const std::string& endpoint, const std::string& repo,
                     const std::string& revision, const std::string& file) {
  return endpoint + "/" + url_escaped(repo) + "/resolve/" + url_escaped(revision) + "/" +
         url_escaped(file);
}

bool is_commit(std::string_view text) {
  return is_hex(text, kSha1Digits);
}

Result<RepoListing> parse_listing(std::string_view text) {
  if (json_depth(text) > kMaxDepth) return bad_listing("it nests deeper than 64", "");
  const Json root = Json::parse(text, nullptr, false);
  if (!root.is_object()) return bad_listing("expected a JSON object", "");
  RepoListing listing;
  listing.commit = text_of(root, "sha");
  if (!is_commit(listing.commit)) return bad_listing("expected a commit of 40 digits", "sha");
  listing.license = license_of(root);
  const Json* gated = member(root, "gated");
  listing.is_gated = gated != nullptr && !(gated->is_boolean() && !gated->get<bool>());
  const Json* siblings = member(root, "siblings");
  if (siblings == nullptr || !siblings->is_array()) {
    return bad_listing("expected an array of files", "siblings");
  }
  if (siblings->size() > kMaxFiles) {
    return bad_listing("more than " + std::to_string(kMaxFiles) + " files", "siblings");
  }
  for (const Json& entry : *siblings) {
    HEADRACE_ASSIGN(RepoFile file, read_file_entry(entry));
    listing.files.push_back(std::move(file));
  }
  return listing;
}

}  // namespace headrace
