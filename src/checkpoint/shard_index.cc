// See shard_index.h.
#include "checkpoint/shard_index.h"

#include <nlohmann/json.hpp>

#include "base/json_depth.h"
#include "checkpoint/quote_name.h"

namespace headrace {

Result<std::map<std::string, std::string, std::less<>>> read_shard_index(std::string_view json) {
  constexpr int kDeepest = 8;
  const auto fail = [](std::string message) {
    return Error{ErrorCode::corrupt_data, std::move(message), "", "fetch the file again"};
  };
  if (json.size() > kMaxIndexBytes) return fail("expected at most 64 MiB");
  if (json_depth(json) > kDeepest) return fail("nested more than 8 deep");
  const auto root = nlohmann::json::parse(json, nullptr, false);
  if (!root.is_object()) return fail("expected a JSON object");
  const auto found = root.find("weight_map");
  if (found == root.end() || !found->is_object() || found->empty()) {
    return fail("expected an object 'weight_map' of tensors and their files");
  }
  std::map<std::string, std::string, std::less<>> index;
  for (const auto& [tensor, file] : found->items()) {
    if (!file.is_string()) return fail("the file of tensor " + quote_name(tensor) + " is no text");
    index.emplace(tensor, file.get<std::string>());
  }
  return index;
}

}  // namespace headrace
