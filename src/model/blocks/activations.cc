// See activations.h.
#include "model/blocks/activations.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/saturating.h"

namespace headrace {
namespace {

struct Kind {
  Buffer Activations::*buffer;
  int64_t ActivationSizes::*width;
};

constexpr std::array kRowBuffers = {
    Kind{&Activations::x, &ActivationSizes::embedding},
    Kind{&Activations::delta, &ActivationSizes::embedding},
    Kind{&Activations::q, &ActivationSizes::queries},
    Kind{&Activations::k, &ActivationSizes::keys},
    Kind{&Activations::v, &ActivationSizes::keys},
    Kind{&Activations::attended, &ActivationSizes::queries},
    Kind{&Activations::gate, &ActivationSizes::feed_forward},
    Kind{&Activations::up, &ActivationSizes::feed_forward},
    Kind{&Activations::expert_scores, &ActivationSizes::experts},
    Kind{&Activations::shared_score, &ActivationSizes::shared_scores},
    Kind{&Activations::expert_gate, &ActivationSizes::expert_hidden},
    Kind{&Activations::expert_up, &ActivationSizes::expert_hidden},
    Kind{&Activations::expert_parts, &ActivationSizes::expert_parts},
};

constexpr std::array kLogitRowBuffers = {
    Kind{&Activations::last, &ActivationSizes::embedding},
    Kind{&Activations::logits, &ActivationSizes::vocab},
};

uint64_t bytes_of(std::span<const Kind> kinds, const ActivationSizes& sizes, int64_t rows) {
  uint64_t width = 0;
  for (const Kind& kind : kinds) {
    width = saturating_add(width, static_cast<uint64_t>(sizes.*kind.width));
  }
  return saturating_mul<uint64_t>(saturating_mul(width, static_cast<uint64_t>(rows)),
                                  sizeof(float));
}

}  // namespace

int64_t widest_input(const ActivationSizes& sizes) {
  // All experts of a row read its features, and all of their hidden features are read at once.
  const int64_t hidden = sizes.expert_hidden + sizes.feed_forward;
  return std::max({sizes.embedding, sizes.queries, hidden, sizes.expert_parts});
}

uint64_t buffer_bytes(const ActivationSizes& sizes, int64_t rows, int64_t logit_rows) {
  return saturating_add(bytes_of(kRowBuffers, sizes, rows),
                        bytes_of(kLogitRowBuffers, sizes, logit_rows));
}

void Activations::reserve(int64_t max_rows, int64_t max_logit_rows) {
  const auto allocate = [&](std::span<const Kind> kinds, int64_t rows) {
    for (const Kind& kind : kinds) {
      this->*kind.buffer = backend_->allocate(DType::f32, rows, sizes_.*kind.width);
    }
  };
  if (max_rows > max_rows_) {
    allocate(kRowBuffers, max_rows);
    backend_->reserve_rows(max_rows, widest_input(sizes_));
    max_rows_ = max_rows;
  }
  if (max_logit_rows > max_logit_rows_) {
    allocate(kLogitRowBuffers, max_logit_rows);
    max_logit_rows_ = max_logit_rows;
  }
}

}  // namespace headrace
