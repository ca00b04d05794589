// For the chain's tests: one token chosen from logits on the CPU.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "sampling/chain.h"
#include "sampling/sampler.h"

namespace headrace {

class ChainTest : public testing::Test {
 protected:
  Result<SampledToken> choose(const Request& request, const std::vector<float>& logits,
                              const std::vector<TokenId>& tokens = {0}, uint64_t seed = 1,
                              std::vector<TokenId> end_tokens = {}) {
    Chain chain(request, std::move(end_tokens), seed, 0);
    return choose(chain, logits, {tokens, static_cast<int64_t>(request.prompt.size())});
  }

  Result<SampledToken> choose(Chain& chain, const std::vector<float>& logits,
                              const TokenHistory& history) {
    const auto size = static_cast<int64_t>(logits.size());
    const Buffer row = backend_->upload(logits);
    if (sampler_ == nullptr || size != size_) {
      sampler_ = std::make_unique<Sampler>(*backend_, 1, size);
      size_ = size;
    }
    sampler_->clear();
    sampler_->add(chain, history);
    sampler_->run(row.view());
    return sampler_->choose(0);
  }

  const std::unique_ptr<Backend> backend_ = make_cpu_backend({Isa::reference, 1});
  std::unique_ptr<Sampler> sampler_;
  int64_t size_ = 0;
};

inline Request greedy() {
  Request request;
  request.prompt = {0};
  request.sampling.temperature = 0;
  return request;
}

}  // namespace headrace
