// One generation: submits a request, turns its tokens into text as they come, ends it at Ctrl-C.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/engine.h"
#include "text/tokenizer.h"

namespace headrace::cli {

struct Generation {
  std::string text;
  std::vector<TokenId> ids;
  FinishReason reason = FinishReason::stop;
  TokenId stop_token = -1;
  RequestStats stats;
};

/// Takes a piece of text; false where no more can be taken.
using TextSink = std::function<bool(std::string_view)>;

/// Runs `request` to its end. `on_text` gets each piece of text as soon as it is certain; joined,
/// the pieces are `text`. Ctrl-C cancels, also one that came before within the life of the caller's
/// InterruptGuard, and so does a sink that takes no more: the result then says
/// FinishReason::cancelled. With `goes_on` the text is the exact continuation of the prompt's, its
/// first space included. Errors: those of Engine::submit, or the engine's while it ran.
Result<Generation> generate(Engine& engine, const std::shared_ptr<const Tokenizer>& tokenizer,
                            Request request, bool goes_on, const TextSink& on_text);

/// Clamps `stop.max_tokens` to the room behind the prompt; the text of a warning, or "". Errors:
/// context_length_exceeded (with both numbers, and `way_out` as its hint) if the prompt leaves no
/// room.
Result<std::string> fit_to_context(const Engine& engine, size_t prompt_tokens, StopParams& stop,
                                   std::string way_out);

/// Where the time went, lines for standard error.
std::string timings_text(const RequestStats& stats);

/// Model output for the terminal: control characters but line ends and tabs are written out, so
/// that no escape sequence of a model reaches it. Elsewhere the text stays as it is.
std::string shown_text(std::string_view text, bool to_terminal);

}  // namespace headrace::cli
