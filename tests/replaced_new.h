// operator new and delete of a test program that watches the heap. Included by one file of it,
// which defines allocate_for_test.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

/// What every operator new calls; the memory is given back with std::free. `alignment` is at least
/// that of std::max_align_t.
void* allocate_for_test(size_t size, size_t alignment);

/// Memory from the C heap. Throws std::bad_alloc.
inline void* allocate_plainly(size_t size, size_t alignment) {
  const size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

/// What is allocated now, of all threads.
inline std::atomic<int64_t> num_live_allocations{0};
inline std::atomic<int64_t> live_bytes{0};

inline void* allocate_counted(size_t size, size_t alignment) {
  void* memory = allocate_for_test(size, alignment);
  num_live_allocations.fetch_add(1, std::memory_order_relaxed);
  live_bytes.fetch_add(static_cast<int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
  return memory;
}

inline void free_counted(void* memory) noexcept {
  if (memory == nullptr) return;
  num_live_allocations.fetch_sub(1, std::memory_order_relaxed);
  live_bytes.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
  std::free(memory);
}

void* operator new(size_t size) {
  return allocate_counted(size, alignof(std::max_align_t));
}
void* operator new[](size_t size) {
  return allocate_counted(size, alignof(std::max_align_t));
}
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_counted(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_counted(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  free_counted(memory);
}
void operator delete[](void* memory) noexcept {
  free_counted(memory);
}
void operator delete(void* memory, size_t) noexcept {
  free_counted(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  free_counted(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  free_counted(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  free_counted(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  free_counted(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  free_counted(memory);
}
