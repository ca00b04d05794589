// See simulation.h.
#include "engine/simulation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/checksum_runner.h"
#include "engine/engine_impl.h"
#include "engine/simulation_sessions.h"

namespace headrace {
namespace {

constexpr int64_t kVocab = 1000;
constexpr TokenId kEnd = 7;
constexpr TokenId kPoison = 998;    // a step with it fails
constexpr TokenId kSpoiled = 999;   // logits after it are no numbers
constexpr TokenId kOrdinary = 990;  // tokens of prompts are smaller
constexpr int64_t kMs = 1'000'000;

/// Something is not as it should be.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class VirtualClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_; }
  int64_t unix_seconds() const override { return now_ns_ / 1'000'000'000; }
  void advance(int64_t ns) { now_ns_ += ns; }

 private:
  int64_t now_ns_ = 1;
};

class SeededRandom final : public RandomSource {
 public:
  explicit SeededRandom(uint64_t seed) : random_(seed) {}
  uint64_t next_u64() override { return random_(); }

 private:
  std::mt19937_64 random_;
};

/// What came of one choice so far.
struct Choice {
  std::vector<TokenId> tokens;
  std::optional<FinishEvent> finish;
};

struct OpenRequest {
  Request request;
  std::optional<Stream> stream;
  std::vector<Choice> choices;
  int64_t num_scored = 1;
  std::optional<Error> error;
  int64_t arrived_ns = 0;
  int64_t cancel_ns = kNever;
  int32_t cancelled_choice = -2;  // -2: none yet; -1: all
  bool has_ended = false;

  bool contains(TokenId id) const {
    return std::find(request.prompt.begin(), request.prompt.end(), id) != request.prompt.end();
  }
};

class World {
 public:
  explicit World(const SimulationOptions& options) : options_(options), random_(options.seed) {
    EngineOptions engine;
    engine.context = 60 + below(100);
    engine.block_tokens = below(2) == 0 ? 4 : 16;
    engine.max_sequences = 1 + below(below(4) == 0 ? 40 : 8);
    engine.chunk_tokens = engine.max_sequences + below(60);
    engine.kv_tokens = engine.context / 2 + below(5 * engine.context);
    engine.prefix_cache = below(8) != 0;
    engine.kv_events = true;
    engine.max_waiting = 4 + below(below(3) == 0 ? 20 : 200);
    engine.max_waiting_tokens = below(3) == 0 ? 200 + below(2000) : 0;
    engine.max_wait_ms = below(4) == 0 ? below(50) : 0;
    engine.aging_ms = 20 + below(500);
    engine.max_slowdown = below(2) == 0 ? 2.0 : 0;
    std::vector<CacheGeometry> geometries{{.block_tokens = engine.block_tokens, .window = 0}};
    for (int64_t i = below(3); i > 0; --i) {
      geometries.push_back({.block_tokens = engine.block_tokens, .window = 2 + below(40)});
    }
    const auto num_blocks = engine_blocks(engine, geometries);
    ModelInfo info;
    info.name = "checksum";
    info.vocab_size = kVocab;
    info.end_tokens = {kEnd};
    auto runner = std::make_unique<ChecksumRunner>(info, geometries, num_blocks);
    runner_ = runner.get();
    runner_->fail_on(kPoison);
    runner_->spoil_logits_of(kSpoiled);
    clock_ = std::make_shared<VirtualClock>();
    EngineParts parts;
    parts.runner = std::move(runner);
    parts.clock = clock_;
    parts.random = std::make_shared<SeededRandom>(options.seed + 1);
    engine_ = std::make_unique<EngineImpl>(std::move(parts), engine, geometries, num_blocks);
    const std::string& folder = options.session_folder;
    const bool has_sessions = engine.prefix_cache && !folder.empty();
    sessions_ = std::make_unique<SimulatedSessions>(
        *engine_, has_sessions ? folder + "/" + std::to_string(options.seed) + "_" : "",
        options_.fail_allocation);
    max_rows_ = engine.chunk_tokens;
    for (auto& prefix : prefixes_) prefix = some_tokens(10 + below(engine.context / 2));
  }

