// See access.h.
#include "server/access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "base/os/input_stream.h"
#include "base/read_number.h"
#include "headrace/request.h"

namespace headrace::server {
namespace {

constexpr size_t kMaxKeyFileBytes = 1 << 20;

std::array<uint8_t, 32> hash_of(std::string_view key) {
  std::array<uint8_t, 32> out{};
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), out.data());
  return out;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

std::string in_lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

/// Takes the first line off `text`.
std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

Error no_key(const std::string& name) {
  return {ErrorCode::invalid_argument, "has no key, so that nobody could ask", name,
          "put one on each line"};
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos) return out;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t\r"), line.size());
    out.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

template <class Int>
bool set_number(std::string_view text, Int least, Int most, Int& to) {
  const auto value = number_within(text, least, most);
  to = value.value_or(to);
  return value.has_value();
}

bool read_setting(std::string_view word, ApiKey& key) {
  const size_t equals = word.find('=');
  if (equals == word.npos) return false;
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  if (name == "owner" && !value.empty() && value.size() <= 128 && !value.starts_with("key-")) {
    key.owner = value;
    return true;
  }
  if (name == "max-requests") {
    return set_number<int64_t>(value, 1, 1'000'000, key.max_requests);
  }
  if (name == "priority") return set_number(value, -8, 8, key.priority);
  return false;
}

}  // namespace

ApiKey api_key(std::string_view key, std::string owner) {
  ApiKey out;
  out.hash = hash_of(key);
  out.owner = std::move(owner);
  return out;
}

Result<std::vector<ApiKey>> parse_api_keys(std::string_view text, const std::string& name,
                                           size_t num_before) {
  std::vector<ApiKey> out;
  for (int64_t number = 1; !text.empty(); ++number) {
    const auto words = words_of(next_line(text));
    if (words.empty() || words.front().starts_with('#')) continue;
    const std::string where = fmt::format("{}:{}", name, number);
    ApiKey key = api_key(words.front(), fmt::format("key-{}", num_before + out.size() + 1));
    for (size_t i = 1; i < words.size(); ++i) {
      if (read_setting(words[i], key)) continue;
      return Error{ErrorCode::invalid_argument,
                   "expected KEY [owner=NAME] [max-requests=N] [priority=-8..8]", where, ""};
    }
    const auto is_same = [&](const ApiKey& other) { return other.hash == key.hash; };
    if (std::any_of(out.begin(), out.end(), is_same)) {
      return Error{ErrorCode::invalid_argument, "the key of an earlier line again", where, ""};
    }
    out.push_back(std::move(key));
  }
  if (out.empty()) return no_key(name);
  return out;
}

Result<std::vector<ApiKey>> read_api_keys(const std::string& path, size_t num_before) {
  HEADRACE_ASSIGN(const std::string text, read_small_file(path, kMaxKeyFileBytes));
  return parse_api_keys(text, path, num_before);
}

Result<std::string> first_api_key(const std::string& path) {
  HEADRACE_ASSIGN(const std::string text, read_small_file(path, kMaxKeyFileBytes));
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto words = words_of(next_line(rest));
    if (!words.empty() && !words.front().starts_with('#')) return std::string(words.front());
  }
  return no_key(path);
}

std::string_view given_key(const HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view value = request.header("authorization");
  if (in_lower_case(value.substr(0, kScheme.size())) == kScheme) {
    value.remove_prefix(kScheme.size());
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    return value;
  }
  return request.header("x-api-key");
}

const ApiKey* find_key(const std::vector<ApiKey>& keys, std::string_view given) {
  const auto hash = hash_of(given);
  const ApiKey* found = nullptr;
  for (const ApiKey& key : keys) {
    if (CRYPTO_memcmp(key.hash.data(), hash.data(), hash.size()) == 0) found = &key;
  }
  return found;
}

int allowed_priority(const std::vector<ApiKey>& keys, const ApiKey* key, int asked) {
  const int own = key != nullptr ? key->priority : 0;
  const int more = keys.size() > 1 ? std::max(0, asked) : asked;
  return std::clamp(own + more, kMinPriority, kMaxPriority);
}

std::string host_name(std::string_view host) {
  if (host.starts_with('[')) return in_lower_case(host.substr(0, host.find(']') + 1));
  return in_lower_case(host.substr(0, host.find(':')));
}

bool is_loopback_name(std::string_view name) {
  return name == "localhost" || name == "[::1]" || name == "127.0.0.1" ||
         name.ends_with(".localhost");
}

bool is_listed_origin(const OriginPolicy& policy, const HttpRequest& request) {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return false;
  return std::any_of(policy.origins.begin(), policy.origins.end(),
                     [&](const std::string& each) { return each == "*" || each == origin; });
}

std::optional<std::string> origin_fault(const OriginPolicy& policy, const HttpRequest& request) {
  const std::string_view host = request.header("host");
  if (!policy.hosts.empty()) {
    const std::string name = host_name(host);
    if (std::find(policy.hosts.begin(), policy.hosts.end(), name) == policy.hosts.end()) {
      return "This server does not answer to that Host; its operator may allow it with "
             "--allowed-host.";
    }
  }
  const std::string_view origin = request.header("origin");
  if (origin.empty() || is_listed_origin(policy, request)) return std::nullopt;
  const size_t scheme = origin.find("://");
  if (scheme != origin.npos && origin.substr(scheme + 3) == host) return std::nullopt;
  return "Pages of that origin may not ask this server; its operator may allow it with "
         "--allowed-origin.";
}

}  // namespace headrace::server
