// See engine_impl.h.
#include "engine/engine_impl.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/os/threads.h"
#include "engine/step_turns.h"
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

constexpr int64_t kMaxTimeoutMs = int64_t{1000} * 3600 * 24 * 365;

Result<void> check_range(std::string_view name, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return {};
  return Error{ErrorCode::out_of_range,
               "expected " + std::to_string(min) + " to " + std::to_string(max) + ", found " +
                   std::to_string(value),
               std::string(name), ""};
}

int64_t max_waiting_tokens(const EngineOptions& options) {
  constexpr int64_t kLeast = 1 << 20;
  constexpr int64_t kNumContexts = 64;
  if (options.max_waiting_tokens > 0) return options.max_waiting_tokens;
  return std::max(kLeast, kNumContexts * options.context);
}

SchedulerOptions scheduler_options(const EngineOptions& options, const ModelRunner& runner,
                                   const std::vector<uint64_t>& block_bytes, RandomSource& random) {
  constexpr int64_t kNsPerMs = 1'000'000;
  SchedulerOptions out;
  out.max_sequences = options.max_sequences;
  out.max_step_rows = options.chunk_tokens;
  out.max_logit_rows = runner.max_logit_rows();
  out.max_wait_ns = options.max_wait_ms * kNsPerMs;
  out.aging_ns = options.aging_ms * kNsPerMs;
  out.max_slowdown = options.max_slowdown;
  out.is_unchunked = runner.info().is_encoder;
  out.model_name = runner.info().name;
  out.cache.finds_prefixes = options.prefix_cache;
  out.cache.keeps_events = options.kv_events;
  out.cache.fingerprint = options.model_fingerprint + '\0' + options.tokenizer_fingerprint;
  for (uint64_t& word : out.cache.key) word = random.next_u64();
  out.drop_caches = options.drop_caches;
  out.block_bytes = block_bytes;
  return out;
}

Result<void> check_adapters(const Request& request, const ModelInfo& model) {
  const auto wrong = [](std::string message) {
    return Error{ErrorCode::invalid_argument, std::move(message), "adapters", ""};
  };
  if (request.adapters.size() > kMaxRequestAdapters) {
    return wrong("at most " + std::to_string(kMaxRequestAdapters) +
                 " adapters are allowed, found " + std::to_string(request.adapters.size()));
  }
  for (auto use = request.adapters.begin(); use != request.adapters.end(); ++use) {
    if (use->adapter < 0 || static_cast<size_t>(use->adapter) >= model.adapters.size()) {
      return wrong("adapter " + std::to_string(use->adapter) + " is outside the model's " +
                   std::to_string(model.adapters.size()));
    }
    if (!std::isfinite(use->strength)) return wrong("the strength must be a finite number");
    const bool is_twice = std::any_of(request.adapters.begin(), use, [&](const AdapterUse& other) {
      return other.adapter == use->adapter;
    });
    if (is_twice) return wrong("adapter " + std::to_string(use->adapter) + " is there twice");
  }
  return {};
}

}  // namespace

EngineImpl::EngineImpl(EngineParts parts, const EngineOptions& options,
                       std::span<const CacheGeometry> geometries,
                       std::span<const int64_t> num_blocks, std::vector<uint64_t> block_bytes)
    : parts_(std::move(parts)),
      options_(options),
      capacity_(kv_capacity(geometries, num_blocks, options.chunk_tokens)),
      inbox_(std::make_shared<Inbox>()),
      room_(options.max_waiting, max_waiting_tokens(options)),
      scheduler_(scheduler_options(options, *parts_.runner, block_bytes, *parts_.random),
                 geometries, num_blocks, *parts_.clock, &room_),
      block_bytes_(std::move(block_bytes)) {
  kv_map_.update(scheduler_.cache(), *parts_.clock);
  publish();
}

EngineImpl::~EngineImpl() {
  inbox_->stop();
  if (thread_.joinable()) thread_.join();
  try {
    inbox_->drain(scheduler_, *parts_.clock, false);  // what came after the last step
    scheduler_.cancel_all();
  } catch (const std::exception&) {
    scheduler_.abandon_all();
  }
  emit();
}

