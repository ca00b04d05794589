// See checksum_engine.h.
#include "engine/simulation/checksum_engine.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "engine/engine_impl.h"
#include "engine/simulation/checksum_runner.h"

namespace headrace {

/// What the steps of one engine go through.
class ChecksumScript {
 public:
  ChecksumScript(const ChecksumEngineOptions& options, std::shared_ptr<ChecksumFaults> faults)
      : options_(options), faults_(std::move(faults)) {}

  void before_step(const Batch& batch) {
    const auto delay = options_.step_delay + batch.num_rows() * options_.row_delay;
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    bool fails = computes(batch, options_.throwing_token);
    bool hangs = computes(batch, options_.hanging_token);
    std::unique_lock lock(faults_->mutex_);
    fails |= std::exchange(faults_->fails_next_, false);
    hangs |= std::exchange(faults_->hangs_next_, false);
    if (hangs) hang(lock);
    if (fails) throw InternalError("a step that was told to fail");
  }

  bool spoils(const BatchSequence& part) const {
    if (options_.spoiled_token < 0) return false;
    const auto& prompt = part.sequence->request->prompt;
    return std::find(prompt.begin(), prompt.end(), options_.spoiled_token) != prompt.end();
  }

 private:
  /// Whether the step computes that token of a prompt.
  static bool computes(const Batch& batch, TokenId token) {
    if (token < 0) return false;
    return std::any_of(
        batch.sequences.begin(), batch.sequences.end(), [&](const BatchSequence& part) {
          const int64_t prompt_left = part.sequence->num_prompt_tokens() - part.first_position;
          const auto first = batch.tokens.begin() + part.first_row;
          const auto last = first + std::clamp<int64_t>(prompt_left, 0, part.num_rows);
          return std::find(first, last, token) != last;
        });
  }

  void hang(std::unique_lock<std::mutex>& lock) {
    const uint64_t before = faults_->num_releases_;
    ++faults_->num_hanging_;
    faults_->changed_.notify_all();
    faults_->changed_.wait_for(lock, options_.longest_hang,
                               [&] { return faults_->num_releases_ != before; });
    --faults_->num_hanging_;
  }

  const ChecksumEngineOptions options_;
  const std::shared_ptr<ChecksumFaults> faults_;
};

void ChecksumFaults::fail_next_step() {
  const std::lock_guard lock(mutex_);
  fails_next_ = true;
}

void ChecksumFaults::hang_next_step() {
  const std::lock_guard lock(mutex_);
  hangs_next_ = true;
}

void ChecksumFaults::release() {
  {
    const std::lock_guard lock(mutex_);
    ++num_releases_;
  }
  changed_.notify_all();
}

bool ChecksumFaults::wait_for_hang(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return num_hanging_ > 0; });
}

Result<ChecksumEngine> make_checksum_engine(const ChecksumEngineOptions& options) {
  ModelInfo info;
  info.name = options.name;
  info.architecture = "checksum";
  info.context_length = options.engine.context;
  info.vocab_size = options.vocab_size;
  info.end_tokens = options.end_tokens;
  HEADRACE_ASSIGN(const EngineOptions complete, completed_options(options.engine, info));
  if (complete.max_sequences > ChecksumRunner::kMaxLogitRows) {
    return Error{ErrorCode::out_of_range,
                 "expected at most " + std::to_string(ChecksumRunner::kMaxLogitRows) + ", found " +
                     std::to_string(complete.max_sequences),
                 "max_sequences", ""};
  }
  std::vector<CacheGeometry> geometries{{.block_tokens = complete.block_tokens, .window = 0}};
  if (options.window > 0) {
    geometries.push_back({.block_tokens = complete.block_tokens, .window = options.window});
  }
  const auto num_blocks = engine_blocks(complete, geometries);
  auto runner = std::make_unique<ChecksumRunner>(info, geometries, num_blocks);
  const auto faults = std::make_shared<ChecksumFaults>();
  const auto script = std::make_shared<ChecksumScript>(options, faults);
  runner->before_step([script](const Batch& batch) { script->before_step(batch); });
  runner->spoil_logits_if([script](const BatchSequence& part) { return script->spoils(part); });
  std::vector<uint64_t> block_bytes;
  for (size_t i = 0; i < geometries.size(); ++i) block_bytes.push_back(runner->block_bytes(i));
  EngineParts parts;
  parts.runner = std::move(runner);
  parts.clock = std::make_shared<SystemClock>();
  parts.random = std::make_shared<SystemRandom>();
  auto engine = std::make_unique<EngineImpl>(std::move(parts), complete, geometries, num_blocks,
                                             std::move(block_bytes));
  try {
    engine->start();
  } catch (const std::system_error& fault) {
    return Error{ErrorCode::resource_exhausted,
                 std::string("cannot start the engine's thread: ") + fault.what(), "", ""};
  }
  return ChecksumEngine{faults, std::move(engine)};
}

std::vector<TokenId> expected_tokens(std::span<const TokenId> prompt, uint64_t seed,
                                     int64_t num_tokens, int64_t vocab_size,
                                     std::span<const TokenId> end_tokens, int32_t choice) {
  Checksum checksum(seed, choice);
  for (const TokenId token : prompt) checksum.add(token);
  std::vector<TokenId> out;
  while (static_cast<int64_t>(out.size()) < num_tokens) {
    const TokenId next = checksum.next(vocab_size);
    if (std::find(end_tokens.begin(), end_tokens.end(), next) != end_tokens.end()) break;
    out.push_back(next);
    checksum.add(next);
  }
  return out;
}

}  // namespace headrace
