// See generate.h.
#include "cli/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/os/signals.h"
#include "cli/terminal_text.h"
#include "text/detokenizer.h"

namespace headrace::cli {
namespace {

/// Cancels a stream soon after Ctrl-C. A thread of its own, since the reader of the stream waits
/// inside it, through a whole prompt if need be.
class CancelOnInterrupt {
 public:
  explicit CancelOnInterrupt(Stream& stream)
      : thread_([this, &stream] {
          std::unique_lock lock(mutex_);
          while (!wake_.wait_for(lock, std::chrono::milliseconds(20), [this] { return done_; })) {
            if (InterruptGuard::interrupted()) {
              stream.cancel();
              return;
            }
          }
        }) {}
  ~CancelOnInterrupt() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

 private:
  InterruptGuard guard_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace

Result<Generation> generate(Engine& engine, const std::shared_ptr<const Tokenizer>& tokenizer,
                            Request request, const std::function<void(std::string_view)>& on_text) {
  HEADRACE_ASSIGN(Stream stream, engine.submit(std::move(request)));
  const CancelOnInterrupt watcher(stream);
  Detokenizer detokenizer(tokenizer, true);
  Generation out;
  const auto give_out = [&](const std::string& text) {
    if (text.empty()) return;
    out.text += text;
    on_text(text);
  };
  while (auto event = stream.next()) {
    if (const auto* token = std::get_if<TokenEvent>(&*event)) {
      out.ids.push_back(token->id);
      give_out(detokenizer.push(token->id));
    } else if (auto* finish = std::get_if<FinishEvent>(&*event)) {
      out.reason = finish->reason;
      out.stop_token = finish->stop_token;
      out.stats = finish->stats;
    } else if (auto* failed = std::get_if<ErrorEvent>(&*event)) {
      return std::move(failed->error);
    }
  }
  give_out(detokenizer.finish());
  return out;
}

Result<std::string> fit_to_context(const Engine& engine, size_t prompt_tokens, StopParams& stop,
                                   std::string way_out) {
  const int64_t context = engine.max_context();
  const auto prompt = static_cast<int64_t>(prompt_tokens);
  if (prompt >= context) {
    return Error{ErrorCode::context_length_exceeded,
                 fmt::format("the prompt has {} tokens, the context {}, and an answer needs room",
                             prompt, context),
                 "", std::move(way_out)};
  }
  const int64_t room = context - prompt;
  if (stop.max_tokens <= room) return std::string();
  const std::string warning =
      fmt::format("at most {} tokens can be generated, not {}: the prompt has {}, the context {}",
                  room, stop.max_tokens, prompt, context);
  stop.max_tokens = room;
  return warning;
}

nlohmann::json timings_json(const RequestStats& stats) {
  return {
      {"queue_ms", stats.queue_ms},      {"prompt_n", stats.prompt_tokens - stats.cached_tokens},
      {"prompt_ms", stats.prefill_ms},   {"prompt_per_second", stats.prefill_tokens_per_second()},
      {"cache_n", stats.cached_tokens},  {"predicted_n", stats.completion_tokens},
      {"predicted_ms", stats.decode_ms}, {"predicted_per_second", stats.decode_tokens_per_second()},
      {"sample_ms", stats.sample_ms}};
}

std::string timings_text(const RequestStats& stats) {
  return fmt::format(
      "prompt      {:6} tokens in {:9.1f} ms  {:9.1f} tokens/s\n"
      "generation  {:6} tokens in {:9.1f} ms  {:9.1f} tokens/s  (choosing tokens {:.1f} ms)\n"
      "seed        {}\n",
      stats.prompt_tokens - stats.cached_tokens, stats.prefill_ms,
      stats.prefill_tokens_per_second(), stats.completion_tokens, stats.decode_ms,
      stats.decode_tokens_per_second(), stats.sample_ms, stats.seed);
}

std::string shown_text(std::string_view text, bool to_terminal) {
  if (!to_terminal) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\t"), text.size());
    out += printable(text.substr(0, end));
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace headrace::cli
