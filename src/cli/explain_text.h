// What a server tells of one request (GET /explain/ID), for people. Must not know how it was asked.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace headrace::cli {

/// Bars of its phases, its prompt's chunks, its decode steps with their company, and why it ended.
/// What is missing in `explained`, or of another type, is left out. Printable.
std::string explain_text(const nlohmann::json& explained);

}  // namespace headrace::cli
