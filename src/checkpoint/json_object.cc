// See json_object.h.
#include "checkpoint/json_object.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/json_depth.h"

namespace headrace {

Result<nlohmann::json> parse_json_object(std::string_view text, std::string_view file,
                                         size_t most_bytes) {
  constexpr int kDeepestObject = 64;
  const auto fail = [&](std::string message) {
    return Error{ErrorCode::corrupt_data, std::move(message), std::string(file),
                 "fetch the file again"};
  };
  if (text.size() > most_bytes) {
    return fail("expected a file of at most " + std::to_string(most_bytes >> 20) + " MiB");
  }
  if (json_depth(text) > kDeepestObject) return fail("nested more than 64 deep");
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object()) return fail("expected a JSON object");
  return parsed;
}

}  // namespace headrace
