// The answers of POST /v1/embeddings (OpenAI's) and POST /v1/rerank (Cohere's and Jina's fields).
#pragma once

#include <memory>

#include "api/prepared_request.h"
#include "api/reply_format.h"
#include "api/served_model.h"

namespace headrace::api {

std::unique_ptr<ReplyFormat> make_embedding_format(const ResponseHead& head,
                                                   std::shared_ptr<const PreparedRequest> request,
                                                   std::shared_ptr<const ServedModel> model);

/// The best first; relevance_score is the logistic function of what the model says, from 0 to 1,
/// unless the request wants that itself.
std::unique_ptr<ReplyFormat> make_ranking_format(const ResponseHead& head,
                                                 std::shared_ptr<const PreparedRequest> request,
                                                 std::shared_ptr<const ServedModel> model);

}  // namespace headrace::api
