// A model on one instruction set: against the reference path, in chunks, on 1 to 4 threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/open_model.h"
#include "app/selftest.h"
#include "sampling/logprobs.h"

namespace headrace {
namespace {

constexpr std::string_view kSelftestText =
    "Water that falls far can do work. A channel brings it to a wheel, the wheel turns a shaft, "
    "and "
    "the shaft turns whatever the mill was built for: stones, saws, hammers or looms.";

/// What a known model says next, greedily.
struct KnownAnswer {
  std::string_view name;  ///< general.name of the file
  std::string_view prompt;
  std::string_view answer;
};

constexpr std::array kKnownAnswers{
    KnownAnswer{"Smollm2 135M 8k Lc100K Mix1 Ep2", "The capital of France is", " Paris"},
    KnownAnswer{"Gemma 3 270m", "The capital of France is", " Paris"},
};

// Differences of logits that quantised activations, keys and values may turn around: below the
// first, or below this part of the logits' standard deviation (about 3 in trained models).
constexpr float kSafeMargin = 0.15F;
constexpr float kSafeSpread = 0.05F;

struct Logits {
  std::vector<float> values;  ///< [positions, vocab]
  int64_t vocab = 0;
  std::span<const float> row(size_t position) const {
    return std::span<const float>(values).subspan(position * static_cast<size_t>(vocab),
                                                  static_cast<size_t>(vocab));
  }
};

Result<std::unique_ptr<OpenedModel>> open_with(const std::string& path, Isa isa, int threads) {
  OpenOptions options;
  options.isa = isa_name(isa);
  options.num_threads = threads;
  options.context = 512;
  return open_model(path, options);
}

/// Logits of all positions, the tokens fed `step` at a time. Errors: logits that are no numbers,
/// which would compare as equal everywhere.
Result<Logits> all_logits(const OpenedModel& model, std::span<const TokenId> ids, size_t step) {
  Logits out;
  out.vocab = model.model->info().vocab_size;
  const auto session = model.session(static_cast<int64_t>(ids.size()));
  Result<void> status;
  const auto take = [&](int64_t position, std::span<const float> logits) {
    if (!status.ok()) return;
    status = check_logits(logits);
    if (!status.ok()) {
      status = std::move(status).error().at("position " + std::to_string(position));
    }
    out.values.insert(out.values.end(), logits.begin(), logits.end());
  };
  for (size_t begin = 0; begin < ids.size(); begin += step) {
    HEADRACE_TRY(session->feed(ids.subspan(begin, std::min(step, ids.size() - begin)),
                               LogitsFor::all, take));
    HEADRACE_TRY(Result<void>(status));
  }
  return out;
}

bool same_bits(const Logits& a, const Logits& b) {
  return a.values.size() == b.values.size() &&
         std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)) == 0;
}

/// Whether the most likely token is so by more than rounding can turn around.
bool is_clear(std::span<const float> logits) {
  const auto best = static_cast<size_t>(argmax(logits));
  float second = -1e30F;
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (i != best) second = std::max(second, logits[i]);
    sum += double{logits[i]};
    squares += double{logits[i]} * double{logits[i]};
  }
  const double mean = sum / static_cast<double>(logits.size());
  const double spread =
      std::sqrt(std::max(0.0, squares / static_cast<double>(logits.size()) - mean * mean));
  return logits[best] - second >= std::max(kSafeMargin, kSafeSpread * static_cast<float>(spread));
}

SelftestCheck compare(const std::string& name, const Logits& reference, const Logits& here) {
  size_t num_safe = 0;
  size_t num_wrong = 0;
  const size_t positions = reference.values.size() / static_cast<size_t>(reference.vocab);
  for (size_t i = 0; i < positions; ++i) {
    if (!is_clear(reference.row(i))) continue;
    ++num_safe;
    num_wrong += argmax(reference.row(i)) != argmax(here.row(i)) ? 1 : 0;
  }
  if (num_safe == 0) {
    return {name, false, false, "no position has a clear most likely token: nothing was compared"};
  }
  return {name, num_wrong == 0, false,
          "the same most likely token at " + std::to_string(num_safe - num_wrong) + " of " +
              std::to_string(num_safe) + " positions with a clear one"};
}

Result<std::string> greedy(const OpenedModel& model, std::string_view prompt) {
  HEADRACE_ASSIGN(const auto ids, model.tokenizer->encode(prompt, EncodeOptions{}));
  TokenId best = -1;
  const auto session = model.session(static_cast<int64_t>(ids.size()));
  HEADRACE_TRY(session->feed(ids, LogitsFor::last, [&](int64_t, std::span<const float> logits) {
    best = argmax(logits);
  }));
  const std::array<TokenId, 1> answer{best};
  return model.tokenizer->decode(answer, false);
}

Result<void> check(const std::string& path, Isa isa, const OnCheck& on_check) {
  const std::string prefix = std::string(isa_name(isa)) + ": ";
  HEADRACE_ASSIGN(const auto model, open_with(path, isa, 0));
  HEADRACE_ASSIGN(const auto ids, model->tokenizer->encode(kSelftestText, EncodeOptions{}));

  HEADRACE_ASSIGN(const Logits whole, all_logits(*model, ids, ids.size()));
  bool same = true;
  for (const size_t step : {size_t{1}, size_t{7}}) {
    HEADRACE_ASSIGN(const Logits pieces, all_logits(*model, ids, step));
    same = same && same_bits(whole, pieces);
  }
  on_check({prefix + "prompt whole and in pieces", same, false,
            same ? "steps of 1, 7 and " + std::to_string(ids.size()) + " tokens: the same bits"
                 : "bits differ"});

  same = true;
  for (const int threads : {1, 2, 3, 4}) {
    HEADRACE_ASSIGN(const auto other, open_with(path, isa, threads));
    HEADRACE_ASSIGN(const Logits logits, all_logits(*other, ids, ids.size()));
    same = same && same_bits(whole, logits);
  }
  on_check({prefix + "1 to 4 threads", same, false, same ? "the same bits" : "bits differ"});

  if (isa != Isa::reference) {
    HEADRACE_ASSIGN(const auto judge, open_with(path, Isa::reference, 0));
    HEADRACE_ASSIGN(const Logits reference, all_logits(*judge, ids, ids.size()));
    on_check(compare(prefix + "agreement with the reference path", reference, whole));
  }

  const auto name = model->checkpoint->metadata().get_string("general.name");
  for (const KnownAnswer& known : kKnownAnswers) {
    if (!name.ok() || *name != known.name) continue;
    HEADRACE_ASSIGN(const std::string answer, greedy(*model, known.prompt));
    on_check({prefix + "known answer", answer == known.answer, false,
              "\"" + std::string(known.prompt) + "\" goes on with \"" + answer + "\""});
  }
  return {};
}

}  // namespace

void check_model(const std::string& path, Isa isa, const OnCheck& on_check) {
  const auto checked = check(path, isa, on_check);
  if (!checked.ok()) {
    on_check({std::string(isa_name(isa)) + ": model", false, false, checked.error().to_string()});
  }
}

}  // namespace headrace