void EngineImpl::start() {
  thread_ = std::thread([this] {
    name_this_thread("engine");
    while (step(true)) {
    }
  });
}

bool EngineImpl::step(bool wait) {
  bool goes_on = true;
  try {
    goes_on = inbox_->drain(scheduler_, *parts_.clock, wait);
    if (goes_on && !scheduler_.is_idle()) goes_on = run_step_in_turn();
  } catch (const std::bad_alloc&) {
    fail_step(ErrorCode::resource_exhausted, "there was not enough memory for this step", "");
  } catch (const std::exception& fault) {
    fail_step(ErrorCode::internal, "the step failed: ", fault.what());
  }
  emit();
  check_when_idle();
  kv_map_.update(scheduler_.cache(), *parts_.clock);
  publish();
  return goes_on;
}

bool EngineImpl::run_step_in_turn() {
  if (options_.turns == nullptr) {
    run_step();
    return true;
  }
  const StepTurns::Turn turn = options_.turns->take();
  // What came while others had theirs is in this step.
  const bool goes_on = inbox_->drain(scheduler_, *parts_.clock, false);
  if (goes_on && !scheduler_.is_idle()) run_step();
  return goes_on;
}

void EngineImpl::run_step() {
  const Clock& clock = *parts_.clock;
  const StepWatch watch(parts_.runner->heartbeat(), clock);
  const int64_t start_ns = clock.now_ns();
  Batch& batch = scheduler_.plan_step();
  const int64_t planned_ns = clock.now_ns();
  if (batch.is_empty()) return;
  parts_.runner->launch(batch);
  const auto done = parts_.runner->collect(batch);
  const int64_t collected_ns = clock.now_ns();
  if (!done.ok() && done.error().code == ErrorCode::cancelled) {
    scheduler_.give_up();  // who does not want it is cancelled before the next step
    return;
  }
  if (!done.ok()) {
    fail_step(done.error(), false);  // of the model: it would not be better next time
    return;
  }
  scheduler_.commit();
  const int64_t end_ns = clock.now_ns();
  scheduler_.add_times({.scheduling_ns = planned_ns - start_ns + end_ns - collected_ns,
                        .model_ns = collected_ns - planned_ns});
}

void EngineImpl::fail_step(ErrorCode code, std::string_view what,
                           std::string_view detail) noexcept {
  Error error;
  error.code = code;
  error.message = "the step failed";  // short enough to need no memory
  try {
    error.message = std::string(what) + std::string(detail);
  } catch (const std::bad_alloc&) {
    // It stays short.
  }
  fail_step(error, true);
}

void EngineImpl::fail_step(const Error& error, bool may_repeat) noexcept {
  try {
    scheduler_.fail(error, may_repeat);
    scheduler_.check_invariants();
  } catch (const std::exception&) {
    // The books are wrong: nobody's next token can be trusted.
    scheduler_.abandon_all();
  }
}

void EngineImpl::check_books() noexcept {
  try {
    scheduler_.check_invariants();
  } catch (const std::exception&) {
    scheduler_.abandon_all();
  }
}

// The books are checked whenever there is time.
void EngineImpl::check_when_idle() noexcept {
  const bool is_busy = !scheduler_.is_idle();
  if (was_busy_ && !is_busy) check_books();
  was_busy_ = is_busy;
}

void EngineImpl::publish() noexcept {
  {
    const std::lock_guard lock(published_mutex_);
    update_published();
    ++num_published_;
  }
  news_.notify_all();
}

void EngineImpl::update_published() noexcept {
  try {
    scheduler_.read_stats(published_);
    published_.waiting_tokens = room_.num_tokens();
    recent_decode_ = scheduler_.recent_decode();
    for (size_t i = 0; i < block_bytes_.size(); ++i) {
      published_.groups[i].block_bytes = block_bytes_[i];
    }
  } catch (const std::bad_alloc&) {
    // The next step tells it.
  }
}

EngineStats EngineImpl::stats() const {
  const int64_t now_ns = parts_.clock->now_ns();
  const std::lock_guard lock(published_mutex_);
  EngineStats out = published_;
  out.recent_decode = recent_decode_.recent(now_ns);
  return out;
}

