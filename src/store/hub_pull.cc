// See hub_pull.h.
#include "store/hub_pull.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/os/file_lock.h"
#include "base/read_number.h"
#include "store/body_check.h"
#include "store/file_download.h"
#include "store/file_names.h"
#include "store/hub_api.h"
#include "store/hub_cache.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

/// A file that is to be fetched.
struct WantedFile {
  RepoFile file;
  std::string id;  ///< of its blob
};

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

class HubPull {
 public:
  HubPull(const ModelSource& source, const HubSettings& settings, const RecordBook& records,
          const PullHooks& hooks, const PullOptions& options)
      : source_(source),
        settings_(settings),
        records_(records),
        hooks_(hooks),
        options_(options),
        cache_(settings.cache) {}

  Result<PulledModel> run() {
    if (settings_.is_offline) return find_offline();
    HEADRACE_ASSIGN(listing_, fetch_listing());
    auto selected = select_files(listing_.files, source_.selector);
    if (!selected.ok()) return std::move(selected).error().at(source_.repo);
    selection_ = std::move(*selected);
    HEADRACE_TRY(check_options());
    HEADRACE_TRY(cache_.prepare(source_.repo, listing_.commit));
    for (const size_t index : selection_.files) HEADRACE_TRY(look_for(listing_.files[index]));
    // Weights last: until they are there, nobody takes a part for the model.
    std::stable_sort(wanted_.begin(), wanted_.end(), [](const WantedFile& a, const WantedFile& b) {
      return may_be_text(a.file.path) && !may_be_text(b.file.path);
    });
    HEADRACE_TRY(announce());
    for (const WantedFile& wanted : wanted_) HEADRACE_TRY(fetch(wanted));
    HEADRACE_TRY(cache_.set_ref(source_.repo, source_.revision, listing_.commit));
    return finish();
  }

 private:
  bool keep_going() const { return !hooks_.keep_going || hooks_.keep_going(); }
  void note(const std::string& text) const {
    if (hooks_.note) hooks_.note(text);
  }

  HttpPeer peer(const std::string& what) const {
    return {what, true, !settings_.token.empty(), settings_.endpoint + "/" + source_.repo};
  }

  Result<PulledModel> find_offline() {
    const auto commit = cache_.commit_of(source_.repo, source_.revision);
    const std::string hint = "unset HF_HUB_OFFLINE to fetch it";
    if (!commit) {
      return Error{ErrorCode::not_found, "the cache does not have it, and HF_HUB_OFFLINE is set",
                   source_.to_string(), hint};
    }
    auto model = cache_.find(source_.repo, source_.revision, *commit, source_.selector);
    if (!model.ok()) {
      Error error = std::move(model).error().at(source_.repo);
      error.message += ", in the cache; HF_HUB_OFFLINE is set";
      return error;
    }
    listing_.commit = *commit;
    listing_.files = model->files;
    selection_ = {model->format, model->quantization, model->label, {}};
    for (size_t i = 0; i < listing_.files.size(); ++i) selection_.files.push_back(i);
    HEADRACE_TRY(check_options());
    return finish();
  }

  Result<RepoListing> fetch_listing() const {
    HttpRetry retry(source_.repo, hooks_.note, hooks_.keep_going);
    HttpOutcome outcome;
    std::string body;
    do {
      body.clear();
      HttpRequest request;
      request.url = listing_url(settings_.endpoint, source_.repo, source_.revision);
      request.token = settings_.token;
      request.stall_seconds = settings_.stall_seconds;
      request.keep_going = hooks_.keep_going;
      request.sink = [&](std::span<const std::byte> bytes) -> Result<void> {
        if (bytes.size() > kMaxListingBytes - body.size()) {
          return Error{ErrorCode::corrupt_data, "the hub's list of files is longer than 32 MB",
                       source_.repo, ""};
        }
        body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        return {};
      };
      outcome = http_run(request);
    } while ((outcome.error || outcome.answer.status != 200) && retry.again(outcome));
    if (outcome.error || outcome.answer.status != 200) {
      Error error = http_error(outcome, peer(source_.to_string()));
      if (error.code == ErrorCode::not_found) {
        error.message = "the hub has no such " +
                        std::string(outcome.answer.header("x-error-code") == "RevisionNotFound"
                                        ? "revision"
                                        : "repository") +
                        " (404)";
      }
      return error;
    }
    auto listing = parse_listing(body);
    if (!listing.ok()) return std::move(listing).error().at(source_.repo);
    return listing;
  }

  Result<void> check_options() {
    if (options_.sha256.empty()) return {};
    if (selection_.files.size() != 1) {
      return Error{ErrorCode::invalid_argument,
                   "the model has " + std::to_string(selection_.files.size()) +
                       " files, and one checksum is given",
                   "--sha256", "leave it out: the hub's checksums are checked anyway"};
    }
    RepoFile& file = listing_.files[selection_.files.front()];
    if (!file.sha256.empty() && file.sha256 != options_.sha256) {
      return Error{ErrorCode::corrupt_data,
                   "the hub has another file: sha256 " + options_.sha256 + " expected, " +
                       file.sha256 + " there",
                   source_.repo + "/" + file.path, ""};
    }
    return {};
  }

