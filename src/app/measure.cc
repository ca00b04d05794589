#include "app/measure.h"

#include <algorithm>
#include <cmath>

#include "app/kl_base.h"
#include "sampling/logprobs.h"

namespace headrace {
namespace {

/// Whether log-probabilities can be had from a row.
Result<void> check_at(int64_t position, std::span<const float> logits) {
  auto checked = check_logits(logits);
  if (!checked.ok()) {
    return std::move(checked).error().at("position " + std::to_string(position));
  }
  return checked;
}

double negative_logprob(std::span<const float> logits, double normalizer, TokenId id) {
  return normalizer - static_cast<double>(logits[static_cast<size_t>(id)]);
}

/// KL(base || logits) of one position. `base` holds log-probabilities.
double divergence(std::span<const float> base, std::span<const float> logits, double normalizer) {
  double sum = 0;
  for (size_t i = 0; i < base.size(); ++i) {
    const double here = static_cast<double>(logits[i]) - normalizer;
    sum += static_cast<double>(std::exp(base[i])) * (static_cast<double>(base[i]) - here);
  }
  return sum;
}

/// Sums over the scored positions of all chunks.
struct Tally {
  int64_t count = 0;
  double nll = 0;
  double nll_squared = 0;
  double kl = 0;
  int64_t agreements = 0;
};

/// Positions of a chunk that are scored: its second half, without the last, which predicts nothing.
int64_t scored_rows(int64_t chunk_tokens) {
  return chunk_tokens - 1 - chunk_tokens / 2;
}

Result<void> check_base(const KlBaseReader& base, const Tokenizer& tokenizer, int64_t vocab_size,
                        std::span<const TokenId> ids, int64_t chunk_tokens,
                        const std::string& path) {
  const KlBaseHeader& header = base.header();
  const auto mismatch = [&](std::string message) {
    return Error{ErrorCode::mismatch, std::move(message), path, ""};
  };
  if (header.vocab_size != vocab_size) {
    return mismatch("the base has a vocabulary of " + std::to_string(header.vocab_size) +
                    " tokens, the model one of " + std::to_string(vocab_size));
  }
  if (header.tokenizer_digest != tokenizer.fingerprint().digest) {
    return mismatch("the base was written with another tokenizer (" + header.tokenizer_digest +
                    ", the model's is " + tokenizer.fingerprint().digest + ")");
  }
  if (header.chunk_tokens != chunk_tokens) {
    return mismatch("the base has chunks of " + std::to_string(header.chunk_tokens) +
                    " tokens, asked are " + std::to_string(chunk_tokens));
  }
  if (header.rows_per_chunk != scored_rows(chunk_tokens)) {
    return mismatch("the base has " + std::to_string(header.rows_per_chunk) +
                    " rows a chunk, expected are " + std::to_string(scored_rows(chunk_tokens)));
  }
  if (static_cast<int64_t>(ids.size()) > header.num_chunks * header.chunk_tokens) {
    return mismatch("the base has " + std::to_string(header.num_chunks) + " chunks, asked are " +
                    std::to_string(static_cast<int64_t>(ids.size()) / chunk_tokens));
  }
  const auto [ours, theirs] = std::mismatch(ids.begin(), ids.end(), base.ids().begin());
  if (ours != ids.end()) {
    return mismatch("the base was made from another text: token " +
                    std::to_string(ours - ids.begin()) + " is " + std::to_string(*theirs) +
                    ", here " + std::to_string(*ours));
  }
  return {};
}

}  // namespace

Result<Scores> score_tokens(Session& session, std::span<const TokenId> ids, int64_t top_k) {
  if (ids.empty()) return Error{ErrorCode::invalid_argument, "there are no ids to score", "", ""};
  session.reset();
  Scores scores;
  Result<void> status;
  HEADRACE_TRY(
      session.feed(ids, LogitsFor::all, [&](int64_t position, std::span<const float> logits) {
        if (!status.ok()) return;
        status = check_at(position, logits);
        if (!status.ok()) return;
        const double normalizer = log_sum_exp(logits);
        const auto next = static_cast<size_t>(position) + 1;
        if (next < ids.size()) {
          scores.nll.push_back(negative_logprob(logits, normalizer, ids[next]));
        }
        if (top_k > 0) scores.top.push_back(top_logprobs(logits, static_cast<size_t>(top_k)));
      }));
  HEADRACE_TRY(std::move(status));
  return scores;
}

Result<std::vector<TokenId>> cut_chunks(const Tokenizer& tokenizer, const std::string& text,
                                        int64_t chunk_tokens, int64_t max_chunks) {
  HEADRACE_ASSIGN(const auto ids, tokenizer.encode(text, EncodeOptions{false, false}));
  const SpecialTokens& special = tokenizer.special();
  const bool has_bos = special.add_bos && special.bos >= 0;
  const int64_t from_text = chunk_tokens - (has_bos ? 1 : 0);
  int64_t num_chunks = static_cast<int64_t>(ids.size()) / from_text;
  if (num_chunks == 0) {
    return Error{ErrorCode::invalid_argument,
                 "the text has " + std::to_string(ids.size()) + " tokens, one chunk needs " +
                     std::to_string(from_text),
                 "", "give a longer text or a smaller --chunk"};
  }
  if (max_chunks > 0) num_chunks = std::min(num_chunks, max_chunks);
  std::vector<TokenId> chunks;
  chunks.reserve(static_cast<size_t>(num_chunks * chunk_tokens));
  for (int64_t c = 0; c < num_chunks; ++c) {
    if (has_bos) chunks.push_back(special.bos);
    const auto begin = ids.begin() + c * from_text;
    chunks.insert(chunks.end(), begin, begin + from_text);
  }
  return chunks;
}

Result<Perplexity> measure_perplexity(Session& session, const Tokenizer& tokenizer,
                                      int64_t vocab_size, const std::string& text,
                                      const PerplexityOptions& options) {
  const int64_t chunk = options.chunk_tokens;
  if (chunk < 4 || chunk % 2 != 0) {
    return Error{
        ErrorCode::invalid_argument,
        "a chunk must be an even number of at least 4 tokens, got " + std::to_string(chunk), "",
        ""};
  }
  std::optional<KlBaseReader> base;
  int64_t max_chunks = options.max_chunks;
  if (!options.kl_base.empty()) {
    HEADRACE_ASSIGN(base, KlBaseReader::open(options.kl_base));
    if (max_chunks == 0) max_chunks = base->header().num_chunks;
  }
  HEADRACE_ASSIGN(const auto ids, cut_chunks(tokenizer, text, chunk, max_chunks));
  if (base) {
    HEADRACE_TRY(check_base(*base, tokenizer, vocab_size, ids, chunk, options.kl_base));
  }
  const int64_t num_chunks = static_cast<int64_t>(ids.size()) / chunk;
  const int64_t first = chunk / 2;  // the first scored position
  const int64_t rows_per_chunk = scored_rows(chunk);
  std::optional<KlBaseWriter> writer;
  if (!options.save_base.empty()) {
    const KlBaseHeader header{vocab_size, num_chunks, chunk, rows_per_chunk,
                              tokenizer.fingerprint().digest};
    HEADRACE_ASSIGN(auto created, KlBaseWriter::create(options.save_base, header, ids));
    writer.emplace(std::move(created));
  }

  Perplexity result;
  Tally tally;
  std::vector<float> base_row(base ? static_cast<size_t>(vocab_size) : 0);
  for (int64_t c = 0; c < num_chunks; ++c) {
    const auto tokens = std::span<const TokenId>(ids).subspan(static_cast<size_t>(c * chunk),
                                                              static_cast<size_t>(chunk));
    const double nll_before = tally.nll;
    Result<void> status;
    const auto score = [&](int64_t position, std::span<const float> logits) {
      if (!status.ok()) return;
      status = check_at(position, logits);
      if (!status.ok()) return;
      const double normalizer = log_sum_exp(logits);
      const double nll =
          negative_logprob(logits, normalizer, tokens[static_cast<size_t>(position) + 1]);
      ++tally.count;
      tally.nll += nll;
      tally.nll_squared += nll * nll;
      if (writer) status = writer->add_row(logits, normalizer);
      if (base) {
        const TokenId best = base->read_row(c * rows_per_chunk + position - first, base_row);
        tally.kl += divergence(base_row, logits, normalizer);
        tally.agreements += best == argmax(logits) ? 1 : 0;
      }
    };
    session.reset();
    HEADRACE_TRY(session.feed(tokens.first(static_cast<size_t>(first)), LogitsFor::none,
                              [](int64_t, std::span<const float>) {}));
    HEADRACE_TRY(session.feed(
        tokens.subspan(static_cast<size_t>(first), static_cast<size_t>(rows_per_chunk)),
        LogitsFor::all, score));
    HEADRACE_TRY(std::move(status));
    result.per_chunk_nll.push_back((tally.nll - nll_before) / static_cast<double>(rows_per_chunk));
    if (options.progress &&
        !options.progress(c + 1, num_chunks, tally.nll / static_cast<double>(tally.count))) {
      return Error{ErrorCode::cancelled, "interrupted", "", ""};
    }
  }
  if (writer) HEADRACE_TRY(writer->finish());

  const auto count = static_cast<double>(tally.count);
  result.chunks = num_chunks;
  result.scored_tokens = tally.count;
  result.mean_nll = tally.nll / count;
  const double variance = tally.nll_squared / count - result.mean_nll * result.mean_nll;
  result.nll_standard_error = std::sqrt(std::max(variance, 0.0) / count);
  if (base) {
    result.mean_kl = tally.kl / count;
    result.top1_agreement = static_cast<double>(tally.agreements) / count;
  }
  return result;
}

}  // namespace headrace
