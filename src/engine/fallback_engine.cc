// See fallback_engine.h.
#include "engine/fallback_engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace headrace {

bool is_want_of_room(const Error& error) {
  return error.code == ErrorCode::overloaded || error.code == ErrorCode::resource_exhausted;
}

namespace {

class FallbackEngine final : public Engine {
 public:
  FallbackEngine(std::unique_ptr<Engine> first, std::unique_ptr<Engine> lighter, bool for_all)
      : first_(std::move(first)), lighter_(std::move(lighter)), for_all_(for_all) {}

  Result<Stream> submit(Request request) override {
    const bool may_fall_back = for_all_ || request.may_use_lighter_model;
    // The lighter model's adapters are others.
    if (!may_fall_back || !request.adapters.empty()) return first_->submit(std::move(request));
    auto stream = first_->submit(request);
    if (stream.ok() || !is_want_of_room(stream.error())) return stream;
    auto second = lighter_->submit(std::move(request));
    if (!second.ok()) return stream;  // what the model that was asked for says
    num_lighter_.fetch_add(1);
    return second;
  }

  EngineStats stats() const override {
    EngineStats out = first_->stats();
    out.rungs[static_cast<size_t>(MemoryRung::lighter_model)] = num_lighter_.load();
    return out;
  }
  std::chrono::nanoseconds stalled_for() const override {
    return std::max(first_->stalled_for(), lighter_->stalled_for());
  }
  std::vector<std::string> kv_map(std::chrono::nanoseconds patience) override {
    return first_->kv_map(patience);
  }
  // Of both: what is seen counts the news of the two together.
  uint64_t wait_for_news(uint64_t seen, std::chrono::nanoseconds time) override {
    constexpr std::chrono::nanoseconds kLookAfter = std::chrono::milliseconds(1);
    const auto count = [&] {
      return first_->wait_for_news(0, {}) + lighter_->wait_for_news(0, {});
    };
    constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(1);
    const auto until = std::chrono::steady_clock::now() + std::min(time, kLongest);
    uint64_t now = count();
    while (now == seen && std::chrono::steady_clock::now() < until) {
      first_->wait_for_news(first_->wait_for_news(0, {}), std::min(time, kLookAfter));
      now = count();
    }
    return now;
  }
  std::vector<KvEvent> take_kv_events() override { return first_->take_kv_events(); }
  void clear_prefix_cache() override {
    first_->clear_prefix_cache();
    lighter_->clear_prefix_cache();
  }
  Result<int64_t> save_session(std::span<const TokenId> tokens, const std::string& cache_scope,
                               const std::string& path, std::string_view note) override {
    return first_->save_session(tokens, cache_scope, path, note);
  }
  Result<LoadedSession> load_session(const std::string& path,
                                     const std::string& cache_scope) override {
    return first_->load_session(path, cache_scope);
  }
  int64_t max_context() const override { return first_->max_context(); }
  const ModelInfo& model() const override { return first_->model(); }

 private:
  const std::unique_ptr<Engine> first_;
  const std::unique_ptr<Engine> lighter_;
  const bool for_all_;
  std::atomic<int64_t> num_lighter_{0};
};

}  // namespace

Result<std::unique_ptr<Engine>> make_fallback_engine(std::unique_ptr<Engine> first,
                                                     std::unique_ptr<Engine> lighter,
                                                     const FallbackOptions& options) {
  if (options.tokenizer_fingerprint != options.lighter_tokenizer_fingerprint ||
      first->model().vocab_size != lighter->model().vocab_size) {
    return Error{ErrorCode::mismatch,
                 "the models " + first->model().name + " and " + lighter->model().name +
                     " have different tokenizers",
                 "", "give a lighter model of the same family"};
  }
  return std::unique_ptr<Engine>(
      std::make_unique<FallbackEngine>(std::move(first), std::move(lighter), options.for_all));
}

}  // namespace headrace
