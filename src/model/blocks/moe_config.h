// The sizes and the routing of a model's mixtures of experts.
#pragma once

#include <cstdint>

namespace headrace {

struct MoeConfig {
  /// What a router's scores become: see ExpertRouting.
  enum class Gating : uint8_t { softmax, sigmoid };

  int64_t num_experts = 0;
  int64_t num_active = 0;     ///< experts of a token
  int64_t expert_length = 0;  ///< hidden features of an expert
  Gating gating = Gating::softmax;
  bool normalise = false;     ///< the weights of a token's experts are divided by their sum
  float scale = 1.0F;         ///< of the sum of the routed experts
  int64_t shared_length = 0;  ///< hidden features of the expert that all tokens use; 0: none

  bool operator==(const MoeConfig&) const = default;
};

}  // namespace headrace
