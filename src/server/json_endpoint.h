// Endpoints that make JSON from a value of JSON. Must not know sockets.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/error_json.h"
#include "api/json.h"
#include "headrace/result.h"
#include "server/http/exchange.h"
#include "server/server_state.h"

namespace headrace::server {

/// Makes the text of the answer, so that one that is much longer than its request is there once.
using MakeJson = std::function<Result<std::string>(const api::Json& body, const ModelEntry& model)>;

/// Parses the body, finds the model that it names, and answers with what `make` makes, or its
/// error.
void answer_json(ServerState& state, const std::shared_ptr<Exchange>& exchange,
                 const MakeJson& make);

/// The model that a body names; errors: not_found.
Result<ModelEntry*> named_model(const ModelSet& models, const api::Json& body);

/// The value of a query's field, percent-decoded ("model=a%20b"); "" where there is none.
std::string query_value(std::string_view query, std::string_view name);

/// The text of a value, or the error.
Result<std::string> json_text(const Result<api::Json>& json);

/// Whatever is in it: text that is not UTF-8 is replaced, no NaN.
std::string json_text(const api::Json& json);

}  // namespace headrace::server
