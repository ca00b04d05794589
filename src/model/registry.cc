// See registry.h. To add an architecture: its file under arch/, which defines its Architecture, and
// its name here, once.
#include "model/registry.h"

#include <algorithm>
#include <array>
#include <limits>

namespace headrace {

// clang-format off
#define HEADRACE_ARCHITECTURES(X) \
  X(bert) X(gemma) X(gemma2) X(gemma3) X(gpt2) X(granite) X(llama) X(mistral) X(mixtral) X(olmo2) X(olmoe) \
  X(phi3) X(qwen2) X(qwen2_moe) X(qwen3) X(qwen3_moe) X(smollm3) X(stablelm) X(starcoder2) \
  X(xglm)
// clang-format on

#define HEADRACE_DECLARE(name) extern const Architecture name##_architecture;
HEADRACE_ARCHITECTURES(HEADRACE_DECLARE)
#undef HEADRACE_DECLARE

namespace {

#define HEADRACE_ENTRY(name) &name##_architecture,
constexpr std::array kArchitectures = {HEADRACE_ARCHITECTURES(HEADRACE_ENTRY)};
#undef HEADRACE_ENTRY

/// An architecture that has read no experts has none.
void refuse_unread_experts(ConfigReader& reader, const ModelConfig& config) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t experts = reader.optional_int("expert_count", 0, kMost, 0);
  if (experts == 0 || config.moe) return;
  reader.fail(ErrorCode::unsupported, "expert_count",
              "mixture-of-experts layers (" + std::to_string(experts) +
                  " experts) are not built in for this architecture");
}

}  // namespace

std::span<const Architecture* const> architectures() {
  return kArchitectures;
}

const Architecture* find_architecture(std::string_view gguf_name) {
  const auto found = std::ranges::find(kArchitectures, gguf_name, &Architecture::gguf_name);
  return found == kArchitectures.end() ? nullptr : *found;
}

const Architecture* find_hf_architecture(std::string_view hf_name) {
  const auto found = std::ranges::find_if(kArchitectures, [&](const Architecture* one) {
    return !hf_name.empty() && std::ranges::find(one->hf_names, hf_name) != one->hf_names.end();
  });
  return found == kArchitectures.end() ? nullptr : *found;
}

std::string known_architectures() {
  std::string names;
  for (const Architecture* one : kArchitectures) {
    if (find_architecture(one->gguf_name) != one) continue;  // it shares another's name
    names += (names.empty() ? "" : ", ") + std::string(one->gguf_name);
  }
  return names;
}

Result<RecognizedModel> recognize(const Checkpoint& checkpoint) {
  constexpr std::string_view kKey = "general.architecture";
  HEADRACE_ASSIGN(const auto name, checkpoint.metadata().get_string(kKey));
  if (!name) return Error{ErrorCode::corrupt_data, "the key is missing", std::string(kKey), ""};
  const Architecture* architecture = find_architecture(*name);
  if (architecture == nullptr) {
    return Error{ErrorCode::unsupported,
                 "the architecture '" + std::string(*name) + "' is not built in", "",
                 "this build runs " + known_architectures()};
  }
  ConfigReader reader(checkpoint.metadata(), *name);
  RecognizedModel model{architecture, architecture->read_config(reader)};
  refuse_unread_experts(reader, model.config);
  if (reader.error()) return *reader.error();
  return model;
}

}  // namespace headrace
