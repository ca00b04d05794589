// See hf_keys.h.
#include "model/hf/hf_keys.h"

#include <array>

namespace headrace {
namespace {

constexpr std::array kHfDecoderKeys = {
    HfKey{"context_length", "max_position_embeddings", HfSize{&ModelConfig::context_length}},
    HfKey{"block_count", "num_hidden_layers", HfSize{&ModelConfig::num_layers}},
    HfKey{"embedding_length", "hidden_size", HfSize{&ModelConfig::embedding_length}},
    HfKey{"feed_forward_length", "intermediate_size", HfSize{&ModelConfig::feed_forward_length}},
    HfKey{"attention.head_count", "num_attention_heads", HfSize{&ModelConfig::num_heads}},
    HfKey{"attention.layer_norm_rms_epsilon", "rms_norm_eps",
          HfNumber{&ModelConfig::norm_eps, 1e-6}},
};

}  // namespace

void read_hf_keys(HfModel& model, std::span<const HfKey> keys) {
  for (const HfKey& key : keys) {
    if (std::holds_alternative<HfSize>(key.value)) {
      model.copy_int(key.gguf, key.hf);
    } else if (const auto* number = std::get_if<HfNumber>(&key.value)) {
      model.copy_float(key.gguf, key.hf, number->missing);
    } else {
      const bool missing = std::get<HfFlag>(key.value).missing;
      model.set_bool(key.gguf, model.config().boolean(key.hf).value_or(missing), key.hf);
    }
  }
}

void write_hf_keys(HfWriter& out, std::span<const HfKey> keys) {
  const ModelConfig& config = out.config();
  for (const HfKey& key : keys) {
    if (const auto* size = std::get_if<HfSize>(&key.value)) {
      out.set_int(key.hf, config.*size->field);
    } else if (const auto* number = std::get_if<HfNumber>(&key.value)) {
      out.set_float(key.hf, static_cast<double>(config.*number->field));
    } else {
      out.set_bool(key.hf, config.*std::get<HfFlag>(key.value).field);
    }
  }
}

std::span<const HfKey> hf_decoder_keys() {
  return kHfDecoderKeys;
}

}  // namespace headrace
