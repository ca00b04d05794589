// An exchange that tells the log how it went. Must not know routes.
#pragma once

#include <memory>
#include <string>

#include "server/http/exchange.h"
#include "server/request_log.h"

namespace headrace::server {

/// What a log is told of a request before anything was done with it. `owner`: the key's; "" where
/// there are none.
RequestRecord record_of(const HttpRequest& request, std::string owner);

/// What a log calls it.
const char* end_name(ExchangeEnd end);

/// `exchange`, which writes `record` to `log` once it is over, with its status and time. `log` must
/// outlive it.
std::shared_ptr<Exchange> logged_exchange(std::shared_ptr<Exchange> exchange, RequestLog& log,
                                          RequestRecord record);

}  // namespace headrace::server
