// See read_moe.h.
#include "model/read_moe.h"

#include <algorithm>
#include <string>
#include <vector>

namespace headrace {
namespace {

// Far above any model, far below what would overflow a product of three of them.
constexpr int64_t kMaxExperts = int64_t{1} << 14;
constexpr int64_t kMaxLength = int64_t{1} << 24;

/// The GGUF specification's numbers.
constexpr int64_t kSoftmax = 1;
constexpr int64_t kSigmoid = 2;

MoeConfig::Gating read_gating(ConfigReader& reader) {
  const int64_t found = reader.optional_int("expert_gating_func", 0, 255, kSoftmax);
  if (found != kSoftmax && found != kSigmoid) {
    reader.fail(ErrorCode::unsupported, "expert_gating_func",
                "expected 1 (softmax) or 2 (sigmoid), found " + std::to_string(found));
  }
  return found == kSigmoid ? MoeConfig::Gating::sigmoid : MoeConfig::Gating::softmax;
}

}  // namespace

void read_moe(ConfigReader& reader, const MoeDefaults& defaults, ModelConfig& config) {
  const int64_t count = reader.optional_int("expert_count", 0, kMaxExperts, 0);
  if (count == 0) return;
  MoeConfig& moe = config.moe.emplace();
  moe.num_experts = count;
  moe.num_active = reader.required_int("expert_used_count", 1, count);
  moe.expert_length =
      reader.optional_int("expert_feed_forward_length", 1, kMaxLength, config.feed_forward_length);
  const int64_t num_shared = reader.optional_int("expert_shared_count", 0, kMaxExperts, 0);
  moe.shared_length = reader.optional_int("expert_shared_feed_forward_length", 0, kMaxLength,
                                          num_shared * moe.expert_length);
  moe.gating = read_gating(reader);
  moe.normalise = reader.optional_bool("expert_weights_norm", defaults.normalise);
  const double scale = reader.optional_float("expert_weights_scale", 0, 0);
  moe.scale = scale > 0 ? static_cast<float>(scale) : 1.0F;  // 0 means "not scaled"
  if (reader.optional_int("expert_group_count", 0, kMaxExperts, 0) > 1) {
    reader.fail(ErrorCode::unsupported, "expert_group_count",
                "routing by groups of experts is not built in");
  }
  const int64_t num_dense =
      reader.optional_int("leading_dense_block_count", 0, config.num_layers, 0);
  config.is_moe_layer.assign(static_cast<size_t>(config.num_layers), true);
  std::fill_n(config.is_moe_layer.begin(), num_dense, false);
  const std::vector<bool> flags = reader.layer_flags("expert_layers", config.num_layers);
  if (!flags.empty()) config.is_moe_layer = flags;
}

}  // namespace headrace
