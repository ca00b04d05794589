// See regex_budget.h.
#include "text/hf/regex_budget.h"

#include <optional>
#include <string>

#include "base/os/thread_time.h"
#include "checkpoint/quote_name.h"
#include "text/hf/encode_fault.h"

namespace headrace::text {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kMebibyteTime = std::chrono::seconds(1);

/// When the thread's budget ends; none is under way: nothing.
std::optional<nanoseconds>& end_of_budget() {
  thread_local std::optional<nanoseconds> end;
  return end;
}

}  // namespace

RegexBudget::RegexBudget(size_t num_bytes, nanoseconds most) : is_outermost_(!end_of_budget()) {
  if (!is_outermost_) return;
  end_of_budget() = thread_time() + most + kMebibyteTime * static_cast<int64_t>(num_bytes >> 20);
}

RegexBudget::~RegexBudget() {
  if (is_outermost_) end_of_budget().reset();
}

nanoseconds RegexBudget::check(std::string_view pattern) {
  const nanoseconds now = thread_time();
  if (!end_of_budget() || now < *end_of_budget()) return now;
  throw EncodeFault{Error{
      ErrorCode::resource_exhausted,
      "the pattern " + quote_name(pattern) + " takes more processor time than a text may have",
      "tokenizer", ""}};
}

}  // namespace headrace::text