  void run() {
    int64_t num_submitted = 0;
    int64_t next_arrival_ns = 0;
    int64_t num_idle_steps = 0;
    while (num_submitted < options_.num_requests || !open_.empty()) {
      while (num_submitted < options_.num_requests && next_arrival_ns <= clock_->now_ns()) {
        submit(num_submitted++);
        // In bursts, with pauses that let the engine become idle.
        next_arrival_ns += below(2) != 0 ? 0 : below(below(10) == 0 ? 200 : 12) * kMs;
      }
      cancel_some();
      if (sessions_->are_on() && below(100) == 0) use_session();
      step();
      num_idle_steps = read_events() ? 0 : num_idle_steps + 1;
      if (num_idle_steps > 5000) throw Fault("5000 steps in which nothing was told to anybody");
      result_.num_steps = runner_->num_steps();
    }
    if (options_.fail_allocation) options_.fail_allocation(-1);
    engine_->step(false);
    check_end();
  }

  SimulationResult& result() { return result_; }

 private:
  int64_t below(int64_t n) {
    uint64_t bits = 0;
    if (options_.choices.size() - num_choices_used_ >= 2) {
      bits = static_cast<uint64_t>(options_.choices[num_choices_used_]) << 8 |
             options_.choices[num_choices_used_ + 1];
      num_choices_used_ += 2;
    } else {
      bits = random_();
    }
    return static_cast<int64_t>(bits % static_cast<uint64_t>(std::max<int64_t>(n, 1)));
  }

  std::vector<TokenId> some_tokens(int64_t count) {
    std::vector<TokenId> out(static_cast<size_t>(count));
    for (TokenId& id : out) id = static_cast<TokenId>(below(kOrdinary));
    return out;
  }

  // Of a conversation, or of what several prompts begin with.
  std::vector<TokenId> some_beginning() {
    if (below(4) == 0 && !conversations_.empty()) {
      const auto size = static_cast<int64_t>(conversations_.size());
      return conversations_[static_cast<size_t>(below(size))];
    }
    if (below(2) == 0) return {};
    const auto& prefix = prefixes_[below(4)];
    return {prefix.begin(), prefix.begin() + below(static_cast<int64_t>(prefix.size()))};
  }

  std::vector<TokenId> some_prompt() {
    std::vector<TokenId> prompt = some_beginning();
    const auto tail = some_tokens(1 + below(below(4) == 0 ? 60 : 8));
    prompt.insert(prompt.end(), tail.begin(), tail.end());
    // Most have room for an answer.
    const auto longest = static_cast<size_t>(engine_->max_context()) * 3 / 4;
    if (below(20) != 0 && prompt.size() > longest) prompt.resize(longest);
    if (options_.with_faults && below(150) == 0) {
      prompt[static_cast<size_t>(below(static_cast<int64_t>(prompt.size())))] = kPoison;
    } else if (options_.with_faults && below(150) == 0) {
      prompt.back() = kSpoiled;
    }
    return prompt;
  }

  Request some_request() {
    Request request;
    request.prompt = some_prompt();
    request.stop.max_tokens = below(10) == 0 ? -1 : below(24);
    request.stop.ignore_eos = below(2) == 0;
    request.sampling.seed = static_cast<uint64_t>(below(3));
    if (below(8) == 0) request.num_choices = static_cast<int32_t>(1 + below(4));
    if (below(16) == 0) request.num_prompt_logprobs = 0;
    if (below(4) == 0) request.priority = static_cast<int32_t>(below(17) + kMinPriority);
    if (below(20) == 0) request.timeout_ms = 1 + below(400);
    request.owner = "owner " + std::to_string(below(4));
    if (below(4) == 0) request.cache_scope = "another";
    request.use_prefix_cache = below(10) != 0;
    return request;
  }

