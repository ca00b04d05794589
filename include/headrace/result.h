// Result<T>: how every part of Headrace reports bad input. Owns: Error, Result, the propagation
// macros. Must not know: any other header of the project.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace headrace {

/// What kind of fault an Error is; callers branch on this, never on the text.
enum class ErrorCode {
  invalid_argument,         ///< a parameter, flag or prompt is wrong
  not_found,                ///< a file, model, tensor or key does not exist
  corrupt_data,             ///< a file contradicts its own format
  unsupported,              ///< valid, but this build does not know it (architecture, format, ...)
  out_of_range,             ///< a number is outside what is allowed
  context_length_exceeded,  ///< prompt + requested tokens do not fit the context
  resource_exhausted,       ///< memory, disk, KV blocks or a limit ran out
  io_error,                 ///< the system refused to read, write, map or run
  mismatch,                 ///< two things that must agree do not (tokenizer fingerprints)
  cancelled,                ///< the caller asked to stop
  overloaded,               ///< too much is waiting already; later there may be room
  deadline_exceeded,        ///< the time that the caller gave has passed
  internal,                 ///< a broken invariant, reported instead of crashing
};

/// The stable lower-case name of a code, as shown in `--json` output ("corrupt_data").
std::string_view error_code_name(ErrorCode code);

/// One fault. `message` is a full sentence without a trailing period that states what was expected
/// and what was found. `where` names the place (file, key, tensor, offset); `hint` names the way
/// out ("use --chat-template FILE"). Both may be empty.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string where;
  std::string hint;

  /// "where: message (hint)", one line.
  std::string to_string() const;

  /// The same error with `outer` put before `where` ("model.gguf: tensor 'x'").
  Error at(std::string_view outer) &&;
};

/// Either a T or an Error. Reading the wrong side throws std::bad_variant_access, which is a bug
/// of the caller.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  Error& error() & { return error_.value(); }
  const Error& error() const& { return error_.value(); }
  Error&& error() && { return std::move(error_).value(); }

 private:
  std::optional<Error> error_;
};

}  // namespace headrace

#define HEADRACE_CONCAT_INNER(a, b) a##b
#define HEADRACE_CONCAT(a, b) HEADRACE_CONCAT_INNER(a, b)

/// `HEADRACE_ASSIGN(auto x, f());` declares x from f()'s value or returns its error.
#define HEADRACE_ASSIGN(decl, expr) \
  HEADRACE_ASSIGN_IMPL(HEADRACE_CONCAT(headrace_result_, __LINE__), decl, expr)
#define HEADRACE_ASSIGN_IMPL(tmp, decl, expr)   \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return std::move(tmp).error(); \
  decl = std::move(tmp).value()

/// `HEADRACE_TRY(f());` returns f()'s error, if any.
#define HEADRACE_TRY(expr)                                    \
  do {                                                        \
    if (auto headrace_status = (expr); !headrace_status.ok()) \
      return std::move(headrace_status).error();              \
  } while (0)
