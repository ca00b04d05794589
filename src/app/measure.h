// Teacher-forced measures of a model: scores of given tokens, perplexity of a text, divergence from
// a saved path. Must not know how text was read or how results are shown.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/session/session.h"
#include "headrace/request.h"
#include "headrace/result.h"
#include "text/tokenizer.h"

namespace headrace {

struct Scores {
  std::vector<double> nll;                     ///< [n - 1]: -log p(ids[i + 1] | ids[0..i])
  std::vector<std::vector<TokenLogprob>> top;  ///< [n][k]: the most likely after ids[0..i]
};

/// Scores `ids` as they are (nothing is added). `top_k` 0: `top` stays empty. `session` is reset
/// first. Errors: invalid_argument (no ids), the session's own, internal (NaN logits).
Result<Scores> score_tokens(Session& session, std::span<const TokenId> ids, int64_t top_k);

struct PerplexityOptions {
  int64_t chunk_tokens = 512;  ///< at least 4, even
  int64_t max_chunks = 0;      ///< 0: all whole chunks of the text
  std::string save_base;       ///< write the distributions to this file
  std::string kl_base;         ///< compare with the distributions of this file
  /// Called after each chunk; returning false stops the measurement (cancelled).
  std::function<bool(int64_t done, int64_t total, double mean_nll)> progress;
};

struct Perplexity {
  int64_t chunks = 0;
  int64_t scored_tokens = 0;
  double mean_nll = 0;
  double nll_standard_error = 0;  ///< of the mean over scored tokens
  std::vector<double> per_chunk_nll;
  std::optional<double> mean_kl;         ///< KL(base || this), natural log, mean over positions
  std::optional<double> top1_agreement;  ///< share of positions with the same most likely token
};

/// The text's tokens (no special ones) as chunks of `chunk_tokens` ids, the last incomplete one
/// dropped. Where the model adds a BOS, each chunk begins with it and takes one text token less.
/// [num_chunks * chunk_tokens]. Errors: invalid_argument (the text is too short for one chunk).
Result<std::vector<TokenId>> cut_chunks(const Tokenizer& tokenizer, const std::string& text,
                                        int64_t chunk_tokens, int64_t max_chunks);

/// Each chunk is fed from its beginning, and the positions chunk/2 .. chunk-2 are scored on the
/// token after them. With a base the chunk length and, unless given, the number of chunks must be
/// the base's. `session` must hold chunk_tokens tokens. Errors: mismatch (a base of another
/// vocabulary or text), those of the files, cancelled.
Result<Perplexity> measure_perplexity(Session& session, const Tokenizer& tokenizer,
                                      int64_t vocab_size, const std::string& text,
                                      const PerplexityOptions& options);

}  // namespace headrace
