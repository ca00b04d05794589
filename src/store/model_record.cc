// See model_record.h.
#include "store/model_record.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/json_depth.h"
#include "store/file_names.h"
#include "store/sha256.h"
#include "store/small_file.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kMaxRecordDepth = 8;
constexpr size_t kMaxRecordBytes = size_t{4} << 20;
constexpr size_t kMaxNameBytes = 200;
constexpr size_t kMaxRecordedFiles = 20'000;

Error bad_record(const char* key) {
  return {ErrorCode::corrupt_data, "the store's note of a model is damaged", key,
          "pull the model again"};
}

Result<std::string> text_member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return bad_record(key);
  return found->get<std::string>();
}

Result<RecordedFile> parse_file(const Json& value) {
  if (!value.is_object()) return bad_record("files");
  RecordedFile file;
  HEADRACE_ASSIGN(file.path, text_member(value, "path"));
  HEADRACE_TRY(check_file_name(file.path));
  HEADRACE_ASSIGN(file.sha256, text_member(value, "sha256"));
  const auto size = value.find("size_bytes");
  const auto ours = value.find("ours");
  if (size == value.end() || !size->is_number_unsigned()) return bad_record("size_bytes");
  if (ours == value.end() || !ours->is_boolean()) return bad_record("ours");
  file.size_bytes = size->get<uint64_t>();
  file.is_ours = ours->get<bool>();
  return file;
}

/// "org/repo:file" as the name of one file.
std::string escaped_name(std::string_view name) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : name) {
    if (c != '%' && is_plain_word(std::string{'a', c})) {
      text += c;
    } else {
      text += '%';
      text += kDigits[static_cast<unsigned char>(c) >> 4];
      text += kDigits[static_cast<unsigned char>(c) & 15];
    }
  }
  return text;
}

}  // namespace

uint64_t ModelRecord::size_bytes() const {
  uint64_t total = 0;
  for (const RecordedFile& file : files) total += file.size_bytes;
  return total;
}

Result<ModelRecord> parse_record(std::string_view text) {
  if (json_depth(text) > kMaxRecordDepth) return bad_record("");
  const Json root = Json::parse(text, nullptr, false);
  if (!root.is_object()) return bad_record("");
  ModelRecord record;
  HEADRACE_ASSIGN(record.name, text_member(root, "name"));
  HEADRACE_ASSIGN(record.source, text_member(root, "source"));
  HEADRACE_ASSIGN(record.repo, text_member(root, "repo"));
  HEADRACE_ASSIGN(record.commit, text_member(root, "commit"));
  HEADRACE_ASSIGN(record.path, text_member(root, "path"));
  HEADRACE_ASSIGN(record.format, text_member(root, "format"));
  HEADRACE_ASSIGN(record.quantization, text_member(root, "quantization"));
  HEADRACE_ASSIGN(record.license, text_member(root, "license"));
  if (!check_file_name(record.name).ok()) return bad_record("name");
  const auto requests = root.find("requests");
  if (requests == root.end() || !requests->is_array()) return bad_record("requests");
  for (const Json& request : *requests) {
    if (!request.is_string()) return bad_record("requests");
    record.requests.push_back(request.get<std::string>());
  }
  const auto files = root.find("files");
  if (files == root.end() || !files->is_array() || files->size() > kMaxRecordedFiles) {
    return bad_record("files");
  }
  for (const Json& value : *files) {
    HEADRACE_ASSIGN(RecordedFile file, parse_file(value));
    record.files.push_back(std::move(file));
  }
  return record;
}

std::string format_record(const ModelRecord& record) {
  Json files = Json::array();
  for (const RecordedFile& file : record.files) {
    files.push_back({{"path", file.path},
                     {"size_bytes", file.size_bytes},
                     {"sha256", file.sha256},
                     {"ours", file.is_ours}});
  }
  const Json root = {{"name", record.name},         {"source", record.source},
                     {"requests", record.requests}, {"repo", record.repo},
                     {"commit", record.commit},     {"path", record.path},
                     {"format", record.format},     {"quantization", record.quantization},
                     {"license", record.license},   {"files", files}};
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string RecordBook::path_of(std::string_view name) const {
  std::string file = escaped_name(name);
  if (file.size() > kMaxNameBytes) {  // as a file system takes no longer one
    Sha256 hash;
    hash.update(std::as_bytes(std::span(name.data(), name.size())));
    file = hash.finish();
  }
  return (fs::path(root_) / ".records" / (file + ".json")).string();
}

std::vector<ModelRecord> RecordBook::all() const {
  std::vector<ModelRecord> records;
  std::error_code error;
  fs::directory_iterator at(fs::path(root_) / ".records", error);
  while (!error && at != fs::directory_iterator()) {
    const auto text = at->path().extension() == ".json"
                          ? read_text_up_to(at->path().string(), kMaxRecordBytes)
                          : std::nullopt;
    if (text) {
      auto record = parse_record(*text);
      std::error_code ignored;
      if (record.ok() && fs::exists(record->path, ignored)) records.push_back(std::move(*record));
    }
    at.increment(error);
  }
  std::sort(records.begin(), records.end(),
            [](const ModelRecord& a, const ModelRecord& b) { return a.name < b.name; });
  return records;
}

std::optional<ModelRecord> RecordBook::find(std::string_view name) const {
  for (ModelRecord& record : all()) {
    if (record.name == name) return std::move(record);
  }
  return std::nullopt;
}

std::optional<ModelRecord> RecordBook::requested(std::string_view request) const {
  for (ModelRecord& record : all()) {
    const auto& requests = record.requests;
    if (std::find(requests.begin(), requests.end(), request) != requests.end()) {
      return std::move(record);
    }
  }
  return std::nullopt;
}

Result<void> RecordBook::save(const ModelRecord& record) const {
  std::error_code error;
  fs::create_directories(fs::path(root_) / ".records", error);
  if (error) {
    return Error{ErrorCode::io_error, "cannot make the store's folder: " + error.message(), root_,
                 "set HEADRACE_HOME to a folder that you may write"};
  }
  return write_small_file(path_of(record.name), format_record(record));
}

void RecordBook::remove(std::string_view name) const {
  std::error_code ignored;
  fs::remove(path_of(name), ignored);
}

}  // namespace headrace
