// See sha256.h; OpenSSL does the work.
#include "store/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <new>
#include <vector>

#include "base/check.h"

namespace headrace {
namespace {

std::string hex_of(std::span<const unsigned char> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string finish_digest(EVP_MD_CTX* context) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HEADRACE_CHECK_EQ(EVP_DigestFinal_ex(context, digest.data(), &size), 1);
  return hex_of(std::span(digest).first(size));
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr) throw std::bad_alloc();
  HEADRACE_CHECK_EQ(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr), 1);
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  HEADRACE_CHECK_EQ(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()), 1);
}

std::string Sha256::finish() {
  return finish_digest(state_->context);
}

Result<std::string> git_blob_sha1(const std::string& path) {
  const Error unreadable{ErrorCode::io_error, "cannot be read", path, ""};
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  std::ifstream input(path, std::ios::binary);
  if (error || !input) return unreadable;
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  if (!context) throw std::bad_alloc();
  HEADRACE_CHECK_EQ(EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr), 1);
  const std::string head = "blob " + std::to_string(size) + '\0';
  HEADRACE_CHECK_EQ(EVP_DigestUpdate(context.get(), head.data(), head.size()), 1);
  std::vector<char> buffer(size_t{1} << 16);
  for (uint64_t left = size; left > 0;) {
    input.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto got = static_cast<uint64_t>(input.gcount());
    if (got == 0 || got > left) return unreadable;
    HEADRACE_CHECK_EQ(EVP_DigestUpdate(context.get(), buffer.data(), got), 1);
    left -= got;
  }
  return finish_digest(context.get());
}

}  // namespace headrace
