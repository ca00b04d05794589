// See request_trace.h.
#include "server/request_trace.h"

#include <utility>

namespace headrace::server {

void TraceLog::add(std::shared_ptr<const RequestTrace> trace) {
  const std::lock_guard lock(mutex_);
  traces_.push_back(std::move(trace));
  if (traces_.size() > kMost) traces_.pop_front();
}

std::shared_ptr<const RequestTrace> TraceLog::find(std::string_view id,
                                                   std::string_view owner) const {
  const std::lock_guard lock(mutex_);
  for (auto at = traces_.rbegin(); at != traces_.rend(); ++at) {
    const RequestTrace& trace = **at;
    if ((trace.id == id || trace.request_id == id) && trace.owner == owner) return *at;
  }
  return nullptr;
}

}  // namespace headrace::server
