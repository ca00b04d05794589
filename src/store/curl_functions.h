// libcurl's functions, loaded when something is fetched for the first time: with what libcurl
// itself needs they are thirty libraries.
#pragma once

#include <curl/curl.h>

#include "headrace/result.h"

namespace headrace {

struct CurlFunctions {
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_free) free = nullptr;
  decltype(&::curl_getdate) getdate = nullptr;
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  decltype(&::curl_multi_perform) multi_perform = nullptr;
  decltype(&::curl_multi_poll) multi_poll = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  decltype(&::curl_url) url = nullptr;
  decltype(&::curl_url_cleanup) url_cleanup = nullptr;
  decltype(&::curl_url_get) url_get = nullptr;
  decltype(&::curl_url_set) url_set = nullptr;
};

/// Loads them, once. Errors: not_found (no libcurl), unsupported (one that is too old), internal
/// (it does not start).
const Result<CurlFunctions>& load_curl();

/// Only after load_curl() was without error.
inline const CurlFunctions& curl() {
  return *load_curl();
}

}  // namespace headrace
