// The endpoints that run a model: from a body to what the engine takes, and how each one's
// answers look. Must not know sockets.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/error_json.h"
#include "api/json.h"
#include "api/prepared_request.h"
#include "api/reply_format.h"
#include "api/served_model.h"
#include "base/clock.h"
#include "headrace/result.h"

namespace headrace::api {

struct Protocol {
  std::string_view path;       ///< "/v1/chat/completions"
  std::string_view id_prefix;  ///< what the ids of its answers begin with
  bool generates;              ///< text; else vectors or scores
  bool is_in_batch_files;      ///< whether a line of a batch file may name it
  /// Errors (each with the field in `where`): those of the parsers; not_found (another model's
  /// name); the template's; unsupported (a chat with a base model).
  Result<PreparedRequest> (*prepare)(const Json& body, const ServedModel& model,
                                     const Clock& clock);
  std::unique_ptr<ReplyFormat> (*make_format)(const ResponseHead& head,
                                              std::shared_ptr<const PreparedRequest> request,
                                              std::shared_ptr<const ServedModel> model);
  std::string (*error_body)(const ApiError& error);
};

/// Those that generate text.
std::span<const Protocol> protocols();
/// Those that make vectors and scores.
std::span<const Protocol> vector_protocols();

/// Of both, null: there is none.
const Protocol* protocol_at(std::string_view path);

/// protocol.prepare, of what the model can do. Errors: unsupported too, where a model that
/// generates nothing is asked for text.
Result<PreparedRequest> prepare(const Protocol& protocol, const Json& body,
                                const ServedModel& model, const Clock& clock);

}  // namespace headrace::api
