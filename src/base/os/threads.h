// What threads are called, and what each kind took of the processors.
#pragma once

#include <map>
#include <string>

namespace headrace {

/// As `top -H` and debuggers show the calling thread: 15 bytes at most. Nothing where the system
/// has no such thing.
void name_this_thread(const char* name);

/// Seconds that the process's threads of each name have run, of those that still do (Linux:
/// /proc/self/task, see proc(5)); empty where the system does not say.
std::map<std::string, double> thread_seconds();

}  // namespace headrace