  void submit(int64_t number) {
    OpenRequest open;
    open.request = some_request();
    open.arrived_ns = clock_->now_ns();
    if (below(10) == 0) open.cancel_ns = clock_->now_ns() + below(60) * kMs;
    open.choices.resize(static_cast<size_t>(open.request.num_choices));
    auto stream = engine_->submit(open.request);
    if (!stream.ok()) {
      const ErrorCode code = stream.error().code;
      const auto longest = static_cast<int64_t>(open.request.prompt.size()) +
                           std::max<int64_t>(open.request.stop.max_tokens, 1);
      const bool is_long =
          code == ErrorCode::context_length_exceeded && longest > engine_->max_context();
      if (!is_long && code != ErrorCode::overloaded) {
        throw Fault("refused without reason: " + stream.error().to_string());
      }
      ++result_.num_refused;
      return;
    }
    open.stream = std::move(*stream);
    open_.emplace(number, std::move(open));
  }

  void use_session() {
    const auto which = static_cast<size_t>(below(SimulatedSessions::kNumFiles));
    const int64_t fails_at = options_.fail_allocation && below(2) == 0 ? below(60) : -1;
    if (below(3) != 0) {
      if (below(4) == 0) engine_->clear_prefix_cache();
      sessions_->load(which, fails_at);
    } else if (!conversations_.empty()) {
      const auto size = static_cast<int64_t>(conversations_.size());
      sessions_->save(which, conversations_[static_cast<size_t>(below(size))],
                      below(4) == 0 ? "another" : "", fails_at);
    }
    for (const KvEvent& event : engine_->take_kv_events()) follow(event);
  }

  void cancel_some() {
    if (below(400) == 0) engine_->clear_prefix_cache();
    for (auto& [number, open] : open_) {
      if (open.cancel_ns > clock_->now_ns() || open.cancelled_choice != -2) continue;
      open.cancelled_choice =
          below(2) == 0 ? -1 : static_cast<int32_t>(below(open.request.num_choices));
      if (open.cancelled_choice < 0 && below(2) == 0) {
        open.stream->cancel();
      } else if (open.cancelled_choice < 0) {
        open.stream.reset();  // who is gone does not say so
        open.has_ended = true;
      } else {
        open.stream->cancel(open.cancelled_choice);
      }
    }
  }

  void step() {
    if (options_.with_faults && below(120) == 0) {
      runner_->fail_next_step();
      ++num_made_to_fail_;
    }
    if (options_.fail_allocation && below(30) == 0) options_.fail_allocation(below(60));
    const int64_t rows = runner_->num_rows();
    engine_->step(false);
    if (options_.fail_allocation) options_.fail_allocation(-1);
    if (runner_->most_rows() > max_rows_) throw Fault("a step with more rows than allowed");
    const int64_t now_rows = runner_->num_rows();
    if (now_rows > rows) {
      clock_->advance(kMs + (now_rows - rows) * kMs / 20);
    } else {
      clock_->advance(kMs);
    }
    if (below(8) == 0) engine_->scheduler().check_invariants();
    for (const KvEvent& event : engine_->take_kv_events()) follow(event);
  }

  // A mirror of what can be found, as a router would keep it.
  void follow(const KvEvent& event) {
    const auto key = std::pair(event.group, event.hash);
    switch (event.kind) {
      case KvEvent::Kind::stored:
        if (!known_.insert(key).second) throw Fault("a prefix was stored twice");
        break;
      case KvEvent::Kind::removed:
        if (known_.erase(key) == 0 && !has_lost_events_) {
          throw Fault("a prefix was removed that was not stored");
        }
        break;
      case KvEvent::Kind::cleared:
        known_.clear();
        has_lost_events_ = static_cast<bool>(options_.fail_allocation);
        break;
    }
  }

  /// Whether there were any.
  bool read_events() {
    bool any = false;
    for (auto it = open_.begin(); it != open_.end();) {
      OpenRequest& open = it->second;
      while (!open.has_ended && open.stream->wait_for(std::chrono::milliseconds(0))) {
        const auto event = open.stream->next();
        any = true;
        if (!event) {
          open.has_ended = true;
          check_outcome(open);
          break;
        }
        read(open, *event);
      }
      it = open.has_ended ? open_.erase(it) : std::next(it);
    }
    return any;
  }

