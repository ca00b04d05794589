// How the template engine reports faults inside itself: a thrown Fault, turned into an Error at the
// two doors of the module (ChatTemplate::parse and ChatTemplate::render). Must not leave them.
#pragma once

#include <string>
#include <utility>

#include "headrace/result.h"

namespace headrace::jinja {

struct Fault {
  ErrorCode code = ErrorCode::invalid_argument;
  std::string message;
  int line = 0;            ///< 0: where the interpreter stands
  bool own_words = false;  ///< the message of raise_exception: shown as it is, without a line
};

[[noreturn]] inline void fail(std::string message, int line = 0) {
  throw Fault{ErrorCode::invalid_argument, std::move(message), line, false};
}
[[noreturn]] inline void fail_limit(std::string message, int line = 0) {
  throw Fault{ErrorCode::resource_exhausted, std::move(message), line, false};
}
[[noreturn]] inline void fail_unsupported(std::string message, int line = 0) {
  throw Fault{ErrorCode::unsupported, std::move(message), line, false};
}

}  // namespace headrace::jinja
