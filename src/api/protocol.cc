// See protocol.h.
#include "api/protocol.h"

#include <algorithm>
#include <array>

#include "api/anthropic_format.h"
#include "api/chat_format.h"
#include "api/completion_format.h"
#include "api/embedding_format.h"
#include "api/embedding_request.h"
#include "api/in_quotes.h"
#include "api/llama_format.h"
#include "api/response_format.h"

namespace headrace::api {
namespace {

constexpr std::array kProtocols = {
    Protocol{.path = "/v1/chat/completions",
             .id_prefix = "chatcmpl-",
             .generates = true,
             .is_in_batch_files = true,
             .prepare = prepare_chat,
             .make_format = make_chat_format,
             .error_body = error_json},
    Protocol{.path = "/v1/completions",
             .id_prefix = "cmpl-",
             .generates = true,
             .is_in_batch_files = true,
             .prepare = prepare_completion,
             .make_format = make_completion_format,
             .error_body = error_json},
    Protocol{.path = "/v1/responses",
             .id_prefix = "resp_",
             .generates = true,
             .is_in_batch_files = true,
             .prepare = prepare_response,
             .make_format = make_response_format,
             .error_body = error_json},
    Protocol{.path = "/v1/messages",
             .id_prefix = "msg_",
             .generates = true,
             .is_in_batch_files = false,
             .prepare = prepare_anthropic,
             .make_format = make_anthropic_format,
             .error_body = anthropic_error},
    Protocol{.path = "/completion",
             .id_prefix = "cmpl-",
             .generates = true,
             .is_in_batch_files = false,
             .prepare = prepare_llama,
             .make_format = make_llama_format,
             .error_body = error_json},
};

constexpr std::array kVectorProtocols = {
    Protocol{.path = "/v1/embeddings",
             .id_prefix = "embd-",
             .generates = false,
             .is_in_batch_files = true,
             .prepare = prepare_embedding,
             .make_format = make_embedding_format,
             .error_body = error_json},
    Protocol{.path = "/v1/rerank",
             .id_prefix = "rerank-",
             .generates = false,
             .is_in_batch_files = false,
             .prepare = prepare_ranking,
             .make_format = make_ranking_format,
             .error_body = error_json},
};

const Protocol* find_in(std::span<const Protocol> protocols, std::string_view path) {
  const auto found = std::find_if(protocols.begin(), protocols.end(),
                                  [&](const Protocol& protocol) { return protocol.path == path; });
  return found == protocols.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Protocol> protocols() {
  return kProtocols;
}

std::span<const Protocol> vector_protocols() {
  return kVectorProtocols;
}

const Protocol* protocol_at(std::string_view path) {
  const Protocol* const found = find_in(kProtocols, path);
  return found != nullptr ? found : find_in(kVectorProtocols, path);
}

Result<PreparedRequest> prepare(const Protocol& protocol, const Json& body,
                                const ServedModel& model, const Clock& clock) {
  if (protocol.generates && model.is_encoder) {
    return Error{ErrorCode::unsupported,
                 in_quotes(model.name) + " is an embedding model: it generates no text", "model",
                 "use /v1/embeddings"};
  }
  return protocol.prepare(body, model, clock);
}

}  // namespace headrace::api
