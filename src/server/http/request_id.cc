// See request_id.h.
#include "server/http/request_id.h"

#include <openssl/rand.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace headrace::server {

std::string random_name() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
  std::array<unsigned char, 24> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    // Names must differ even so.
    static std::atomic<uint64_t> count{0};
    uint64_t number = ++count;
    for (auto& each : bytes) {
      each = static_cast<unsigned char>(number & 31);
      number >>= 5;
    }
  }
  std::string out;
  for (const unsigned char each : bytes) out.push_back(kLetters[each & 31]);
  return out;
}

std::string make_request_id() {
  return "req-" + random_name();
}

}  // namespace headrace::server
