// The golden cases of the reference data, and the real models that they belong to.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "base/os/system_limits.h"
#include "checkpoint/checkpoint.h"
#include "engine/session/session.h"
#include "headrace/token.h"
#include "model/hf/hf_checkpoint.h"
#include "model/model.h"
#include "tests/conformance.h"

namespace headrace::golden {

struct Case {
  std::string id;
  std::vector<TokenId> input_ids;
  std::vector<TokenId> greedy;
  std::vector<double> greedy_margin;  ///< between the two best logits
  std::vector<std::pair<TokenId, double>> last_top20;
  std::vector<double> token_nll;  ///< of input_ids[1..]
  double mean_nll = 0;
};

struct GoldenModel {
  std::string reference;  ///< conformance/golden/<reference>.json
  std::string file;       ///< in the model store
};

inline const std::vector<GoldenModel>& golden_models() {
  static const std::vector<GoldenModel> models = {{"smollm2", "smollm2-135m.gguf"},
                                                  {"gemma3", "gemma3-270m.gguf"}};
  return models;
}

/// Empty if the reference data is absent.
inline std::vector<Case> load_cases(const std::string& reference) {
  std::vector<Case> cases;
  const auto folder = conformance::folder("golden");
  std::ifstream file(folder / (reference + ".json"));
  if (folder.empty() || !file) return cases;
  const auto all = nlohmann::json::parse(file);
  for (const auto& json : all.at("cases")) {
    Case one;
    json.at("id").get_to(one.id);
    json.at("input_ids").get_to(one.input_ids);
    json.at("greedy").get_to(one.greedy);
    json.at("greedy_margin").get_to(one.greedy_margin);
    json.at("last_top20").get_to(one.last_top20);
    json.at("token_nll").get_to(one.token_nll);
    json.at("mean_nll").get_to(one.mean_nll);
    cases.push_back(std::move(one));
  }
  std::cout << "conformance/golden/" << reference << ": " << cases.size() << " cases\n";
  return cases;
}

/// $HEADRACE_HOME/models/<file>, else ~/.local/share/headrace/models/<file>.
inline std::filesystem::path model_path(const std::string& file) {
  const char* home = std::getenv("HEADRACE_HOME");
  if (home != nullptr && *home != '\0') return std::filesystem::path(home) / "models" / file;
  const char* user = std::getenv("HOME");
  return std::filesystem::path(user != nullptr ? user : "/") / ".local/share/headrace/models" /
         file;
}

struct LoadedModel {
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

/// num_threads 0: as many as the machine grants. Throws std::runtime_error with the fault.
inline LoadedModel load(const std::filesystem::path& path, Isa isa, int num_threads) {
  LoadedModel out;
  const auto value_or_throw = [](auto result) {
    if (!result.ok()) throw std::runtime_error(result.error().to_string());
    return std::move(result).value();
  };
  out.checkpoint = value_or_throw(open_model_files(path.string()));
  out.backend = make_cpu_backend(
      {.isa = isa, .num_threads = num_threads > 0 ? num_threads : usable_processors()});
  LoadModelOptions options;
  options.name = path.stem().string();
  out.model = value_or_throw(load_model(*out.checkpoint, *out.backend, options));
  return out;
}

}  // namespace headrace::golden
