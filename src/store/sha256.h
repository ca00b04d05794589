// SHA-256 of a stream of bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace headrace {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::span<const std::byte> bytes);
  /// Lower-case hexadecimal digits; nothing may be added afterwards.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace
