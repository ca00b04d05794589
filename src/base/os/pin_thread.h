// Threads that stay on one processor.
#pragma once

namespace headrace {

/// Keeps the calling thread on the `index`-th (modulo their number) of the processors that the
/// process could use when this was first called. False: the system refuses, or has no such thing.
bool pin_this_thread(int index);

/// Processors that the calling thread may run on; 0 where the system does not say.
int processors_of_this_thread();

}  // namespace headrace
