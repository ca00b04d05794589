// See http_get.h.
#include "cli/http_get.h"

#include <curl/curl.h>

#include <memory>
#include <utility>

#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

constexpr size_t kMaxBytes = 64 << 20;
constexpr long kConnectSeconds = 10;
constexpr long kSeconds = 60;

struct Body {
  std::string text;
  bool is_too_long = false;
};

size_t take(char* bytes, size_t /*size*/, size_t count, void* to) {
  auto& body = *static_cast<Body*>(to);
  if (body.text.size() + count > kMaxBytes) {
    body.is_too_long = true;
    return 0;
  }
  try {
    body.text.append(bytes, count);
  } catch (...) {  // no memory; libcurl is C
    return 0;
  }
  return count;
}

struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

/// No proxy leads to this machine itself.
bool is_local(const std::string& url) {
  const size_t scheme = url.find("://");
  const std::string rest = scheme == url.npos ? url : url.substr(scheme + 3);
  return rest.starts_with("127.") || rest.starts_with("localhost") || rest.starts_with("[::1]");
}

}  // namespace

Result<HttpAnswer> http_get(const std::string& url, const std::string& api_key) {
  if (api_key.find_first_of("\r\n") != api_key.npos) {
    return Error{ErrorCode::invalid_argument, "an API key is one line", "--api-key", ""};
  }
  const std::unique_ptr<CURL, FreeHandle> handle(curl_easy_init());
  if (handle == nullptr) return Error{ErrorCode::internal, "libcurl does not start", "", ""};
  CURL* const curl = handle.get();
  Body body;
  char reason[CURL_ERROR_SIZE] = "";
  std::unique_ptr<curl_slist, FreeList> headers;
  if (!api_key.empty()) {
    headers.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + api_key).c_str()));
  }
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  if (is_local(url)) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, kSeconds);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "headrace");
  const CURLcode code = curl_easy_perform(curl);
  const std::string where = printable(url, 200);
  if (body.is_too_long) {
    return Error{ErrorCode::out_of_range, "the answer is longer than 64 MiB", where, ""};
  }
  if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
    return Error{ErrorCode::invalid_argument, "expected an address as http://127.0.0.1:8080", where,
                 ""};
  }
  if (code != CURLE_OK) {
    return Error{ErrorCode::io_error, reason[0] != '\0' ? reason : curl_easy_strerror(code), where,
                 code == CURLE_COULDNT_CONNECT ? "is 'headrace serve' running there?" : ""};
  }
  HttpAnswer answer;
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  answer.body = std::move(body.text);
  return answer;
}

std::string path_segment(const std::string& text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    if (is_plain) {
      out.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

}  // namespace headrace::cli
