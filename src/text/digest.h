// SHA-256 over a sequence of texts and numbers, each told from the next. Owns the state. Must not
// know vocabularies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace headrace::text {

class Digest {
 public:
  Digest();
  ~Digest();

  /// The text with its size before it.
  void add(std::string_view text);
  /// Little-endian, whatever the machine.
  void add_number(uint64_t value);
  /// The bits of the number.
  void add_float(float value);
  void add_double(double value);
  /// Of all that was added, in lower-case hex. Nothing may be added afterwards.
  std::string hex();

 private:
  struct State;

  void add_raw(const char* data, size_t size);
  void flush();

  std::unique_ptr<State> state_;
  std::string buffer_;
};

}  // namespace headrace::text
