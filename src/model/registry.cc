// See registry.h. To add an architecture: its file under arch/, its functions in arch/arch.h, and a
// line in the table.
#include "model/registry.h"

#include <algorithm>
#include <array>
#include <string>

#include "model/arch/arch.h"

namespace headrace {
namespace {

constexpr std::array kArchitectures = {
    Architecture{"gemma3", "Gemma3ForCausalLM", RopeRows::halves, gemma3_config, load_gemma3},
    Architecture{"llama", "LlamaForCausalLM", RopeRows::interleaved, llama_config, load_llama},
};

std::string known_architectures() {
  std::string names;
  for (const Architecture& one : kArchitectures) {
    names += (names.empty() ? "" : ", ") + std::string(one.gguf_name);
  }
  return names;
}

}  // namespace

std::span<const Architecture> architectures() {
  return kArchitectures;
}

const Architecture* find_architecture(std::string_view gguf_name) {
  const auto found = std::find_if(
      kArchitectures.begin(), kArchitectures.end(),
      [&](const Architecture& architecture) { return architecture.gguf_name == gguf_name; });
  return found == kArchitectures.end() ? nullptr : &*found;
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
  if (reader.error()) return *reader.error();
  return model;
}

}  // namespace headrace
