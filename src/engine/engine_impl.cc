// See engine_impl.h.
#include "engine/engine_impl.h"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "engine/stream_impl.h"

namespace headrace {
namespace {

// An end token always ends a request, unless it asked to ignore them; its own stop tokens always.
std::vector<TokenId> end_tokens_of(const Request& request, const ModelInfo& model) {
  std::vector<TokenId> out = request.stop.stop_token_ids;
  for (const TokenId id : model.end_tokens) {
    // A tokenizer may know tokens that the model has no logit for.
    if (!request.stop.ignore_eos && id >= 0 && id < model.vocab_size) out.push_back(id);
  }
  return out;
}

}  // namespace

EngineImpl::EngineImpl(EngineParts parts, const EngineOptions& options,
                       std::span<const CacheGeometry> geometries,
                       std::span<const int64_t> num_blocks)
    : parts_(std::move(parts)),
      options_(options),
      inbox_(std::make_shared<Inbox>()),
      scheduler_({.max_sequences = options.max_sequences, .max_step_rows = options.chunk_tokens},
                 geometries, num_blocks, *parts_.clock) {}

EngineImpl::~EngineImpl() {
  inbox_->stop();
  if (thread_.joinable()) thread_.join();
  inbox_->drain(scheduler_, false);  // what came after the last step
  scheduler_.cancel_all();
  emit();
}

void EngineImpl::start() {
  thread_ = std::thread([this] {
    while (step(true)) {
    }
  });
}

bool EngineImpl::step(bool wait) {
  bool goes_on = true;
  try {
    goes_on = inbox_->drain(scheduler_, wait);
    if (goes_on && !scheduler_.is_idle()) {
      Batch& batch = scheduler_.plan_step();
      parts_.runner->launch(batch);
      if (const auto done = parts_.runner->collect(batch); done.ok()) {
        scheduler_.commit();
      } else {
        fail_step(done.error());
      }
    }
  } catch (const std::bad_alloc&) {
    fail_step(ErrorCode::resource_exhausted, "there was not enough memory for this step", "");
  } catch (const std::exception& fault) {
    fail_step(ErrorCode::internal, "the step failed: ", fault.what());
  }
  emit();
  return goes_on;
}

void EngineImpl::fail_step(ErrorCode code, std::string_view what,
                           std::string_view detail) noexcept {
  try {
    fail_step({code, std::string(what) + std::string(detail), "", ""});
  } catch (const std::exception&) {
    scheduler_.cancel_all();
  }
}

void EngineImpl::fail_step(const Error& error) noexcept {
  try {
    scheduler_.fail(error);
    scheduler_.check_invariants();
  } catch (const std::exception&) {
    // The books are wrong, or there is no memory to say so: nobody's next token can be trusted.
    scheduler_.cancel_all();
  }
}

void EngineImpl::emit() noexcept {
  auto& events = scheduler_.events();
  bool any_broken = false;
  for (OutgoingEvent& outgoing : events) {
    try {
      outgoing.stream->push(std::move(outgoing.event));
    } catch (const std::exception&) {
      outgoing.stream->break_off();
      any_broken = true;
    }
  }
  events.clear();
  if (any_broken) scheduler_.remove_broken_off();
}

// The most tokens that the request may come to, prompt included.
Result<int64_t> EngineImpl::check(const Request& request) const {
  const ModelInfo& model = parts_.runner->info();
  HEADRACE_TRY(validate(request.sampling, request.stop, model.vocab_size));
  if (request.num_logprobs < -1 || request.num_logprobs > model.vocab_size) {
    return Error{ErrorCode::out_of_range,
                 "expected -1 (none) to " + std::to_string(model.vocab_size) + ", found " +
                     std::to_string(request.num_logprobs),
                 "num_logprobs", ""};
  }
  if (request.num_choices != 1 || request.num_prompt_logprobs != -1) {
    return Error{ErrorCode::unsupported, "one choice, without prompt_logprobs", "", ""};
  }
  if (request.prompt.empty()) {
    return Error{ErrorCode::invalid_argument, "the prompt has no tokens", "prompt", ""};
  }
  for (const TokenId id : request.prompt) {
    if (id < 0 || id >= model.vocab_size) {
      return Error{ErrorCode::out_of_range,
                   "token id " + std::to_string(id) + " is outside the vocabulary of " +
                       std::to_string(model.vocab_size),
                   "prompt", ""};
    }
  }
  const auto num_prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t context = options_.context;
  const std::string prompt_text = "the prompt of " + std::to_string(num_prompt) + " tokens";
  if (num_prompt >= context) {
    return Error{ErrorCode::context_length_exceeded,
                 prompt_text + " leaves no room in the context of " + std::to_string(context),
                 "prompt", "shorten it, or open the model with a larger context"};
  }
  const int64_t wanted = request.stop.max_tokens;
  if (wanted > context - num_prompt) {
    return Error{ErrorCode::context_length_exceeded,
                 prompt_text + " and " + std::to_string(wanted) +
                     " tokens to generate do not fit the context of " + std::to_string(context),
                 "max_tokens", "ask for " + std::to_string(context - num_prompt) + " or fewer"};
  }
  return wanted < 0 ? context : num_prompt + wanted;
}

Result<Stream> EngineImpl::submit(Request request) {
  HEADRACE_ASSIGN(const int64_t max_tokens, check(request));
  uint64_t seed = 0;
  if (request.sampling.seed) {
    seed = *request.sampling.seed;
  } else {
    const std::lock_guard lock(random_mutex_);
    seed = parts_.random->next_u64();
  }
  const uint64_t id = next_id_.fetch_add(1);
  auto stream = std::make_shared<Stream::Impl>(inbox_, id);
  auto end_tokens = end_tokens_of(request, parts_.runner->info());
  auto sequence = std::make_unique<Sequence>(id, std::move(request), std::move(end_tokens), seed);
  sequence->stream = stream;
  sequence->max_tokens = max_tokens;
  sequence->times.submitted_ns = parts_.clock->now_ns();
  inbox_->submit(std::move(sequence));
  return Stream(std::move(stream));
}

}  // namespace headrace
