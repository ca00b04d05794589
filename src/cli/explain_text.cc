// See explain_text.h.
#include "cli/explain_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

using Json = nlohmann::json;

constexpr int kBarWidth = 48;
constexpr size_t kMaxChunks = 12;  ///< shown; the rest is counted
constexpr size_t kMaxPromptBytes = 4000;

double number(const Json& from, const char* name) {
  if (!from.is_object()) return 0;
  const auto found = from.find(name);
  return found != from.end() && found->is_number() ? found->get<double>() : 0;
}

int64_t count(const Json& from, const char* name) {
  return static_cast<int64_t>(std::clamp(number(from, name), -1e15, 1e15));
}

std::string words(const Json& from, const char* name) {
  if (!from.is_object()) return "";
  const auto found = from.find(name);
  return found != from.end() && found->is_string() ? printable(found->get<std::string>(), 300) : "";
}

/// The same as a part of a sentence: without control characters and line ends, whatever an error
/// had.
std::string sentence(const Json& from, const char* name) {
  if (!from.is_object()) return "";
  const auto found = from.find(name);
  if (found == from.end() || !found->is_string()) return "";
  std::string out;
  for (const char c : found->get<std::string>()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_gap = byte <= 0x20 || byte == 0x7f;
    if (!is_gap) out.push_back(c);
    if (is_gap && !out.empty() && out.back() != ' ') out.push_back(' ');
  }
  return printable(out, 300);
}

const Json& list(const Json& from, const char* name) {
  static const Json kNone = Json::array();
  if (!from.is_object()) return kNone;
  const auto found = from.find(name);
  return found != from.end() && found->is_array() ? *found : kNone;
}

std::string plural(int64_t number, std::string_view one) {
  return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
}

struct Phase {
  std::string name;
  double start_ms = 0;
  double ms = 0;
};

std::vector<Phase> phases_of(const Json& from) {
  std::vector<Phase> out;
  for (const Json& each : list(from, "phases")) {
    out.push_back({words(each, "name"), number(each, "start_ms"), number(each, "ms")});
  }
  return out;
}

/// These are sums over the whole time, and have no place in it.
bool is_spread(const Phase& phase) {
  return phase.name == "sampling" || phase.name == "format";
}

std::string bar_line(const Phase& phase, double total_ms) {
  const auto column = [&](double ms) {
    const double share = total_ms > 0 ? std::clamp(ms / total_ms, 0.0, 1.0) : 0.0;
    return static_cast<size_t>(std::lround(share * kBarWidth));
  };
  const size_t begin = std::min<size_t>(column(phase.start_ms), kBarWidth - 1);
  const size_t end = std::max(column(phase.start_ms + phase.ms), begin + 1);
  const std::string bar = phase.ms > 0 ? std::string(begin, ' ') + std::string(end - begin, '#') +
                                             std::string(kBarWidth - end, ' ')
                                       : std::string(kBarWidth, ' ');
  return fmt::format("  {:<10}{:>10.1f} ms  |{}|\n", phase.name, phase.ms, bar);
}

/// Steps of a completion: those of the prompt end with the first token.
struct Steps {
  std::vector<const Json*> prefill;
  std::vector<const Json*> decode;
};

Steps steps_of(const Json& choice) {
  Steps out;
  bool is_decoding = false;
  for (const Json& each : list(choice, "steps")) {
    (is_decoding ? out.decode : out.prefill).push_back(&each);
    is_decoding = is_decoding || count(each, "tokens") > 0;
  }
  return out;
}

int64_t num_steps(const Json& entry) {
  return std::max<int64_t>(1, count(entry, "steps"));
}

std::string prefill_text(const std::vector<const Json*>& entries) {
  if (entries.empty()) return "";
  std::string out =
      fmt::format("  prompt in {}:\n", plural(static_cast<int64_t>(entries.size()), "chunk"));
  for (size_t i = 0; i < std::min(entries.size(), kMaxChunks); ++i) {
    const Json& each = *entries[i];
    const int64_t others = count(each, "sequences") - num_steps(each);
    out += fmt::format("    at {:.1f} ms: {} in {:.1f} ms, {}\n", number(each, "start_ms"),
                       plural(count(each, "rows"), "token"), number(each, "ms"),
                       others > 0 ? fmt::format("with {} ({} tokens in the step)",
                                                plural(others, "other"), count(each, "step_rows"))
                                  : "alone");
  }
  if (entries.size() > kMaxChunks) {
    out += fmt::format("    and {} more\n", entries.size() - kMaxChunks);
  }
  return out;
}

