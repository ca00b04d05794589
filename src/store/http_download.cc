// See http_download.h.
#include "store/http_download.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

#include "base/read_number.h"
#include "store/curl_functions.h"
#include "store/file_names.h"

namespace headrace {
namespace {

constexpr int kMaxRedirects = 10;
constexpr long kConnectSeconds = 20;
constexpr size_t kMaxErrorBody = 4096;
constexpr size_t kMaxHeaders = 200;
constexpr size_t kMaxHeaderBytes = 8192;
constexpr int kPollMilliseconds = 100;

struct FreeEasy {
  void operator()(CURL* handle) const { curl().easy_cleanup(handle); }
};
struct FreeMulti {
  void operator()(CURLM* handle) const { curl().multi_cleanup(handle); }
};
struct FreeUrl {
  void operator()(CURLU* handle) const { curl().url_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl().slist_free_all(list); }
};
struct FreeText {
  void operator()(char* text) const { curl().free(text); }
};

std::string url_part(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl().url_get(url, part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return "";
  const std::unique_ptr<char, FreeText> owner(text);
  return text;
}

/// Scheme, host and port: who may see a token.
std::string origin_of(const std::string& address) {
  const std::unique_ptr<CURLU, FreeUrl> url(curl().url());
  if (!url || curl().url_set(url.get(), CURLUPART_URL, address.c_str(), 0) != CURLUE_OK) return "";
  return lower_case(url_part(url.get(), CURLUPART_SCHEME) + "://" +
                    url_part(url.get(), CURLUPART_HOST)) +
         ":" + url_part(url.get(), CURLUPART_PORT);
}

bool is_https(const std::string& address) {
  return lower_case(address.substr(0, 8)) == "https://";
}

std::string first_variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

/// Of a URL, what may be printed: a signed address has secrets behind its question mark.
std::string shown(const std::string& url) {
  return url.substr(0, url.find('?')).substr(0, 300);
}

/// One request to one address, without redirects.
class Exchange {
 public:
  Exchange(const HttpRequest& request, const std::string& url, bool with_token)
      : request_(request) {
    answer_.url = url;
    easy_.reset(curl().easy_init());
    multi_.reset(curl().multi_init());
    if (easy_ && multi_) set_up(with_token);
  }
  ~Exchange() {
    if (easy_ && multi_) curl().multi_remove_handle(multi_.get(), easy_.get());
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  HttpOutcome run() {
    HttpOutcome out;
    if (!easy_ || !multi_ || curl().multi_add_handle(multi_.get(), easy_.get()) != CURLM_OK) {
      out.error = Error{ErrorCode::resource_exhausted, "curl cannot be started", "", ""};
      return out;
    }
    const CURLcode code = wait_for_end();
    long status = 0;
    curl().easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    answer_.status = static_cast<int>(status);
    if (!error_ && code == CURLE_OK) begin_once();  // an answer without a body
    out.error_body = std::move(error_body_);
    if (error_) {
      out.error = std::move(error_);
    } else if (code != CURLE_OK) {
      out.error = explain(code, out.is_transient);
    } else if (is_redirect()) {
      out.error = next_address();
    }
    out.answer = std::move(answer_);
    return out;
  }

  /// Where a redirect goes; empty: there is none.
  const std::string& next() const { return next_; }

 private:
  void set_up(bool with_token) {
    CURL* easy = easy_.get();
    curl().easy_setopt(easy, CURLOPT_URL, answer_.url.c_str());
    curl().easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl().easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl().easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl().easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl().easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl().easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request_.stall_seconds));
    curl().easy_setopt(easy, CURLOPT_USERAGENT, "headrace");
    curl().easy_setopt(easy, CURLOPT_ERRORBUFFER, reason_.data());
    curl().easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    curl().easy_setopt(easy, CURLOPT_HEADERDATA, this);
    curl().easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl().easy_setopt(easy, CURLOPT_WRITEDATA, this);
    if (request_.head) curl().easy_setopt(easy, CURLOPT_NOBODY, 1L);
    set_certificates();
    set_headers(with_token);
  }

  /// The variables that the curl program reads, and those of Python's tools; libcurl reads none.
  void set_certificates() {
    const std::string file =
        first_variable({"CURL_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"});
    const std::string folder = first_variable({"SSL_CERT_DIR"});
    if (!file.empty()) curl().easy_setopt(easy_.get(), CURLOPT_CAINFO, file.c_str());
    if (!folder.empty()) curl().easy_setopt(easy_.get(), CURLOPT_CAPATH, folder.c_str());
  }

  void set_headers(bool with_token) {
    std::vector<std::string> lines;
    if (with_token) lines.push_back("Authorization: Bearer " + request_.token);
    if (request_.from > 0) {
      lines.push_back("Range: bytes=" + std::to_string(request_.from) + "-");
      if (!request_.if_range.empty()) lines.push_back("If-Range: " + request_.if_range);
    }
    for (const std::string& line : lines) {
      curl_slist* longer = curl().slist_append(headers_.get(), line.c_str());
      if (longer == nullptr) return;
      (void)headers_.release();
      headers_.reset(longer);
    }
    curl().easy_setopt(easy_.get(), CURLOPT_HTTPHEADER, headers_.get());
  }

  CURLcode wait_for_end() {
    for (;;) {
      int num_running = 0;
      if (curl().multi_perform(multi_.get(), &num_running) != CURLM_OK) return CURLE_FAILED_INIT;
      if (request_.keep_going && !request_.keep_going()) {
        error_ = Error{ErrorCode::cancelled, "interrupted", "", ""};
        return CURLE_ABORTED_BY_CALLBACK;
      }
      int num_left = 0;
      while (const CURLMsg* message = curl().multi_info_read(multi_.get(), &num_left)) {
        if (message->msg == CURLMSG_DONE) return message->data.result;
      }
      curl().multi_poll(multi_.get(), nullptr, 0, kPollMilliseconds, nullptr);
    }
  }

  bool is_redirect() const {
    const int status = answer_.status;
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
  }

  /// Sets next_. Errors: there is no address, or one that is not followed.
  std::optional<Error> next_address() {
    const Error wrong{ErrorCode::io_error, "the server sends elsewhere, to no address that is used",
                      shown(answer_.url), ""};
    const std::string location = answer_.header("location");
    const std::unique_ptr<CURLU, FreeUrl> url(curl().url());
    if (!url || location.empty() ||
        curl().url_set(url.get(), CURLUPART_URL, answer_.url.c_str(), 0) != CURLUE_OK ||
        curl().url_set(url.get(), CURLUPART_URL, location.c_str(), CURLU_URLENCODE) != CURLUE_OK) {
      return wrong;
    }
    next_ = url_part(url.get(), CURLUPART_URL);
    const bool is_web = is_https(next_) || lower_case(next_.substr(0, 7)) == "http://";
    if (is_web && !(is_https(answer_.url) && !is_https(next_))) return std::nullopt;
    next_.clear();
    return wrong;
  }

  Error explain(CURLcode code, bool& is_transient) const {
    const std::string where = shown(answer_.url);
    std::string why = reason_.data();
    if (why.empty()) why = curl().easy_strerror(code);
    switch (code) {
      case CURLE_PEER_FAILED_VERIFICATION:
      case CURLE_SSL_CACERT_BADFILE:
      case CURLE_SSL_CERTPROBLEM:
      case CURLE_SSL_ISSUER_ERROR:
        return {ErrorCode::io_error, "the server cannot be trusted: " + why, where,
                "behind a proxy with a certificate of its own, name that by SSL_CERT_FILE"};
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_RESOLVE_PROXY:
      case CURLE_COULDNT_CONNECT:
        is_transient = true;
        return {ErrorCode::io_error, "cannot be reached: " + why, where,
                "check the network and the proxy (https_proxy)"};
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_URL_MALFORMAT:
        return {ErrorCode::invalid_argument, "no address that is used: " + why, where, ""};
      case CURLE_OPERATION_TIMEDOUT:
        is_transient = true;
        return {ErrorCode::io_error, "nothing came for too long: " + why, where, ""};
      default:
        is_transient = true;
        return {ErrorCode::io_error, "the connection failed: " + why, where, ""};
    }
  }

  bool is_wanted() const { return answer_.status >= 200 && answer_.status < 300; }

  /// Before the first byte of the body. False: the caller wants none of it.
  bool begin_once() {
    if (has_begun_ || !is_wanted()) return true;
    has_begun_ = true;
    if (!request_.begin) return true;
    if (auto begun = request_.begin(answer_); !begun.ok()) error_ = std::move(begun).error();
    return !error_;
  }

  static size_t on_header(char* data, size_t size, size_t count, void* self) {
    static_cast<Exchange*>(self)->take_header({data, size * count});
    return size * count;
  }

  void take_header(std::string_view line) {
    if (line.starts_with("HTTP/")) {  // of each answer, also of a proxy's and of 100
      answer_.headers.clear();
      return;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || line.size() > kMaxHeaderBytes ||
        answer_.headers.size() >= kMaxHeaders) {
      return;
    }
    const auto trim = [](std::string_view text) {
      const size_t first = text.find_first_not_of(" \t\r\n");
      if (first == std::string_view::npos) return std::string();
      return std::string(text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1));
    };
    answer_.headers[lower_case(trim(line.substr(0, colon)))] = trim(line.substr(colon + 1));
  }