std::vector<std::string> EngineImpl::kv_map(std::chrono::nanoseconds patience) {
  const int64_t now_ns = parts_.clock->now_ns();
  if (kv_map_.ask(now_ns)) inbox_->wake();
  try {
    return kv_map_.read(now_ns, patience);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

uint64_t EngineImpl::wait_for_news(uint64_t seen, std::chrono::nanoseconds time) {
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(1);  // no sum overflows
  std::unique_lock lock(published_mutex_);
  news_.wait_for(lock, std::min(time, kLongest), [&] { return num_published_ != seen; });
  return num_published_;
}

std::vector<KvEvent> EngineImpl::take_kv_events() {
  if (!options_.kv_events) return {};
  try {
    return scheduler_.prefix_log().take();
  } catch (const std::bad_alloc&) {
    return {};  // the next call tells it
  }
}

// A stream that there is no memory for.
void EngineImpl::drop(Stream::Impl& stream) noexcept {
  try {
    scheduler_.drop(stream);
  } catch (const std::exception&) {
    scheduler_.abandon_all();
  }
}

void EngineImpl::emit() noexcept {
  auto& events = scheduler_.events();
  for (OutgoingEvent& outgoing : events) {
    try {
      outgoing.stream->push(std::move(outgoing.event));
    } catch (const std::exception&) {
      drop(*outgoing.stream);
    }
  }
  events.clear();
}

Result<void> EngineImpl::check_logprobs(std::string_view name, int64_t value) const {
  const int64_t vocab_size = parts_.runner->info().vocab_size;
  auto checked = check_range(name, value, -1, std::min(options_.max_logprobs, vocab_size));
  if (checked.ok() || value < 0 || value > vocab_size) return checked;
  Error error = std::move(checked).error();
  error.hint = "the engine's max_logprobs is " + std::to_string(options_.max_logprobs);
  return error;
}

// Whether the model can do what is asked.
Result<void> EngineImpl::check_kind(const Request& request) const {
  const ModelInfo& model = parts_.runner->info();
  if (request.kind == RequestKind::generate) {
    if (!model.is_encoder) return {};
    return Error{ErrorCode::unsupported,
                 "the model " + model.name + " is an embedding model: it generates no text",
                 "model", "ask it for embeddings, or use a model that generates"};
  }
  if (request.kind == RequestKind::score && model.num_classes == 0) {
    return Error{
        ErrorCode::unsupported,
        "the model " + model.name + " has no classification head, so it cannot rank", "model",
        model.is_encoder ? "use a cross-encoder, or compare embeddings" : "use a cross-encoder"};
  }
  HEADRACE_TRY(check_range("num_choices", request.num_choices, 1, 1));
  HEADRACE_TRY(check_range("num_prompt_logprobs", request.num_prompt_logprobs, -1, -1));
  const auto num_prompt = static_cast<int64_t>(request.prompt.size());
  if (request.second_text >= 0) {
    HEADRACE_TRY(check_range("second_text", request.second_text, 1, num_prompt));
  }
  return {};
}

// The most tokens that the request may come to, prompt included.
Result<int64_t> EngineImpl::check(const Request& request) const {
  const ModelInfo& model = parts_.runner->info();
  HEADRACE_TRY(validate(request.sampling, request.stop, model.vocab_size));
  HEADRACE_TRY(check_logprobs("num_logprobs", request.num_logprobs));
  HEADRACE_TRY(check_logprobs("num_prompt_logprobs", request.num_prompt_logprobs));
  HEADRACE_TRY(check_range("num_choices", request.num_choices, 1, kMaxChoices));
  HEADRACE_TRY(check_range("priority", request.priority, kMinPriority, kMaxPriority));
  HEADRACE_TRY(check_range("timeout_ms", request.timeout_ms, 0, kMaxTimeoutMs));
  HEADRACE_TRY(check_kind(request));
  HEADRACE_TRY(check_adapters(request, model));
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
  return check_length(request);
}

Result<int64_t> EngineImpl::check_length(const Request& request) const {
  const auto num_prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t context = max_context();
  const std::string prompt_text = "the prompt of " + std::to_string(num_prompt) + " tokens";
  const std::string limit =
      (options_.context > capacity_ ? "the KV cache of " : "the context of ") +
      std::to_string(context);
  const bool generates = request.kind == RequestKind::generate;
  const int64_t wanted = generates ? request.stop.max_tokens : 0;
  const bool is_only_read = num_prompt == context && wanted == 0;
  if (!generates && num_prompt > context) {
    return Error{ErrorCode::context_length_exceeded,
                 "the input of " + std::to_string(num_prompt) + " tokens does not fit " + limit,
                 "prompt", "shorten it, or let it be cut or split"};
  }
  if (num_prompt >= context && !is_only_read) {
    return Error{
        ErrorCode::context_length_exceeded, prompt_text + " leaves no room in " + limit, "prompt",
        options_.context > capacity_ ? "shorten it, or give the KV cache more memory"
                                     : "shorten it, or open the model with a larger context"};
  }
  if (wanted > context - num_prompt) {
    return Error{
        ErrorCode::context_length_exceeded,
        prompt_text + " and " + std::to_string(wanted) + " tokens to generate do not fit " + limit,
        "max_tokens", "ask for " + std::to_string(context - num_prompt) + " or fewer"};
  }
  return wanted < 0 ? context : num_prompt + wanted;
}

// A request that finds no place costs little, however long it is: nothing of it has been copied.
Result<Stream> EngineImpl::submit(Request request) {
  try {
    HEADRACE_ASSIGN(const int64_t max_tokens, check(request));
    const int64_t num_waiting = waiting_tokens(request);
    HEADRACE_TRY(room_.enter(num_waiting));
    try {
      return enqueue(std::move(request), max_tokens);
    } catch (...) {
      room_.leave(num_waiting);
      throw;
    }
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "no memory", "", ""};  // which need none
  }
}

// Of one that has a place, which the first choice holds once the inbox has it. Throws
// std::bad_alloc; then it is still the caller's.
Stream EngineImpl::enqueue(Request wanted, int64_t max_tokens) {
  uint64_t seed = 0;
  if (wanted.sampling.seed) {
    seed = *wanted.sampling.seed;
  } else {
    const std::lock_guard lock(random_mutex_);
    seed = parts_.random->next_u64();
  }
  std::erase_if(wanted.adapters, [](const AdapterUse& use) { return use.strength == 0; });
  if (!wanted.pooling) wanted.pooling = parts_.runner->info().pooling;
  // Keys of an encoder depend on the whole text: nobody else could use them.
  if (parts_.runner->info().is_encoder) wanted.use_prefix_cache = false;
  const auto request = std::make_shared<const Request>(std::move(wanted));
  const auto end_tokens =
      std::make_shared<const std::vector<TokenId>>(end_tokens_of(*request, parts_.runner->info()));
  auto stream = std::make_shared<Stream::Impl>(inbox_, next_id_.fetch_add(1), request->num_choices,
                                               options_.max_unread_bytes);
  const BlockHash root = scheduler_.cache().root(
      prefix_scope(request->cache_scope, request->adapters, parts_.runner->info()));
  const int64_t now_ns = parts_.clock->now_ns();
  std::vector<std::unique_ptr<Sequence>> choices;
  choices.reserve(static_cast<size_t>(request->num_choices));
  for (int32_t choice = 0; choice < request->num_choices; ++choice) {
    auto& sequence =
        choices.emplace_back(std::make_unique<Sequence>(stream, request, end_tokens, seed, choice));
    sequence->max_tokens = max_tokens;
    sequence->times.submitted_ns = now_ns;
    if (request->keeps_timeline) sequence->timeline = std::make_shared<TimelineRecorder>(now_ns);
    if (request->timeout_ms > 0) sequence->deadline_ns = now_ns + request->timeout_ms * 1'000'000;
    sequence->cached.shares_prefixes = request->use_prefix_cache;
    sequence->cached.root = root;
  }
  // Here, on the caller's thread, rather than in a step that others wait for.
  scheduler_.cache().hash_blocks(choices.front()->cached, request->prompt,
                                 static_cast<int64_t>(request->prompt.size()));
  choices.front()->holds_place = true;
  inbox_->submit(std::move(choices));
  return Stream(std::move(stream));
}

}  // namespace headrace
