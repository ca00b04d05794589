// What streams feel of a long prompt, and the prompt of them: times between the tokens of sequences
// that generate, without and with a prompt computed beside them, and the prompt's time to its first
// token, alone and beside them.
//
//   smoothness_bench [MODEL] [--streams N] [--prompt TOKENS] [--max-slowdown X] [--threads N]
//                    [--repeat N]
//
// Prints a line a repetition and the medians of the ratios.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/open_model.h"

namespace headrace {
namespace {

struct Args {
  std::string model;
  int64_t num_streams = 8;
  int64_t prompt_tokens = 4096;
  double max_slowdown = 2;
  int64_t num_threads = 0;
  int64_t repeat = 3;
};

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "smoothness_bench: {}\n", what);
  std::exit(1);
}

template <class T>
void read_number(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail("'" + std::string(text) + "' is no number");
  }
}

Args read_args(int argc, char** argv) {
  Args args;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name.substr(0, 2) != "--") {
      args.model = name;
      continue;
    }
    if (++i == argc) fail("a value is missing after " + std::string(name));
    if (name == "--streams")
      read_number(argv[i], args.num_streams);
    else if (name == "--prompt")
      read_number(argv[i], args.prompt_tokens);
    else if (name == "--max-slowdown")
      read_number(argv[i], args.max_slowdown);
    else if (name == "--threads")
      read_number(argv[i], args.num_threads);
    else if (name == "--repeat")
      read_number(argv[i], args.repeat);
    else
      fail("there is no option " + std::string(name));
  }
  return args;
}

using Seconds = std::chrono::duration<double>;

