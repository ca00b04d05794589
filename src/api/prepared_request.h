// From a request's JSON to what the engine takes: parsed, templated, tokenised.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/embedding_options.h"
#include "api/generation_params.h"
#include "api/json.h"
#include "api/served_model.h"
#include "base/clock.h"
#include "headrace/request.h"
#include "headrace/result.h"

namespace headrace::api {

struct PreparedRequest {
  /// Where the request has its prompt, for errors about it: "prompt", "messages", "input".
  std::string_view prompt_field = "prompt";
  GenerationParams params;
  std::vector<Request> requests;  ///< one a prompt; each has all choices
  /// What each completion begins with, where the request wants its prompt echoed; else empty.
  std::vector<std::string> echoes;
  /// Whether an answer's token ids are kept, besides where log-probabilities were asked for.
  bool keeps_tokens = false;
  /// What the answer repeats of the request, if its protocol wants that: an object, or null.
  std::shared_ptr<const Json> repeated{};
  /// Of requests of kind embed and of kind score; else null.
  std::shared_ptr<const EmbeddingOptions> embedding{};
  std::shared_ptr<const RankingOptions> ranking{};
  /// The name of the adapter that was asked for as a model, and answers as one; else empty.
  std::string answers_as;
  bool goes_on = false;  ///< the answer follows a text of its own kind, not a turn's beginning
  std::vector<std::string> warnings;
  double tokenize_ms = 0;  ///< template and tokens
};

/// Of the protocols; see Protocol::prepare.
Result<PreparedRequest> prepare_completion(const Json& body, const ServedModel& model,
                                           const Clock& clock);
Result<PreparedRequest> prepare_chat(const Json& body, const ServedModel& model,
                                     const Clock& clock);
Result<PreparedRequest> prepare_response(const Json& body, const ServedModel& model,
                                         const Clock& clock);
Result<PreparedRequest> prepare_anthropic(const Json& body, const ServedModel& model,
                                          const Clock& clock);
Result<PreparedRequest> prepare_llama(const Json& body, const ServedModel& model,
                                      const Clock& clock);

/// Of an error of Engine::submit, or of the engine while it ran: with the field's name as the
/// request has it.
Error named_for_request(Error error, const PreparedRequest& request);

/// The model under the name that the request is answered by.
std::shared_ptr<const ServedModel> answering_model(const PreparedRequest& request,
                                                   std::shared_ptr<const ServedModel> model);

/// The scope in which prefixes are shared: that of an API key, narrowed by a request's salt.
std::string cache_scope(std::string_view api_key, std::string_view salt);

}  // namespace headrace::api
