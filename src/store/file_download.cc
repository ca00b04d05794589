// See file_download.h.
#include "store/file_download.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "base/os/append_file.h"
#include "base/read_number.h"
#include "store/body_check.h"
#include "store/resume_note.h"
#include "store/sha256.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadBytes = size_t{1} << 20;

/// "bytes 5-9/10".
struct ContentRange {
  uint64_t first = 0;
  uint64_t total = 0;  ///< 0: not told
};

std::optional<ContentRange> read_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash) {
    return std::nullopt;
  }
  ContentRange range;
  if (read_number(text.substr(0, dash), range.first) != std::errc()) return std::nullopt;
  const std::string_view total = text.substr(slash + 1);
  if (total != "*" && read_number(total, range.total) != std::errc()) return std::nullopt;
  return range;
}

class Downloader {
 public:
  Downloader(const FileDownload& file, const std::string& partial, const DownloadHooks& hooks)
      : file_(file),
        partial_(partial),
        hooks_(hooks),
        retry_(file.name, hooks.note, hooks.keep_going) {}

  Result<DownloadedFile> run() {
    auto done = fetch_and_verify();
    const bool is_wrong = !done.ok() && done.error().code == ErrorCode::corrupt_data;
    if (is_wrong) remove_partial(partial_);
    if (!is_wrong || !has_old_part_) return done;
    note("what was there of " + file_.name + " is wrong: it begins anew");
    has_old_part_ = false;
    done = fetch_and_verify();
    if (!done.ok() && done.error().code == ErrorCode::corrupt_data) remove_partial(partial_);
    return done;
  }

 private:
  void note(const std::string& text) const {
    if (hooks_.note) hooks_.note(text);
  }
  bool keep_going() const { return !hooks_.keep_going || hooks_.keep_going(); }

  Error wrong(std::string message, std::string hint =
                                       "try again; a proxy or mirror may have "
                                       "changed it") const {
    return {ErrorCode::corrupt_data, std::move(message), file_.name, std::move(hint)};
  }

  Result<DownloadedFile> fetch_and_verify() {
    total_ = file_.size_bytes;
    HEADRACE_TRY(open_partial());
    while (!is_whole_) HEADRACE_TRY(fetch_some());
    HEADRACE_TRY(output_->sync());
    return verify();
  }

  /// Reads what an earlier try left, for the checksum.
  Result<void> open_partial() {
    is_whole_ = false;
    done_ = partial_bytes(partial_);
    if (!file_.is_named_by_content && done_ > 0) {
      old_note_ = read_resume_note(partial_, file_.url);
      if (!old_note_) done_ = 0;
      if (total_ == 0 && old_note_) total_ = old_note_->total_bytes;
    }
    if (total_ > 0 && done_ > total_) done_ = 0;
    HEADRACE_ASSIGN(AppendFile output, AppendFile::open(partial_));
    output_.reset();
    output_.emplace(std::move(output));
    if (done_ == 0) return begin_anew();
    has_old_part_ = true;
    hash_.emplace();
    is_checked_ = false;
    head_.clear();
    HEADRACE_TRY(hash_old_part());
    is_whole_ = total_ > 0 && done_ == total_;
    return {};
  }

  Result<void> hash_old_part() {
    std::ifstream input(partial_, std::ios::binary);
    std::vector<char> buffer(kReadBytes);
    for (uint64_t left = done_; left > 0;) {
      if (!keep_going()) return Error{ErrorCode::cancelled, "interrupted", "", ""};
      input.read(buffer.data(), static_cast<std::streamsize>(std::min<uint64_t>(left, kReadBytes)));
      const auto got = static_cast<size_t>(input.gcount());
      if (got == 0) return Error{ErrorCode::io_error, "cannot be read", partial_, ""};
      HEADRACE_TRY(take({buffer.data(), got}));
      left -= got;
    }
    return {};
  }

  Result<void> begin_anew() {
    HEADRACE_TRY(output_->truncate(0));
    done_ = 0;
    hash_.emplace();
    is_checked_ = false;
    head_.clear();
    return {};
  }

  /// Adds bytes to the checksum; looks at the first ones.
  Result<void> take(std::string_view bytes) {
    hash_->update(std::as_bytes(std::span(bytes.data(), bytes.size())));
    if (is_checked_) return {};
    head_ += bytes.substr(0, kBodyHeadBytes);
    if (head_.size() < kBodyHeadBytes) return {};
    is_checked_ = true;
    return check_body(file_.name, head_);
  }