  /// Adds to wanted_ what is not here; links what is here as a blob.
  Result<void> look_for(const RepoFile& file) {
    if (cache_.has_file(source_.repo, listing_.commit, file)) return {};
    WantedFile wanted{file, file.sha256.empty() ? file.blob_id : file.sha256};
    if (wanted.id.empty()) HEADRACE_TRY(ask_for_id(wanted));
    if (is_there(wanted)) {
      return cache_.link(source_.repo, listing_.commit, file.path, wanted.id);
    }
    wanted_.push_back(std::move(wanted));
    return {};
  }

  bool is_there(const WantedFile& wanted) const {
    std::error_code error;
    const fs::path blob = cache_.blob(source_.repo, wanted.id);
    return fs::is_regular_file(fs::symlink_status(blob, error)) &&
           (wanted.file.size_bytes == 0 || fs::file_size(blob, error) == wanted.file.size_bytes);
  }

  std::string url_of(const RepoFile& file) const {
    return file_url(settings_.endpoint, source_.repo, listing_.commit, file.path);
  }

  /// Of a hub whose list has no checksums: what the file's own address says.
  Result<void> ask_for_id(WantedFile& wanted) const {
    HttpRetry retry(wanted.file.path, hooks_.note, hooks_.keep_going);
    HttpOutcome outcome;
    do {
      HttpRequest request;
      request.url = url_of(wanted.file);
      request.head = true;
      request.stay_on_host = true;
      request.token = settings_.token;
      request.stall_seconds = settings_.stall_seconds;
      request.keep_going = hooks_.keep_going;
      outcome = http_run(request);
    } while ((outcome.error || outcome.answer.status >= 400) && retry.again(outcome));
    if (outcome.error || outcome.answer.status >= 400) {
      return http_error(outcome, peer(source_.repo + "/" + wanted.file.path));
    }
    const std::string linked = outcome.answer.header("x-linked-etag");
    std::string id = linked.empty() ? outcome.answer.header("etag") : linked;
    if (id.starts_with("W/")) id.erase(0, 2);
    std::erase(id, '"');
    if (!is_plain_word(id)) {
      return Error{ErrorCode::corrupt_data, "the hub tells no checksum that can name the file",
                   source_.repo + "/" + wanted.file.path, ""};
    }
    if (id.size() == 64) wanted.file.sha256 = lower_case(id);
    const std::string size =
        outcome.answer.header(linked.empty() ? "content-length" : "x-linked-size");
    (void)read_number(size, wanted.file.size_bytes);  // else it is told with the file
    wanted.id = id;
    return {};
  }

  Result<void> announce() {
    PullPlan plan;
    plan.name = source_.repo;
    if (!selection_.label.empty()) plan.name += ":" + selection_.label;
    plan.license = listing_.license;
    for (const WantedFile& wanted : wanted_) {
      total_bytes_ += wanted.file.size_bytes;
      plan.kept_bytes += std::min(wanted.file.size_bytes, partial_bytes(partial_of(wanted)));
    }
    plan.download_bytes = total_bytes_;
    if (wanted_.empty()) return {};
    HEADRACE_TRY(
        check_disk_room(settings_.cache, total_bytes_ - plan.kept_bytes, options_, "HF_HOME"));
    if (hooks_.announce) hooks_.announce(plan);
    return {};
  }

  std::string partial_of(const WantedFile& wanted) const {
    return cache_.blob(source_.repo, wanted.id).string() + ".incomplete";
  }

  void report(const WantedFile& wanted, const char* stage, uint64_t done) const {
    if (!hooks_.progress) return;
    hooks_.progress({stage, std::min(done_bytes_ + done, total_bytes_), total_bytes_,
                     wanted.file.path, num_fetched_ + 1, static_cast<int>(wanted_.size()), done,
                     wanted.file.size_bytes});
  }

  Result<void> fetch(const WantedFile& wanted) {
    bool has_said = false;
    HEADRACE_ASSIGN(const FileLock lock,
                    FileLock::acquire(cache_.lock(source_.repo, wanted.id).string(), [&] {
                      if (!has_said) {
                        note("another process downloads " + wanted.file.path + ": waiting for it");
                      }
                      has_said = true;
                      report(wanted, "waiting for another pull", 0);
                      return keep_going();
                    }));
    if (!is_there(wanted)) {
      HEADRACE_TRY(download(wanted));
      fetched_ids_.push_back(wanted.id);
    }
    if (contains(fetched_ids_, wanted.id)) fetched_.push_back(wanted.file.path);
    HEADRACE_TRY(cache_.link(source_.repo, listing_.commit, wanted.file.path, wanted.id));
    done_bytes_ += wanted.file.size_bytes;
    ++num_fetched_;
    return {};
  }

