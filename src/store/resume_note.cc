// See resume_note.h.
#include "store/resume_note.h"

#include <filesystem>

#include "base/os/atomic_file.h"
#include "base/read_number.h"
#include "store/small_file.h"

namespace headrace {
namespace {

constexpr size_t kMaxNoteBytes = 16384;

/// Of "a\nb\nc", the next line.
std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::string resume_note_path(const std::string& partial) {
  return partial + ".note";
}

std::optional<ResumeNote> resume_note_of(const HttpAnswer& answer, uint64_t total_bytes) {
  const std::string etag = answer.header("etag");
  if (etag.starts_with('"')) return ResumeNote{etag, total_bytes};
  const std::string date = answer.header("last-modified");
  if (!date.empty()) return ResumeNote{date, total_bytes};
  return std::nullopt;
}

std::optional<ResumeNote> read_resume_note(const std::string& partial, const std::string& url) {
  const auto text = read_text_up_to(resume_note_path(partial), kMaxNoteBytes);
  if (!text) return std::nullopt;
  std::string_view rest = *text;
  if (next_line(rest) != url) return std::nullopt;
  ResumeNote note;
  note.validator = next_line(rest);
  if (read_number(next_line(rest), note.total_bytes) != std::errc()) return std::nullopt;
  if (note.validator.empty()) return std::nullopt;
  return note;
}

Result<void> write_resume_note(const std::string& partial, const std::string& url,
                               const std::optional<ResumeNote>& note) {
  const std::string path = resume_note_path(partial);
  if (!note) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    return {};
  }
  return write_small_file(path,
                          url + "\n" + note->validator + "\n" + std::to_string(note->total_bytes));
}

}  // namespace headrace
