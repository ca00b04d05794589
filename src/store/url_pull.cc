// See url_pull.h.
#include "store/url_pull.h"

#include <algorithm>
#include <filesystem>

#include "store/file_download.h"
#include "store/file_names.h"
#include "store/gguf_names.h"
#include "store/hub_settings.h"
#include "store/work_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

std::string stem_of(const std::string& file) {
  std::string stem = file.substr(0, file.size() - std::string_view(".gguf").size());
  for (char& c : stem) {
    if (!is_plain_word(std::string{'a', c})) c = '-';
  }
  while (stem.starts_with('.')) stem.erase(0, 1);
  return stem;
}

bool is_of_this_machine(const std::string& url) {
  const std::string rest = url.substr(std::string_view("http://").size());
  const std::string host = rest.substr(0, rest.find_first_of(rest.starts_with('[') ? "/" : ":/"));
  return host == "localhost" || host == "127.0.0.1" || host.starts_with("[::1]");
}

Result<void> check_url(const ModelSource& source, const PullOptions& options) {
  if (source.url.starts_with("http://") && options.sha256.empty() &&
      !is_of_this_machine(source.url)) {
    return Error{ErrorCode::invalid_argument,
                 "over plain http anybody on the way could change the file", source.url,
                 "use https://, or say what is expected with --sha256"};
  }
  if (const auto split = split_name_of(url_file_name(source.url)); split && split->total > 1) {
    return Error{
        ErrorCode::invalid_argument,
        "this is one part of " + std::to_string(split->total) + ", and an address is one file",
        source.url,
        "pull it from its repository (hf:ORG/REPO:FILE), or fetch all parts into one "
        "folder and give the first with -m"};
  }
  return {};
}

}  // namespace

Result<void> check_model_name(const std::string& name) {
  const bool is_good = is_plain_word(name) && !name.starts_with('-') && !name.ends_with(".gguf");
  if (is_good) return {};
  return Error{ErrorCode::invalid_argument, "this cannot be a model's name", name,
               "a name is letters, digits, '.', '_' and '-', and does not end in .gguf"};
}

Result<bool> is_pulled_already(const std::string& root, const RecordBook& records,
                               const std::string& name, const std::string& source) {
  const auto record = records.find(name);
  if (record && record->source == source) {
    std::error_code error;
    if (fs::exists(record->path, error)) return true;
  }
  std::string taken_by = record ? record->source : "";
  for (const char* ending : {"", ".gguf"}) {
    std::error_code error;
    const fs::path path = fs::path(root) / (name + ending);
    if (taken_by.empty() && fs::exists(path, error)) taken_by = path.string();
  }
  if (taken_by.empty()) return false;
  return Error{ErrorCode::mismatch, "another model has this name: " + taken_by, name,
               "give another one with --name, or remove it with: headrace rm " + name};
}

Result<PulledModel> pull_from_url(const ModelSource& source, const std::string& root,
                                  const RecordBook& records, const PullHooks& hooks,
                                  const PullOptions& options) {
  HEADRACE_TRY(check_url(source, options));
  const std::string file_name = url_file_name(source.url);
  const std::string name = options.name.empty() ? stem_of(file_name) : options.name;
  HEADRACE_TRY(check_model_name(name));
  const std::string address = source.to_string();
  const fs::path target = fs::path(root) / (name + ".gguf");
  HEADRACE_ASSIGN(const bool is_there, is_pulled_already(root, records, name, address));
  if (is_there) return PulledModel{name, target.string(), true};
  HEADRACE_ASSIGN(const HubSettings settings, read_hub_settings());  // of them, the patience
  HEADRACE_ASSIGN(const fs::path pulls, make_pulls_folder(root));
  HEADRACE_ASSIGN(const FileLock lock, lock_pull(pulls, name, hooks, 0));
  HEADRACE_ASSIGN(const bool came, is_pulled_already(root, records, name, address));
  if (came) return PulledModel{name, target.string(), true};

  FileDownload file;
  file.url = source.url;
  file.name = file_name;
  file.sha256 = options.sha256;
  file.stall_seconds = settings.stall_seconds;
  file.peer = {address, false, false, ""};
  const std::string partial = (pulls / (name + ".incomplete")).string();
  bool is_announced = false;
  DownloadHooks download;
  download.note = hooks.note;
  download.keep_going = hooks.keep_going;
  download.begin = [&](uint64_t kept, uint64_t total) -> Result<void> {
    HEADRACE_TRY(check_disk_room(root, total - std::min(kept, total), options, "HEADRACE_HOME"));
    if (hooks.announce && !is_announced) {
      hooks.announce({name, file.peer.what, total, kept, "", ""});
    }
    is_announced = true;
    return {};
  };
  download.progress = [&](uint64_t done, uint64_t total) {
    if (hooks.progress) hooks.progress({"downloading", done, total, file_name, 1, 1, done, total});
  };
  HEADRACE_ASSIGN(const DownloadedFile done, download_file(file, partial, download));
  std::error_code error;
  fs::rename(partial, target, error);
  if (error) {
    return Error{ErrorCode::io_error, "cannot give the file its name: " + error.message(),
                 target.string(), ""};
  }
  remove_partial(partial);
  ModelRecord record;
  record.name = name;
  record.source = address;
  record.requests = {address};
  record.path = target.string();
  record.format = "gguf";
  record.quantization = quantization_of(file_name);
  record.files = {{name + ".gguf", done.size_bytes, done.sha256, true}};
  HEADRACE_TRY(records.save(record));
  return PulledModel{name, target.string(), false};
}

}  // namespace headrace