double now() {
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A stream with the times of its tokens.
struct Timed {
  Stream stream;
  std::vector<double> token_at;
  bool has_ended = false;

  void read() {
    while (!has_ended && stream.wait_for(std::chrono::milliseconds(0))) {
      const auto event = stream.next();
      if (!event) {
        has_ended = true;
      } else if (std::holds_alternative<TokenEvent>(*event)) {
        token_at.push_back(now());
      } else if (const auto* error = std::get_if<ErrorEvent>(&*event)) {
        fail(error->error.to_string());
      }
    }
  }
};

class Bench {
 public:
  Bench(Engine& engine, const Args& args, int64_t vocab_size)
      : engine_(engine), args_(args), vocab_size_(vocab_size) {}

  struct Result {
    double calm_ms = 0;       ///< p99 between tokens without the prompt
    double disturbed_ms = 0;  ///< p99 beside it
    double median_ms = 0;     ///< without it
    double alone = 0;         ///< seconds to the prompt's first token
    double beside = 0;
  };

  Result measure(uint64_t seed) {
    Result out;
    out.alone = time_of_prompt(seed * 1000, nullptr);
    std::vector<Timed> streams;
    for (int64_t i = 0; i < args_.num_streams; ++i) {
      streams.push_back(submit(seed * 1000 + 1 + static_cast<uint64_t>(i), 32, 4000));
    }
    // The first tokens settle what the engine knows of its steps.
    run_for(streams, 2);
    const double calm_from = now();
    run_for(streams, 6);
    const double calm_to = now();
    out.calm_ms = gap(streams, calm_from, calm_to, 0.99);
    out.median_ms = gap(streams, calm_from, calm_to, 0.5);
    const double begin = now();
    out.beside = time_of_prompt(seed * 1000 + 500, &streams);
    out.disturbed_ms = gap(streams, begin, begin + out.beside, 0.99);
    for (Timed& timed : streams) timed.stream.cancel();
    for (Timed& timed : streams) {
      while (!timed.has_ended) {
        timed.stream.wait_for(std::chrono::milliseconds(100));
        timed.read();
      }
    }
    return out;
  }

 private:
  Timed submit(uint64_t seed, int64_t prompt_tokens, int64_t max_tokens) {
    Request request;
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    for (int64_t i = 0; i < prompt_tokens; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const uint64_t id = 100 + (state >> 33) % (static_cast<uint64_t>(vocab_size_) - 200);
      request.prompt.push_back(static_cast<TokenId>(id));
    }
    request.stop.max_tokens = max_tokens;
    request.stop.ignore_eos = true;
    request.use_prefix_cache = false;
    auto stream = engine_.submit(std::move(request));
    if (!stream.ok()) fail(stream.error().to_string());
    return {std::move(stream).value(), {}, false};
  }

  void wait_and_read(std::vector<Timed>* streams, Timed* prompt) {
    seen_ = engine_.wait_for_news(seen_, std::chrono::milliseconds(100));
    if (prompt != nullptr) prompt->read();
    if (streams == nullptr) return;
    for (Timed& timed : *streams) timed.read();
  }

  void run_for(std::vector<Timed>& streams, double seconds) {
    for (const double end = now() + seconds; now() < end;) wait_and_read(&streams, nullptr);
  }

  double time_of_prompt(uint64_t seed, std::vector<Timed>* streams) {
    const double begin = now();
    Timed prompt = submit(seed, args_.prompt_tokens, 1);
    while (!prompt.has_ended) wait_and_read(streams, &prompt);
    return prompt.token_at.at(0) - begin;
  }

  /// Milliseconds between tokens that came from `from` to `to`: the quantile of all streams.
  static double gap(const std::vector<Timed>& streams, double from, double to, double quantile) {
    std::vector<double> gaps;
    for (const Timed& timed : streams) {
      for (size_t i = 1; i < timed.token_at.size(); ++i) {
        if (timed.token_at[i] < from || timed.token_at[i] > to) continue;
        gaps.push_back(1e3 * (timed.token_at[i] - timed.token_at[i - 1]));
      }
    }
    if (gaps.empty()) fail("no tokens to measure");
    std::sort(gaps.begin(), gaps.end());
    return gaps[static_cast<size_t>(quantile * static_cast<double>(gaps.size() - 1))];
  }

  Engine& engine_;
  const Args& args_;
  const int64_t vocab_size_;
  uint64_t seen_ = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int run(const Args& args) {
  auto path = resolve_model(args.model);
  if (!path.ok()) fail(path.error().to_string());
  OpenOptions open;
  open.num_threads = static_cast<int>(args.num_threads);
  open.context = args.prompt_tokens + 64;
  auto opened = open_model(path.value(), open);
  if (!opened.ok()) fail(opened.error().to_string());
  OpenedModel& model = *opened.value();
  EngineOptions options;
  options.max_sequences = args.num_streams + 1;
  options.max_slowdown = args.max_slowdown;
  auto engine = model.start_engine(options);
  if (!engine.ok()) fail(engine.error().to_string());
  Bench bench(*engine.value(), args, model.model->info().vocab_size);
  std::vector<double> slowdowns;
  std::vector<double> delays;
  for (int64_t i = 0; i < args.repeat; ++i) {
    const Bench::Result result = bench.measure(static_cast<uint64_t>(i) + 1);
    slowdowns.push_back(result.disturbed_ms / result.calm_ms);
    delays.push_back(result.beside / result.alone);
    fmt::print(
        "between tokens p50 {:.1f} ms, p99 {:.1f} ms, beside the prompt p99 {:.1f} ms: "
        "{:.2f} x; first token {:.2f} s alone, {:.2f} s beside: {:.2f} x\n",
        result.median_ms, result.calm_ms, result.disturbed_ms, slowdowns.back(), result.alone,
        result.beside, delays.back());
  }
  fmt::print("median: p99 between tokens {:.2f} x, first token {:.2f} x\n", median(slowdowns),
             median(delays));
  return 0;
}

}  // namespace
}  // namespace headrace

int main(int argc, char** argv) {
  return headrace::run(headrace::read_args(argc, argv));
}