  void read(OpenRequest& open, const Event& event) {
    if (open.error) throw Fault("an event after an error");
    if (const auto* token = std::get_if<TokenEvent>(&event)) {
      Choice& choice = open.choices.at(static_cast<size_t>(token->choice));
      if (choice.finish) throw Fault("a token after the end of its choice");
      choice.tokens.push_back(token->id);
    } else if (const auto* finish = std::get_if<FinishEvent>(&event)) {
      Choice& choice = open.choices.at(static_cast<size_t>(finish->choice));
      if (choice.finish) throw Fault("a choice ended twice");
      choice.finish = *finish;
    } else if (const auto* scores = std::get_if<PromptLogprobsEvent>(&event)) {
      check_scores(open, *scores);
    } else {
      open.error = std::get<ErrorEvent>(event).error;
    }
  }

  static void check_scores(OpenRequest& open, const PromptLogprobsEvent& scores) {
    if (scores.first_position != open.num_scored) throw Fault("scores with a gap, or told twice");
    for (const PromptLogprob& score : scores.tokens) {
      const std::span<const TokenId> prompt(open.request.prompt);
      const auto before = prompt.first(static_cast<size_t>(++open.num_scored));
      if (score.token.id != before.back() || score.token.logprob != checksum_score(before)) {
        throw Fault("a wrong score of a prompt's token");
      }
    }
  }

  // The tokens that the choice must have, and whether it ends with an end token after them.
  static std::pair<std::vector<TokenId>, bool> expected(const Request& request, int32_t choice,
                                                        int64_t context) {
    std::vector<TokenId> tokens = request.prompt;
    int64_t left = context - static_cast<int64_t>(tokens.size());
    if (request.stop.max_tokens >= 0) left = std::min(left, request.stop.max_tokens);
    std::vector<TokenId> out;
    for (; left > 0; --left) {
      const TokenId id = checksum_next(tokens, *request.sampling.seed, kVocab, choice);
      if (id == kEnd && !request.stop.ignore_eos) return {std::move(out), true};
      tokens.push_back(id);
      out.push_back(id);
    }
    return {std::move(out), false};
  }

  void check_outcome(OpenRequest& open) {
    for (size_t i = 0; i < open.choices.size(); ++i) {
      const Choice& choice = open.choices[i];
      const auto [tokens, stops] =
          expected(open.request, static_cast<int32_t>(i), engine_->max_context());
      const bool is_start = choice.tokens.size() <= tokens.size() &&
                            std::equal(choice.tokens.begin(), choice.tokens.end(), tokens.begin());
      if (!is_start) throw Fault("a token that is not the model's");
      if (!choice.finish) continue;
      if (choice.finish->reason == FinishReason::cancelled) {
        const bool was_asked =
            open.cancelled_choice == -1 || open.cancelled_choice == static_cast<int32_t>(i);
        if (!was_asked) throw Fault("cancelled by nobody");
        ++result_.num_cancelled;
        continue;
      }
      const auto reason = stops ? FinishReason::stop : FinishReason::length;
      if (choice.tokens != tokens) throw Fault("it ended too early");
      if (choice.finish->reason != reason) throw Fault("it ended for another reason");
      ++result_.num_finished;
    }
    if (open.error) {
      check_error(open);
    } else {
      if (open.contains(kPoison)) check_poisoned(open);
      for (const Choice& choice : open.choices) {
        if (!choice.finish) throw Fault("a stream that ended before its choices");
      }
      const bool wants_scores = open.request.num_prompt_logprobs >= 0;
      const auto num_prompt = static_cast<int64_t>(open.request.prompt.size());
      if (wants_scores && open.cancelled_choice == -2 && open.num_scored != num_prompt) {
        throw Fault("scores are missing");
      }
      remember(open);
    }
  }

  // A request with that token cannot be served, unless nothing of it was computed.
  static void check_poisoned(const OpenRequest& open) {
    const bool was_asked_for_nothing = open.request.stop.max_tokens == 0;
    if (open.cancelled_choice == -2 && !was_asked_for_nothing) {
      throw Fault("a request that no step can serve was served");
    }
  }

