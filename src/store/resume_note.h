// What is remembered beside an unfinished file, so that it is gone on from only where the file on
// the server is still the same. Must not know how it is fetched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headrace/result.h"
#include "store/http_download.h"

namespace headrace {

struct ResumeNote {
  std::string validator;     ///< a strong ETag, or a date, for If-Range
  uint64_t total_bytes = 0;  ///< 0: unknown
};

std::string resume_note_path(const std::string& partial);
/// Of an answer; nothing where it tells nothing that could be compared later.
std::optional<ResumeNote> resume_note_of(const HttpAnswer& answer, uint64_t total_bytes);
/// Nothing where there is none, or it is of another address, or damaged.
std::optional<ResumeNote> read_resume_note(const std::string& partial, const std::string& url);
/// No note: removes it. Errors: io_error, resource_exhausted.
Result<void> write_resume_note(const std::string& partial, const std::string& url,
                               const std::optional<ResumeNote>& note);

}  // namespace headrace
