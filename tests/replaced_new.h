// operator new and delete of a test program that watches the heap. Included by one file of it,
// which defines allocate_for_test.
#pragma once

#include <cstddef>
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

void* operator new(size_t size) {
  return allocate_for_test(size, alignof(std::max_align_t));
}
void* operator new[](size_t size) {
  return allocate_for_test(size, alignof(std::max_align_t));
}
void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_for_test(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_for_test(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  std::free(memory);
}