  /// One request, and the wait after one that failed.
  Result<void> fetch_some() {
    HttpRequest request;
    request.url = file_.url;
    request.token = file_.token;
    request.from = done_;
    if (!file_.is_named_by_content && old_note_) request.if_range = old_note_->validator;
    request.stall_seconds = file_.stall_seconds;
    request.begin = [this](const HttpAnswer& answer) { return begin(answer); };
    request.sink = [this](std::span<const std::byte> bytes) {
      return receive({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
    request.keep_going = hooks_.keep_going;
    ends_at_close_ = false;
    HttpOutcome outcome = http_run(request);
    const int status = outcome.answer.status;
    if (!outcome.error && status >= 200 && status < 300) {
      is_whole_ = total_ > 0 ? done_ == total_ : ends_at_close_;
      if (is_whole_) return {};
      outcome.error = Error{ErrorCode::io_error, "the answer ended early", file_.peer.what, ""};
      outcome.is_transient = true;
    }
    if (!outcome.error && status == 416 && done_ > 0) return begin_anew();
    if (retry_.again(outcome)) return {};
    Error error = http_error(outcome, file_.peer);
    if (error.code == ErrorCode::resource_exhausted) {
      error.hint = "free some space and pull again: it goes on from there";
    }
    return error;
  }

  Result<void> begin(const HttpAnswer& answer) {
    if (answer.header("content-type").starts_with("text/html") && !may_be_text(file_.name)) {
      return wrong("a web page came instead of the file", "open the address in a browser");
    }
    uint64_t announced = 0;
    if (answer.status == 206) {
      const auto range = read_content_range(answer.header("content-range"));
      if (!range || range->first != done_) return wrong("the server sent another part than asked");
      announced = range->total;
    } else {
      if (done_ > 0) {
        note(file_.name + ": the server gives the whole file only: it begins anew");
        HEADRACE_TRY(begin_anew());
      }
      const std::string length = answer.header("content-length");
      if (!length.empty() && read_number(length, announced) != std::errc()) announced = 0;
      ends_at_close_ = length.empty();
      if (!file_.is_named_by_content) total_ = file_.size_bytes;
    }
    if (announced > 0 && total_ > 0 && announced != total_) {
      return wrong("the size is not the expected one: " + std::to_string(total_) +
                   " bytes expected, " + std::to_string(announced) + " announced");
    }
    if (announced > 0) total_ = announced;
    if (hooks_.begin) HEADRACE_TRY(hooks_.begin(done_, total_));
    if (file_.is_named_by_content) return {};
    old_note_ = resume_note_of(answer, total_);
    return write_resume_note(partial_, file_.url, old_note_);
  }

  Result<void> receive(std::string_view bytes) {
    if (total_ > 0 && bytes.size() > total_ - done_) {
      return wrong("more came than the " + std::to_string(total_) + " bytes expected");
    }
    HEADRACE_TRY(output_->append(bytes));
    done_ += bytes.size();
    HEADRACE_TRY(take(bytes));
    retry_.progressed();
    if (hooks_.progress) hooks_.progress(done_, total_);
    return {};
  }

  Result<DownloadedFile> verify() {
    if (!is_checked_) HEADRACE_TRY(check_body(file_.name, head_));
    const std::string found = hash_->finish();
    if (!file_.sha256.empty() && found != file_.sha256) {
      return wrong("the checksum is wrong: sha256 " + file_.sha256 + " expected, " + found +
                   " found");
    }
    if (!file_.blob_id.empty()) {
      HEADRACE_ASSIGN(const std::string blob, git_blob_sha1(partial_));
      if (blob != file_.blob_id) {
        return wrong("the checksum is wrong: git's " + file_.blob_id + " expected, " + blob +
                     " found");
      }
    }
    return DownloadedFile{done_, found};
  }

  const FileDownload& file_;
  const std::string& partial_;
  const DownloadHooks& hooks_;
  HttpRetry retry_;
  std::optional<ResumeNote> old_note_;
  std::optional<AppendFile> output_;
  std::optional<Sha256> hash_;
  std::string head_;  ///< the first bytes
  bool is_checked_ = false;
  bool has_old_part_ = false;
  bool is_whole_ = false;
  bool ends_at_close_ = false;  ///< the answer tells no length
  uint64_t done_ = 0;
  uint64_t total_ = 0;  ///< 0: unknown
};

}  // namespace

Result<DownloadedFile> download_file(const FileDownload& file, const std::string& partial,
                                     const DownloadHooks& hooks) {
  return Downloader(file, partial, hooks).run();
}

uint64_t partial_bytes(const std::string& partial) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(partial, error))) return 0;
  const uint64_t size = fs::file_size(partial, error);
  return error ? 0 : size;
}

void remove_partial(const std::string& partial) {
  std::error_code ignored;
  fs::remove(partial, ignored);
  fs::remove(resume_note_path(partial), ignored);
}

}  // namespace headrace
