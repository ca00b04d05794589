// See hf_qwen.h.
#include "model/hf/hf_qwen.h"

#include "model/hf/hf_rope.h"

namespace headrace {
namespace {

constexpr int64_t kLayersWithoutWindow = 28;
constexpr int64_t kQwenWindow = 4096;

bool is_qwen_window(const HfConfig& config, int64_t layer) {
  return layer >= config.integer("max_window_layers").value_or(kLayersWithoutWindow);
}

}  // namespace

void read_hf_qwen(HfModel& model) {
  read_hf_decoder(model);
  expect_silu(model);
  const HfConfig& config = model.config();
  if (config.boolean("use_sliding_window").value_or(false)) {
    const int64_t missing = config.names("sliding_window") ? 0 : kQwenWindow;
    set_hf_windows(model, config.integer("sliding_window").value_or(missing), is_qwen_window);
  }
  read_hf_rope(model);
}

void write_hf_qwen(HfWriter& out, std::string_view model_type) {
  write_hf_decoder(out, model_type);
  out.set_bool("use_sliding_window", out.config().window > 0);
  write_hf_layer_types(out);
  write_hf_rope(out);
}

}  // namespace headrace
