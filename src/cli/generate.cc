// See generate.h.
#include "cli/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/os/signals.h"
#include "base/os/terminal.h"
#include "cli/terminal_text.h"
#include "text/detokenizer.h"

namespace headrace::cli {
namespace {

/// How soon Ctrl-C is seen while the engine works on a prompt.
constexpr std::chrono::milliseconds kLookAfter{20};

}  // namespace

Result<Generation> generate(Engine& engine, const std::shared_ptr<const Tokenizer>& tokenizer,
                            Request request, bool goes_on, const TextSink& on_text) {
  const InterruptGuard guard({.second_ends = !is_terminal(StandardStream::output)});
  HEADRACE_ASSIGN(Stream stream, engine.submit(std::move(request)));
  Detokenizer detokenizer(tokenizer, true, goes_on);
  Generation out;
  const auto give_out = [&](const std::string& text) {
    if (text.empty()) return;
    out.text += text;
    if (!on_text(text)) stream.cancel();
  };
  for (;;) {
    while (!stream.wait_for(kLookAfter) && !InterruptGuard::interrupted()) {
    }
    if (InterruptGuard::interrupted()) stream.cancel();
    const auto event = stream.next();
    if (!event) break;
    if (const auto* token = std::get_if<TokenEvent>(&*event)) {
      out.ids.push_back(token->id);
      give_out(detokenizer.push(token->id));
    } else if (const auto* finish = std::get_if<FinishEvent>(&*event)) {
      out.reason = finish->reason;
      out.stop_token = finish->stop_token;
      out.stats = finish->stats;
    } else if (const auto* failed = std::get_if<ErrorEvent>(&*event)) {
      return failed->error;
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

std::string timings_text(const RequestStats& stats) {
  const std::string cached =
      stats.cached_tokens > 0 ? fmt::format("  ({} more were cached)", stats.cached_tokens) : "";
  return fmt::format(
      "prompt      {:6} tokens in {:9.1f} ms  {:9.1f} tokens/s{}\n"
      "generation  {:6} tokens in {:9.1f} ms  {:9.1f} tokens/s  (choosing tokens {:.1f} ms)\n"
      "seed        {}\n",
      stats.prompt_tokens - stats.cached_tokens, stats.prefill_ms,
      stats.prefill_tokens_per_second(), cached, stats.completion_tokens, stats.decode_ms,
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
