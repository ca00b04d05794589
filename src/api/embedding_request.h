// The bodies of POST /v1/embeddings and POST /v1/rerank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/completion_request.h"
#include "api/embedding_options.h"
#include "api/embedding_text.h"
#include "api/generation_params.h"
#include "api/json.h"
#include "api/prepared_request.h"
#include "api/served_model.h"
#include "base/clock.h"
#include "headrace/result.h"

namespace headrace::api {

/// {"input": a string, an array of strings, of token ids, or of arrays of token ids; "dimensions",
/// "encoding_format": "float" or "base64", "pooling", "normalize", "truncate",
/// "truncate_prompt_tokens", "add_special_tokens"}. One Request a text. Errors: of a field,
/// context_length_exceeded at "input[3]", not_found (another model).
Result<PreparedRequest> prepare_embedding(const Json& body, const ServedModel& model,
                                          const Clock& clock);

/// {"query", "documents": strings or objects with "text"; "top_n", "return_documents",
/// "raw_scores", "truncate", "truncate_prompt_tokens"}. One Request a document. Errors: likewise;
/// unsupported (no cross-encoder).
Result<PreparedRequest> prepare_ranking(const Json& body, const ServedModel& model,
                                        const Clock& clock);

/// One more Request: of a text's window.
void add_embedding(const GenerationParams& params, const EmbeddingOptions& options,
                   TextWindow window, PreparedRequest& out);

}  // namespace headrace::api