std::string decode_text(const std::vector<const Json*>& entries) {
  if (entries.empty()) return "";
  std::vector<double> times;
  int64_t steps = 0;
  int64_t alone = 0;
  int64_t most = 1;
  int64_t pauses = 0;
  int64_t preemptions = 0;
  double sequences = 0;
  for (const Json* each : entries) {
    const int64_t num = num_steps(*each);
    const int64_t company = count(*each, "sequences");
    steps += num;
    sequences += static_cast<double>(company);
    times.push_back(number(*each, "ms") / static_cast<double>(num));
    if (company <= num) alone += num;
    most = std::max(most, (company + num - 1) / num);
    pauses += count(*each, "pauses_before");
    preemptions += count(*each, "preemptions_before");
  }
  std::sort(times.begin(), times.end());
  std::string out =
      fmt::format("  {} of decoding: {:.2f} ms each (median), {:.2f} ms the slowest\n",
                  plural(steps, "step"), times[times.size() / 2], times.back());
  out += most <= 1
             ? std::string("    alone in all of them\n")
             : fmt::format("    {:.1f} sequences in a step, {} at most; alone in {}\n",
                           sequences / static_cast<double>(steps), most, plural(alone, "step"));
  if (pauses > 0) out += fmt::format("    paused {} for its reader\n", plural(pauses, "time"));
  if (preemptions > 0) {
    out += fmt::format("    began again {}, for want of memory\n", plural(preemptions, "time"));
  }
  return out;
}

/// A phase's rate beside what the machine allows one sequence; "" where nobody measured that.
std::string bound_text(const Json& choice, const char* phase) {
  const auto bounds = choice.find("bounds");
  if (bounds == choice.end() || !bounds->is_object() || !bounds->contains(phase)) return "";
  const Json& beside = (*bounds)[phase];
  const bool is_by_compute = words(beside, "bound_kind") == "compute";
  return fmt::format("    {:.1f} tokens/s; {} allows one sequence {:.1f}: {:.0f} % of it\n",
                     number(beside, "tokens_per_second"), is_by_compute ? "arithmetic" : "memory",
                     number(beside, "bound_tokens_per_second"),
                     100 * number(beside, "fraction_of_bound"));
}

std::string choice_text(const Json& choice, double total_ms, bool is_one_of_many, size_t index) {
  if (!choice.is_object()) return "";
  std::string out = is_one_of_many ? fmt::format("\ncompletion {}\n", index) : "";
  std::string spread;
  for (const Phase& phase : phases_of(choice)) {
    if (is_spread(phase)) {
      spread = fmt::format("  sampling took {:.1f} ms of it\n", phase.ms);
    } else {
      out += bar_line(phase, total_ms);
    }
  }
  out += fmt::format("\n  {} of prompt, {} of them from the cache; {} answered\n",
                     plural(count(choice, "prompt_tokens"), "token"),
                     count(choice, "cached_tokens"), count(choice, "completion_tokens"));
  const Steps steps = steps_of(choice);
  out += prefill_text(steps.prefill) + bound_text(choice, "prefill");
  out += decode_text(steps.decode) + bound_text(choice, "decode");
  out += spread;
  if (const std::string why = sentence(choice, "ended"); !why.empty()) {
    out += fmt::format("  it ended: {}\n", why);
  }
  return out;
}

std::string prompts_text(const Json& explained) {
  std::string out;
  for (const Json& each : list(explained, "prompts")) {
    if (!each.is_object() || !each.contains("text") || !each["text"].is_string()) continue;
    out += fmt::format("\nprompt, {}:\n  {}\n",
                       plural(static_cast<int64_t>(list(each, "ids").size()), "token"),
                       printable(each["text"].get<std::string>(), kMaxPromptBytes));
  }
  return out;
}

}  // namespace

std::string explain_text(const Json& explained) {
  const double total_ms = number(explained, "total_ms");
  std::string out = fmt::format("{} ({}) {}\n", words(explained, "id"),
                                words(explained, "request_id"), words(explained, "path"));
  const Json streamed = explained.is_object() ? explained.value("streamed", Json()) : Json();
  out += fmt::format("  model {}, {}; {} after {:.1f} ms", words(explained, "model"),
                     streamed == true ? "streamed" : "in one piece", words(explained, "end"),
                     total_ms);
  if (number(explained, "first_token_ms") > 0) {
    out += fmt::format(", first token after {:.1f} ms", number(explained, "first_token_ms"));
  }
  out += "\n\n";
  std::string behind;
  double format_ms = 0;
  for (const Phase& phase : phases_of(explained)) {
    if (is_spread(phase)) {
      format_ms = phase.ms;
    } else {
      (phase.name == "send" ? behind : out) += bar_line(phase, total_ms);
    }
  }
  const Json& choices = list(explained, "choices");
  // The answer is sent behind the first completion's phases, where there is one alone.
  for (size_t i = 0; i < choices.size(); ++i) {
    out += choice_text(choices[i], total_ms, choices.size() > 1, i);
  }
  // One that failed before a completion ended has nobody else to tell why.
  if (const std::string why = sentence(explained, "error"); !why.empty() && choices.empty()) {
    out += fmt::format("\n  it failed: {}\n", why);
  }
  out += behind.empty() ? "" : "\n" + behind;
  out += fmt::format("  text and JSON took {:.1f} ms of it\n", format_ms);
  return out + prompts_text(explained);
}

}  // namespace headrace::cli
