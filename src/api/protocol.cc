// See protocol.h.
#include "api/protocol.h"

#include <algorithm>
#include <array>

#include "api/anthropic_format.h"
#include "api/chat_format.h"
#include "api/completion_format.h"
#include "api/llama_format.h"
#include "api/response_format.h"

namespace headrace::api {
namespace {

constexpr std::array kProtocols = {
    Protocol{.path = "/v1/chat/completions",
             .id_prefix = "chatcmpl-",
             .is_in_batch_files = true,
             .prepare = prepare_chat,
             .make_format = make_chat_format,
             .error_body = error_json},
    Protocol{.path = "/v1/completions",
             .id_prefix = "cmpl-",
             .is_in_batch_files = true,
             .prepare = prepare_completion,
             .make_format = make_completion_format,
             .error_body = error_json},
    Protocol{.path = "/v1/responses",
             .id_prefix = "resp_",
             .is_in_batch_files = true,
             .prepare = prepare_response,
             .make_format = make_response_format,
             .error_body = error_json},
    Protocol{.path = "/v1/messages",
             .id_prefix = "msg_",
             .is_in_batch_files = false,
             .prepare = prepare_anthropic,
             .make_format = make_anthropic_format,
             .error_body = anthropic_error},
    Protocol{.path = "/completion",
             .id_prefix = "cmpl-",
             .is_in_batch_files = false,
             .prepare = prepare_llama,
             .make_format = make_llama_format,
             .error_body = error_json},
};

}  // namespace

std::span<const Protocol> protocols() {
  return kProtocols;
}

const Protocol* protocol_at(std::string_view path) {
  const auto found = std::find_if(kProtocols.begin(), kProtocols.end(),
                                  [&](const Protocol& protocol) { return protocol.path == path; });
  return found == kProtocols.end() ? nullptr : &*found;
}

}  // namespace headrace::api
