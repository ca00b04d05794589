// What the system lets this process use: processors and memory, control groups honoured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace {

/// min(processors in the affinity mask when this was first called, control-group quota rounded up),
/// at least 1.
int usable_processors();

/// Bytes of memory this process may use in all: min(physical memory, control-group limits).
uint64_t memory_limit_bytes();

/// Bytes that this process may still take without the system killing or swapping: the least of
/// memory_limit_bytes(), the system's MemAvailable, and what each control group has left (file
/// pages it can give back are no use). Sources: proc_pid(5), Linux cgroup-v2.rst and memory.rst.
uint64_t memory_available_bytes();

/// The number of bytes after `key` in a text of lines "key 123" or "key: 123 kB"; none if it is
/// not there or no number.
std::optional<uint64_t> parse_memory_field(const std::string& text, std::string_view key);

/// Peak resident set of this process so far, in bytes.
uint64_t peak_resident_bytes();

/// Lets this process have `wanted` descriptors, files and sockets, if not already, as far as the
/// system allows it to: shells and service managers begin programs with 1024. Returns how many it
/// may have.
uint64_t allow_open_files(uint64_t wanted);

/// Processors granted by a `cpu.max` text ("max 100000", "150000 100000"), rounded up; 0 if the
/// text sets no limit. Source: Linux, Documentation/admin-guide/cgroup-v2.rst.
int parse_cpu_max(const std::string& text);

}  // namespace headrace
