// How a server is set up. Must not know how models are opened.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "server/access.h"
#include "server/admission.h"
#include "server/http/http_server.h"

namespace headrace::server {

struct ServerOptions {
  HttpOptions http;
  OriginPolicy origins;
  std::vector<ApiKey> keys;  ///< none: everybody may ask
  AdmissionLimits admission;
  /// Requests that tokenise or render but generate nothing, until their answers are sent; of those
  /// an owner may have half. Their bodies are bounded as those of `admission`, on their own.
  int64_t max_text_tools = 64;
  /// Prefixes are shared among all keys, which lets one tell from the time of an answer what
  /// another has asked.
  bool shares_prefixes = false;
  size_t max_unsent_bytes = 256 << 10;           ///< of a streamed answer; then its sequences pause
  std::chrono::milliseconds keep_alive{15'000};  ///< between two signs of life in a stream
  std::chrono::milliseconds stuck_after{10'000};  ///< a step in which no layer ended
  std::chrono::milliseconds drain_time{30'000};   ///< that running requests have to end
  bool has_page = true;
  bool keeps_prompts = false;  ///< /explain tells of prompts too, to the key that sent them
  std::string sensors_root = "/sys/class";  ///< where the machine shows its temperature
  std::string version = "0";
};

}  // namespace headrace::server
