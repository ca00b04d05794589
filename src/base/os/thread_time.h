// How long a thread has computed.
#pragma once

#include <chrono>

namespace headrace {

/// Processor time of the calling thread: it does not go on while others have the processor.
std::chrono::nanoseconds thread_time();

}  // namespace headrace
