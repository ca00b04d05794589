// See model_needs.h.
#include "app/model_needs.h"

#include <string>

#include "model/registry.h"

namespace headrace {

Result<ModelConfig> read_model_config(const Checkpoint& checkpoint) {
  HEADRACE_ASSIGN(const auto name, checkpoint.metadata().get_string("general.architecture"));
  if (!name) {
    return Error{ErrorCode::corrupt_data, "the key is missing", "general.architecture", ""};
  }
  const Architecture* architecture = find_architecture(*name);
  if (architecture == nullptr) {
    return Error{ErrorCode::unsupported,
                 "the architecture '" + std::string(*name) + "' is not built in", "", ""};
  }
  ConfigReader reader(checkpoint.metadata(), *name);
  ModelConfig config = architecture->read_config(reader);
  if (reader.error()) return *reader.error();
  return config;
}

std::vector<CacheSpec> cache_specs_of(const ModelConfig& config) {
  std::vector<CacheSpec> specs(static_cast<size_t>(config.num_layers));
  for (size_t i = 0; i < specs.size(); ++i) {
    const bool window = config.is_window_layer[i];
    specs[i].kind = window ? CacheSpec::Kind::window : CacheSpec::Kind::paged;
    specs[i].num_kv_heads = config.num_kv_heads;
    specs[i].head_dim = config.head_dim;
    specs[i].window = window ? config.window : 0;
  }
  return specs;
}

MemoryNeeds needs_of_config(const ModelConfig& config, int64_t vocab_size) {
  MemoryNeeds needs;
  needs.embedding_length = config.embedding_length;
  needs.feed_forward_length = config.feed_forward_length;
  needs.attention_length = config.num_heads * config.head_dim;
  needs.vocab_size = vocab_size;
  return needs;
}

}  // namespace headrace
