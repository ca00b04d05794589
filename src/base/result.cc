// Texts of Error and ErrorCode; see include/headrace/result.h.
#include "headrace/result.h"

namespace headrace {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::corrupt_data:
      return "corrupt_data";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::out_of_range:
      return "out_of_range";
    case ErrorCode::context_length_exceeded:
      return "context_length_exceeded";
    case ErrorCode::resource_exhausted:
      return "resource_exhausted";
    case ErrorCode::io_error:
      return "io_error";
    case ErrorCode::mismatch:
      return "mismatch";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::overloaded:
      return "overloaded";
    case ErrorCode::deadline_exceeded:
      return "deadline_exceeded";
    case ErrorCode::internal:
      return "internal";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string text;
  if (!where.empty()) text += where + ": ";
  text += message;
  if (!hint.empty()) text += " (" + hint + ")";
  return text;
}

Error Error::at(std::string_view outer) && {
  where = where.empty() ? std::string(outer) : std::string(outer) + ": " + where;
  return std::move(*this);
}

}  // namespace headrace
