// See hub_settings.h. Source of the variables: huggingface_hub's documentation of its environment.
#include "store/hub_settings.h"

#include <algorithm>
#include <cstdlib>

#include "base/read_number.h"
#include "store/file_names.h"
#include "store/small_file.h"

namespace headrace {
namespace {

constexpr const char* kPublicHub = "https://huggingface.co";
constexpr size_t kMaxTokenBytes = 4096;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// "~" is the home folder, as huggingface_hub has it.
std::string expanded(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  return variable("HOME") + path.substr(1);
}

std::string hub_home() {
  if (const auto set = variable("HF_HOME"); !set.empty()) return expanded(set);
  if (const auto set = variable("XDG_CACHE_HOME"); !set.empty()) {
    return expanded(set) + "/huggingface";
  }
  const auto home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/huggingface";
}

bool is_true(const std::string& value) {
  const std::string lower = lower_case(value);
  return lower == "1" || lower == "on" || lower == "yes" || lower == "true";
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

Result<std::string> read_token() {
  std::string token = trimmed(variable("HF_TOKEN"));
  std::string where = "HF_TOKEN";
  if (token.empty()) {
    const std::string home = hub_home();
    where = variable("HF_TOKEN_PATH");
    where = !where.empty() ? expanded(where) : home.empty() ? "" : home + "/token";
    token = trimmed(read_text_up_to(where, kMaxTokenBytes).value_or(""));
  }
  const bool is_plain =
      std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (is_plain && token.size() <= kMaxTokenBytes) return token;
  return Error{ErrorCode::invalid_argument, "this is no token: it has spaces or other characters",
               where, "a token is one word, such as hf_..."};
}

Result<std::string> read_endpoint() {
  std::string endpoint = variable("HF_ENDPOINT");
  if (endpoint.empty()) return std::string(kPublicHub);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool is_address = (endpoint.starts_with("https://") || endpoint.starts_with("http://")) &&
                          endpoint.find_first_of(" \t\r\n?#") == std::string::npos;
  if (is_address) return endpoint;
  return Error{ErrorCode::invalid_argument, "this is no address of a hub", "HF_ENDPOINT",
               "it begins with https:// or http://"};
}

}  // namespace

std::string hub_cache_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto set = variable(name); !set.empty()) return expanded(set);
  }
  const std::string home = hub_home();
  return home.empty() ? "" : home + "/hub";
}

Result<HubSettings> read_hub_settings() {
  HubSettings settings;
  HEADRACE_ASSIGN(settings.endpoint, read_endpoint());
  HEADRACE_ASSIGN(settings.token, read_token());
  settings.cache = hub_cache_folder();
  if (settings.cache.empty()) {
    return Error{ErrorCode::not_found, "no folder for what comes from a hub: HOME is not set", "",
                 "set HF_HOME to a folder"};
  }
  settings.is_offline = is_true(variable("HF_HUB_OFFLINE"));
  if (const auto text = variable("HF_HUB_DOWNLOAD_TIMEOUT"); !text.empty()) {
    const auto seconds = number_within<int>(text, 1, 3600);
    if (!seconds) {
      return Error{ErrorCode::invalid_argument,
                   "expected seconds from 1 to 3600, got '" + text + "'", "HF_HUB_DOWNLOAD_TIMEOUT",
                   ""};
    }
    settings.stall_seconds = *seconds;
  }
  return settings;
}

}  // namespace headrace
