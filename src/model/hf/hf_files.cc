// See hf_files.h.
#include "model/hf/hf_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json_depth.h"
#include "checkpoint/json_object.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kDeepestFile = 64;
constexpr size_t kLongestFile = size_t{64} << 20;
constexpr std::string_view kCacheFolder = "models--";

/// An empty object where the text is none.
json object_or_empty(std::string_view text) {
  auto parsed = parse_json_object(text, "", kLongestFile);
  return parsed.ok() ? std::move(parsed).value() : json::object();
}

}  // namespace

void add_hf_sampling(std::string_view generation_config, Metadata& metadata) {
  const json config = object_or_empty(generation_config);
  const auto copy = [&](const char* from, const char* to) {
    const auto found = config.find(from);
    if (found == config.end() || !found->is_number()) return;
    metadata.set(std::string("general.sampling.") + to, found->get<double>());
  };
  copy("temperature", "temp");
  copy("top_k", "top_k");
  copy("top_p", "top_p");
  copy("min_p", "min_p");
  copy("repetition_penalty", "penalty_repeat");
  const auto samples = config.find("do_sample");
  if (samples != config.end() && *samples == false) metadata.set("general.sampling.temp", 0.0);
}

void add_hf_pooling(const ModelDirectory& directory, std::string_view architecture,
                    Metadata& metadata) {
  // The numbers of llama.cpp's llama_pooling_type.
  constexpr std::pair<const char*, uint64_t> kModes[] = {{"pooling_mode_mean_tokens", 1},
                                                         {"pooling_mode_cls_token", 2},
                                                         {"pooling_mode_lasttoken", 3}};
  const std::string prefix = std::string(architecture) + ".";
  if (const auto file = directory.open_optional("1_Pooling/config.json");
      file.ok() && file->has_value()) {
    const json config = object_or_empty(text_of(**file));
    for (const auto& [name, type] : kModes) {
      const auto found = config.find(name);
      if (found != config.end() && *found == true) metadata.set(prefix + "pooling_type", type);
    }
  }
  const auto file = directory.open_optional("modules.json");
  if (!file.ok() || !file->has_value()) return;
  const std::string_view text = text_of(**file);
  if (text.size() > kLongestFile || json_depth(text) > kDeepestFile) return;
  const json modules = json::parse(text, nullptr, false);
  if (!modules.is_array()) return;
  bool normalizes = false;
  for (const json& module : modules) {
    const auto type = module.is_object() ? module.find("type") : module.end();
    if (!module.is_object() || type == module.end() || !type->is_string()) continue;
    normalizes |= type->get_ref<const std::string&>().ends_with("Normalize");
  }
  metadata.set(prefix + "normalize_embeddings", normalizes);
}

std::string name_of_hf_directory(const ModelDirectory& directory) {
  std::error_code error;
  const fs::path path = fs::canonical(directory.path(), error);
  const std::string repository = path.parent_path().parent_path().filename().string();
  if (path.parent_path().filename() == "snapshots" && repository.starts_with(kCacheFolder)) {
    std::string name = repository.substr(kCacheFolder.size());
    if (const size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
    return name;
  }
  return path.filename().string();
}

}  // namespace headrace