  static size_t on_body(char* data, size_t size, size_t count, void* self) {
    const bool goes_on = static_cast<Exchange*>(self)->take_body({data, size * count});
    return goes_on ? size * count : CURL_WRITEFUNC_ERROR;
  }

  bool take_body(std::string_view piece) {
    long status = 0;
    curl().easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    answer_.status = static_cast<int>(status);
    if (!is_wanted()) {
      error_body_ += piece.substr(0, kMaxErrorBody - std::min(kMaxErrorBody, error_body_.size()));
      return true;
    }
    if (!begin_once()) return false;
    if (!request_.sink) return true;
    auto taken = request_.sink(std::as_bytes(std::span(piece.data(), piece.size())));
    if (!taken.ok()) error_ = std::move(taken).error();
    return !error_;
  }

  const HttpRequest& request_;
  HttpAnswer answer_;
  std::string next_;
  std::string error_body_;
  std::optional<Error> error_;  ///< of a callback
  bool has_begun_ = false;
  std::array<char, CURL_ERROR_SIZE> reason_{};
  std::unique_ptr<curl_slist, FreeList> headers_;
  std::unique_ptr<CURL, FreeEasy> easy_;
  std::unique_ptr<CURLM, FreeMulti> multi_;
};

}  // namespace

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpOutcome http_run(const HttpRequest& request) {
  HttpOutcome out;
  if (!load_curl().ok()) {
    out.error = load_curl().error();
    return out;
  }
  const std::string origin = origin_of(request.url);
  std::map<std::string, std::string> first;
  std::string url = request.url;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    const bool with_token = !request.token.empty() && !origin.empty() && origin_of(url) == origin;
    Exchange exchange(request, url, with_token);
    out = exchange.run();
    if (hop == 0) first = out.answer.headers;
    out.answer.first_headers = first;
    if (out.error || exchange.next().empty()) return out;
    if (request.stay_on_host && origin_of(exchange.next()) != origin) return out;
    url = exchange.next();
  }
  out.error = Error{ErrorCode::io_error, "the server sends elsewhere more than ten times",
                    shown(request.url), ""};
  return out;
}

std::optional<int64_t> retry_after_seconds(const std::string& value) {
  if (const auto seconds = number_within<int64_t>(value, 0, 1'000'000)) return seconds;
  if (!load_curl().ok()) return std::nullopt;
  const time_t date = curl().getdate(value.c_str(), nullptr);
  if (date < 0) return std::nullopt;
  return std::max<int64_t>(0,
                           static_cast<int64_t>(date) - static_cast<int64_t>(std::time(nullptr)));
}

std::string url_escaped(const std::string& path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~' ||
                          c == '/';
    if (is_plain) {
      text += c;
    } else {
      text += '%';
      text += kDigits[static_cast<unsigned char>(c) >> 4];
      text += kDigits[static_cast<unsigned char>(c) & 15];
    }
  }
  return text;
}

}  // namespace headrace
