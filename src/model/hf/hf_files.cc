// See hf_files.h.
#include "model/hf/hf_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json_depth.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kDeepestFile = 64;
constexpr size_t kLongestFile = size_t{64} << 20;
constexpr std::string_view kCacheFolder = "models--";

json parse_object(std::string_view text) {
  if (text.size() > kLongestFile || json_depth(text) > kDeepestFile) return json::object();
  json parsed = json::parse(text, nullptr, false);
  return parsed.is_object() ? parsed : json::object();
}

/// Of several templates the one that is named "default".
std::optional<std::string> default_of(const json& templates) {
  for (const json& one : templates) {
    if (!one.is_object()) continue;
    const auto name = one.find("name");
    const auto source = one.find("template");
    if (name != one.end() && *name == "default" && source != one.end() && source->is_string()) {
      return source->get<std::string>();
    }
  }
  return std::nullopt;
}

}  // namespace

void add_hf_sampling(std::string_view generation_config, Metadata& metadata) {
  const json config = parse_object(generation_config);
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

void add_hf_special_ids(std::string_view generation_config, std::string_view config,
                        Metadata& metadata) {
  const auto set_ids = [&](const json& from, const char* name, const std::string& key) {
    const auto found = from.find(name);
    if (found == from.end()) return;
    std::vector<int64_t> ids;
    const auto add = [&](const json& id) {
      if (id.is_number_integer()) ids.push_back(id.get<int64_t>());
    };
    if (found->is_array()) {
      for (const json& id : *found) add(id);
    } else {
      add(*found);
    }
    if (ids.empty()) return;
    if (ids.front() >= 0) {
      metadata.set("tokenizer.ggml." + key, static_cast<uint64_t>(ids.front()));
    }
    if (ids.size() > 1) metadata.set("tokenizer.ggml.eog_token_ids", std::move(ids));
  };
  for (const std::string_view text : {config, generation_config}) {
    const json parsed = parse_object(text);
    set_ids(parsed, "bos_token_id", "bos_token_id");
    set_ids(parsed, "eos_token_id", "eos_token_id");
  }
}

std::optional<std::string> hf_chat_template(const ModelDirectory& directory) {
  const auto jinja = directory.open_optional("chat_template.jinja");
  if (jinja.ok() && jinja->has_value()) return std::string(text_of(**jinja));
  const auto file = directory.open_optional("tokenizer_config.json");
  if (!file.ok() || !file->has_value()) return std::nullopt;
  const json config = parse_object(text_of(**file));
  const auto found = config.find("chat_template");
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  return default_of(*found);
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
    const json config = parse_object(text_of(**file));
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
