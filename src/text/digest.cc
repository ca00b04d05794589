// See digest.h.
#include "text/digest.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>

#include "base/check.h"

namespace headrace::text {
namespace {
constexpr size_t kDigestBuffer = 1 << 16;
}  // namespace

struct Digest::State {
  struct Free {
    void operator()(EVP_MD_CTX* owned) const { EVP_MD_CTX_free(owned); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Digest::Digest() : state_(std::make_unique<State>()) {
  HEADRACE_CHECK(state_->context != nullptr);
  HEADRACE_CHECK_EQ(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr), 1);
  buffer_.reserve(kDigestBuffer + 64);
}

Digest::~Digest() = default;

void Digest::add(std::string_view text) {
  add_number(text.size());
  add_raw(text.data(), text.size());
}

void Digest::add_number(uint64_t value) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  add_raw(bytes, 8);
}

void Digest::add_float(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  add_number(bits);
}

void Digest::add_double(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  add_number(bits);
}

std::string Digest::hex() {
  flush();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  HEADRACE_CHECK_EQ(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size), 1);
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out += "0123456789abcdef"[digest[i] >> 4];
    out += "0123456789abcdef"[digest[i] & 15];
  }
  return out;
}

void Digest::add_raw(const char* data, size_t size) {
  buffer_.append(data, size);
  if (buffer_.size() >= kDigestBuffer) flush();
}

void Digest::flush() {
  HEADRACE_CHECK_EQ(EVP_DigestUpdate(state_->context.get(), buffer_.data(), buffer_.size()), 1);
  buffer_.clear();
}

}  // namespace headrace::text
