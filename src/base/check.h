// HEADRACE_CHECK: invariants of our own code. A user's input can never trigger one; a broken one
// throws InternalError, which is caught at the boundary of the step or request.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace headrace {

/// A broken invariant: a bug of Headrace, never of its input.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* file, int line, const char* what,
                               const std::string& detail);

template <class A, class B>
std::string check_detail(const A& a, const B& b) {
  std::ostringstream out;
  out << a << " vs " << b;
  return out.str();
}

}  // namespace headrace

#define HEADRACE_CHECK(condition)                                                   \
  do {                                                                              \
    if (!(condition)) ::headrace::check_failed(__FILE__, __LINE__, #condition, ""); \
  } while (0)
#define HEADRACE_CHECK_OP(a, op, b)                                               \
  do {                                                                            \
    const auto& headrace_a = (a);                                                 \
    const auto& headrace_b = (b);                                                 \
    if (!(headrace_a op headrace_b))                                              \
      ::headrace::check_failed(__FILE__, __LINE__, #a " " #op " " #b,             \
                               ::headrace::check_detail(headrace_a, headrace_b)); \
  } while (0)
#define HEADRACE_CHECK_EQ(a, b) HEADRACE_CHECK_OP(a, ==, b)
#define HEADRACE_CHECK_NE(a, b) HEADRACE_CHECK_OP(a, !=, b)
#define HEADRACE_CHECK_LE(a, b) HEADRACE_CHECK_OP(a, <=, b)
#define HEADRACE_CHECK_LT(a, b) HEADRACE_CHECK_OP(a, <, b)
#define HEADRACE_CHECK_GE(a, b) HEADRACE_CHECK_OP(a, >=, b)
#define HEADRACE_CHECK_GT(a, b) HEADRACE_CHECK_OP(a, >, b)
