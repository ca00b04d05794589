// What the system lets this process use: processors and memory, control groups honoured.
#pragma once

#include <cstdint>
#include <string>

namespace headrace {

/// min(processors in the affinity mask, control-group quota rounded up), at least 1.
int usable_processors();

/// Bytes of memory this process may use in all: min(physical memory, control-group limits).
uint64_t memory_limit_bytes();

/// Peak resident set of this process so far, in bytes.
uint64_t peak_resident_bytes();

/// Processors granted by a `cpu.max` text ("max 100000", "150000 100000"), rounded up; 0 if the
/// text sets no limit. Source: Linux, Documentation/admin-guide/cgroup-v2.rst.
int parse_cpu_max(const std::string& text);

}  // namespace headrace
