// Who takes a prepared request: the model it is for, or a lighter one where that is allowed and the
// first has no room. Must not know HTTP.
#pragma once

#include <memory>
#include <vector>

#include "api/prepared_request.h"
#include "headrace/engine.h"
#include "headrace/result.h"
#include "server/model_set.h"

namespace headrace::server {

struct Submission {
  ModelEntry* model = nullptr;  ///< who answers
  /// As it was prepared; or with a warning that names who answers, and why.
  std::shared_ptr<const api::PreparedRequest> request;
  std::vector<std::shared_ptr<Stream>> streams;  ///< one a prompt
};

/// Gives all prompts of `request` to the engine of `model`. Where that refuses one for want of room
/// (overloaded, resource_exhausted), and the request or the operator allows it, all of them go to
/// its lighter model, or to that one's own, which ModelEntry::num_lighter counts. Error: what the
/// first model says, with the request's own names of fields; what was submitted is cancelled then.
Result<Submission> submit(ModelEntry& model, std::shared_ptr<const api::PreparedRequest> request);

}  // namespace headrace::server