  Result<void> download(const WantedFile& wanted) {
    FileDownload file;
    file.url = url_of(wanted.file);
    file.token = settings_.token;
    file.name = wanted.file.path;
    file.size_bytes = wanted.file.size_bytes;
    file.sha256 = options_.sha256.empty() ? wanted.file.sha256 : options_.sha256;
    file.blob_id = wanted.file.blob_id;
    file.is_named_by_content = true;
    file.stall_seconds = settings_.stall_seconds;
    file.peer = peer(source_.repo + "/" + wanted.file.path);
    DownloadHooks hooks;
    hooks.progress = [&](uint64_t done, uint64_t) { report(wanted, "downloading", done); };
    hooks.note = hooks_.note;
    hooks.keep_going = hooks_.keep_going;
    const std::string partial = partial_of(wanted);
    HEADRACE_TRY(download_file(file, partial, hooks));
    std::error_code error;
    const fs::path blob = cache_.blob(source_.repo, wanted.id);
    fs::rename(partial, blob, error);
    if (error) {
      return Error{ErrorCode::io_error, "cannot give the file its name: " + error.message(),
                   blob.string(), ""};
    }
    return {};
  }

  std::string default_name() const {
    std::string name = source_.repo;
    if (source_.revision != "main") name += "@" + source_.revision;
    return selection_.label.empty() ? name : name + ":" + selection_.label;
  }

  /// Records the model.
  Result<PulledModel> finish() {
    ModelRecord record;
    record.name = options_.name.empty() ? default_name() : options_.name;
    const auto before = records_.find(record.name);
    if (before && before->repo != source_.repo) {
      return Error{ErrorCode::mismatch, "another model has this name: " + before->source,
                   record.name, "give another one with --name"};
    }
    if (before) record.requests = before->requests;
    const std::string request = source_.to_string();
    if (!contains(record.requests, request)) record.requests.push_back(request);
    ModelSource exact = source_;
    exact.selector = selection_.label;
    record.source = exact.to_string();
    record.repo = source_.repo;
    record.commit = listing_.commit;
    record.format = model_format_name(selection_.format);
    record.quantization = selection_.quantization;
    record.license = listing_.license.empty() && before ? before->license : listing_.license;
    const fs::path folder = cache_.snapshot(source_.repo, listing_.commit);
    const bool is_file = selection_.format == ModelFormat::gguf;
    record.path =
        (is_file ? folder / listing_.files[selection_.files.front()].path : folder).string();
    add_files(record);
    HEADRACE_TRY(records_.save(record));
    if (before && before->commit != record.commit) HEADRACE_TRY(remove_old(*before));
    return PulledModel{record.name, record.path, fetched_.empty()};
  }

  /// Whether we fetched it, now or as part of any model that is recorded.
  bool is_ours(const std::string& path, const std::vector<ModelRecord>& known) const {
    if (contains(fetched_, path)) return true;
    for (const ModelRecord& record : known) {
      if (record.repo != source_.repo || record.commit != listing_.commit) continue;
      for (const RecordedFile& file : record.files) {
        if (file.path == path && file.is_ours) return true;
      }
    }
    return false;
  }

  void add_files(ModelRecord& record) const {
    const auto known = records_.all();
    const fs::path folder = cache_.snapshot(source_.repo, record.commit);
    for (const size_t index : selection_.files) {
      const RepoFile& file = listing_.files[index];
      std::error_code error;
      const uint64_t size = fs::file_size(folder / file.path, error);
      record.files.push_back(
          {file.path, error ? file.size_bytes : size, file.sha256, is_ours(file.path, known)});
    }
  }

  /// Of the commit that this one takes the place of, what we fetched.
  Result<void> remove_old(const ModelRecord& before) const {
    std::vector<std::string> files;
    for (const RecordedFile& file : before.files) {
      if (file.is_ours) files.push_back(file.path);
    }
    if (!is_commit(before.commit)) return {};
    HEADRACE_TRY(cache_.remove_files(source_.repo, before.commit, files));
    return {};
  }

  const ModelSource& source_;
  const HubSettings& settings_;
  const RecordBook& records_;
  const PullHooks& hooks_;
  const PullOptions& options_;
  HubCache cache_;
  RepoListing listing_;
  Selection selection_;
  std::vector<WantedFile> wanted_;
  std::vector<std::string> fetched_;      ///< paths
  std::vector<std::string> fetched_ids_;  ///< of blobs: several files may be one
  uint64_t total_bytes_ = 0;
  uint64_t done_bytes_ = 0;  ///< of the files before this one
  int num_fetched_ = 0;
};

}  // namespace

Result<PulledModel> pull_from_hub(const ModelSource& source, const HubSettings& settings,
                                  const RecordBook& records, const PullHooks& hooks,
                                  const PullOptions& options) {
  return HubPull(source, settings, records, hooks, options).run();
}

}  // namespace headrace
