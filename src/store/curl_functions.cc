// See curl_functions.h.
#include "store/curl_functions.h"

#include <string>

#include "base/os/shared_library.h"

namespace headrace {
namespace {

// The name of all versions since 2006 whose functions can be called alike.
constexpr const char* kCurlLibrary = "libcurl.so.4";

Result<CurlFunctions> find_functions() {
  HEADRACE_ASSIGN(const SharedLibrary library, SharedLibrary::open(kCurlLibrary));
  CurlFunctions out;
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    if (!library.find(name, function) && missing == nullptr) missing = name;
  };
  find("curl_easy_cleanup", out.easy_cleanup);
  find("curl_easy_getinfo", out.easy_getinfo);
  find("curl_easy_init", out.easy_init);
  find("curl_easy_setopt", out.easy_setopt);
  find("curl_easy_strerror", out.easy_strerror);
  find("curl_free", out.free);
  find("curl_getdate", out.getdate);
  find("curl_global_init", out.global_init);
  find("curl_multi_add_handle", out.multi_add_handle);
  find("curl_multi_cleanup", out.multi_cleanup);
  find("curl_multi_info_read", out.multi_info_read);
  find("curl_multi_init", out.multi_init);
  find("curl_multi_perform", out.multi_perform);
  find("curl_multi_poll", out.multi_poll);
  find("curl_multi_remove_handle", out.multi_remove_handle);
  find("curl_slist_append", out.slist_append);
  find("curl_slist_free_all", out.slist_free_all);
  find("curl_url", out.url);
  find("curl_url_cleanup", out.url_cleanup);
  find("curl_url_get", out.url_get);
  find("curl_url_set", out.url_set);
  if (missing != nullptr) {
    return Error{ErrorCode::unsupported, std::string(kCurlLibrary) + " has no function " + missing,
                 "", "install libcurl 7.85 or newer"};
  }
  if (out.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return Error{ErrorCode::internal, "curl cannot be started", "", ""};
  }
  return out;
}

}  // namespace

const Result<CurlFunctions>& load_curl() {
  static const Result<CurlFunctions> kLoaded = find_functions();
  return kLoaded;
}

}  // namespace headrace
