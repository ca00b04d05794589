// The one way in which an error reaches a client: an HTTP status and OpenAI's error object. Must
// not know sockets.
#pragma once

#include <string>

#include "headrace/result.h"

namespace headrace::api {

struct ApiError {
  int status = 500;
  std::string message;
  std::string type;   ///< "invalid_request_error", "server_error", ...
  std::string code;   ///< "context_length_exceeded", ...; empty: null
  std::string param;  ///< the field of the request; empty: null
};

/// `error.where` is a field of the request ("messages[2].content"), kBody, or "". Where the fault
/// is the server's, what names files or code is left out.
ApiError api_error(const Error& error);

/// Names of another part of the program become the fields of a request: what Engine::submit calls
/// num_choices is "n". `prompt_field` is "prompt" or "messages".
Error named_for_request(Error error, const std::string& prompt_field);

/// {"error": {"message", "type", "code", "param"}}.
std::string error_json(const ApiError& error);

}  // namespace headrace::api
