// See registry.h. To add an architecture: its file under arch/, its functions in arch/arch.h, and a
// line in the table.
#include "model/registry.h"

#include <algorithm>
#include <array>

#include "model/arch/arch.h"

namespace headrace {
namespace {

constexpr std::array kArchitectures = {
    Architecture{"gemma3", "Gemma3ForCausalLM", RopeRows::halves, gemma3_config, load_gemma3},
    Architecture{"llama", "LlamaForCausalLM", RopeRows::interleaved, llama_config, load_llama},
};

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

}  // namespace headrace