  void check_error(const OpenRequest& open) {
    ++result_.num_failed;
    switch (open.error->code) {
      case ErrorCode::deadline_exceeded:
        --result_.num_failed;
        ++result_.num_expired;
        if (open.request.timeout_ms == 0) throw Fault("expired without a deadline");
        if (clock_->now_ns() < open.arrived_ns + open.request.timeout_ms * kMs) {
          throw Fault("expired before its deadline");
        }
        return;
      case ErrorCode::resource_exhausted:
        if (!options_.fail_allocation) throw Fault("memory ran out: " + open.error->to_string());
        return;
      case ErrorCode::internal:
        if (open.contains(kPoison) || open.contains(kSpoiled)) return;
        for (const Choice& choice : open.choices) {  // the model may say it too
          const auto& tokens = choice.tokens;
          for (const TokenId id : {kPoison, kSpoiled}) {
            if (std::find(tokens.begin(), tokens.end(), id) != tokens.end()) return;
          }
        }
        // A step that is made to fail and another one right after it.
        if (++num_unlucky_ <= num_made_to_fail_ / 2 + 1) return;
        throw Fault("failed without reason: " + open.error->to_string());
      default:
        throw Fault("an error of no kind that there is: " + open.error->to_string());
    }
  }

  // What was said, for others to go on with.
  void remember(const OpenRequest& open) {
    std::vector<TokenId> tokens = open.request.prompt;
    const auto& said = open.choices.front().tokens;
    tokens.insert(tokens.end(), said.begin(), said.end());
    const auto is_bad = [](TokenId id) { return id >= kOrdinary; };
    if (std::any_of(tokens.begin(), tokens.end(), is_bad)) return;
    if (conversations_.size() < 8) {
      conversations_.push_back(std::move(tokens));
    } else {
      conversations_[static_cast<size_t>(below(8))] = std::move(tokens);
    }
  }

  void check_end() {
    const Scheduler& scheduler = engine_->scheduler();
    scheduler.check_invariants();
    if (!scheduler.is_idle()) throw Fault("not idle, though all streams have ended");
    int64_t num_known = 0;
    for (const CacheGroup& group : scheduler.cache().groups()) {
      if (group.pool().num_unreferenced() != group.pool().num_blocks()) {
        throw Fault("blocks are still held");
      }
      for (int32_t block = 0; block < group.pool().num_blocks(); ++block) {
        const PrefixIndex& index = group.prefixes();
        num_known += index.contains(block) && !index.is_part(block) ? 1 : 0;
      }
    }
    if (num_known != static_cast<int64_t>(known_.size()) && !has_lost_events_) {
      throw Fault("the events of the prefix cache do not add up to what is in it");
    }
    result_.num_sessions = sessions_->num_loaded();
    result_.stats = engine_->stats();
    if (result_.stats.waiting_tokens != 0) throw Fault("places in the queue are still taken");
  }

  const SimulationOptions& options_;
  std::mt19937_64 random_;
  size_t num_choices_used_ = 0;
  std::shared_ptr<VirtualClock> clock_;
  ChecksumRunner* runner_ = nullptr;
  std::unique_ptr<EngineImpl> engine_;
  std::unique_ptr<SimulatedSessions> sessions_;
  int64_t max_rows_ = 0;
  std::vector<TokenId> prefixes_[4];
  std::vector<std::vector<TokenId>> conversations_;
  std::map<int64_t, OpenRequest> open_;
  std::set<std::pair<int32_t, KvEvent::Hash>> known_;
  bool has_lost_events_ = false;  // what is known is no mirror any more
  int64_t num_made_to_fail_ = 0;
  int64_t num_unlucky_ = 0;
  SimulationResult result_;
};

}  // namespace

SimulationResult simulate(const SimulationOptions& options) {
  World world(options);
  try {
    world.run();
  } catch (const std::exception& fault) {
    if (options.fail_allocation) options.fail_allocation(-1);
    world.result().fault = fault.what();
  }
  return world.result();
}

}  // namespace headrace
