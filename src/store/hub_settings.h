// Which hub, which token, which cache: from the variables that huggingface_hub reads too. Must not
// know HTTP.
#pragma once

#include <string>

#include "headrace/result.h"

namespace headrace {

struct HubSettings {
  std::string endpoint;  ///< "https://...", without a slash at its end
  std::string token;     ///< may be empty
  std::string cache;     ///< the folder of models--ORG--REPO
  bool is_offline = false;
  int stall_seconds = 30;  ///< a download in which nothing comes for as long has failed
};

/// The cache's folder alone: HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub,
/// else ~/.cache/huggingface/hub. "" where HOME is not set either.
std::string hub_cache_folder();

/// HF_ENDPOINT (else the public hub); HF_TOKEN, else the file HF_TOKEN_PATH, else HF_HOME/token;
/// HF_HUB_OFFLINE; HF_HUB_DOWNLOAD_TIMEOUT (seconds). Errors: invalid_argument (a value that is
/// none), not_found (no folder for the cache).
Result<HubSettings> read_hub_settings();

}  // namespace headrace
