// See argv.h.
#include "cli/argv.h"

#include <algorithm>
#include <map>
#include <optional>

#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

struct Split {
  std::string name;
  std::optional<std::string> value;  ///< of `--name=value`
};

Split split_value(const std::string& arg) {
  const size_t equals = arg.find('=');
  if (equals == std::string::npos) return {arg, std::nullopt};
  return {arg.substr(0, equals), arg.substr(equals + 1)};
}

bool looks_like_option(const std::string& arg) {
  if (arg.size() < 2 || arg[0] != '-') return false;
  // -1 and -.5 are numbers.
  return !(arg[1] >= '0' && arg[1] <= '9') && arg[1] != '.';
}

const Option* find_option(const Command& command, const std::string& name) {
  for (const auto& option : command.options) {
    if (is_positional(option)) continue;
    const auto names = option_names(option);
    if (std::find(names.begin(), names.end(), name) != names.end()) return &option;
  }
  return nullptr;
}

/// The command's own spelling of `name`, or "".
std::string own_spelling(const Command& command, const std::string& name) {
  if (find_option(command, name) != nullptr) return name;
  if (name.rfind("--", 0) == 0 && name.find('_') != std::string::npos) {
    std::string dashed = name;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    return own_spelling(command, dashed);
  }
  for (const auto& group : spelling_groups()) {
    if (std::find(group.begin(), group.end(), name) == group.end()) continue;
    for (const auto& other : group) {
      if (find_option(command, other) != nullptr) return other;
    }
  }
  return "";
}

/// The flag that `--no-NAME` switches off, in the command's own spelling, or that `--NAME` does of
/// a flag called `--no-NAME`; "" where there is none.
std::string own_opposite(const Command& command, const std::string& name) {
  constexpr std::string_view kNo = "--no-";
  if (name.rfind("--", 0) != 0 || name.rfind("--no_", 0) == 0) return "";
  const std::string own = name.rfind(kNo, 0) == 0
                              ? own_spelling(command, "--" + name.substr(kNo.size()))
                              : own_spelling(command, std::string(kNo) + name.substr(2));
  return !own.empty() && is_flag(*find_option(command, own)) ? own : "";
}

const ForeignFlag* find_foreign(const std::string& name) {
  for (const auto& flag : foreign_flags()) {
    if (flag.name == name) return &flag;
  }
  if (name.rfind("--", 0) == 0 && name.find('_') != std::string::npos) {
    std::string dashed = name;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    return find_foreign(dashed);
  }
  return nullptr;
}

/// Remembers what was given by which spelling, to find contradictions.
struct GivenOption {
  std::string spelling;
  std::string value;
};

class Normalizer {
 public:
  Normalizer(const Command& command, const std::vector<std::string>& args)
      : command_(command), args_(args) {}

  Result<NormalizedArgs> run() {
    while (at_ < args_.size()) {
      const std::string& arg = args_[at_];
      ++at_;
      if (arg == "--") {
        positionals_.insert(positionals_.end(), args_.begin() + static_cast<std::ptrdiff_t>(at_),
                            args_.end());
        break;
      }
      if (!looks_like_option(arg)) {
        positionals_.push_back(arg);
        continue;
      }
      const Split split = split_value(arg);
      const std::string own = own_spelling(command_, split.name);
      if (!own.empty()) {
        HEADRACE_TRY(take_option(*find_option(command_, own), own, split));
      } else if (const std::string opposite = own_opposite(command_, split.name);
                 !opposite.empty()) {
        HEADRACE_TRY(take_flag(opposite, split, false));
      } else if (const ForeignFlag* foreign = find_foreign(split.name)) {
        HEADRACE_TRY(take_foreign(*foreign, split));
      } else {
        out_.args.push_back(arg);  // `-n4`, or unknown: the parser says
      }
    }
    // Behind `--` nothing in a positional has a meaning of its own.
    if (!positionals_.empty()) out_.args.emplace_back("--");
    out_.args.insert(out_.args.end(), positionals_.begin(), positionals_.end());
    return std::move(out_);
  }

 private:
  Result<void> take_option(const Option& option, const std::string& own, const Split& split) {
    if (is_flag(option)) return take_flag(own, split, true);
    std::optional<std::string> value = split.value;
    if (!value && at_ < args_.size()) value = args_[at_++];
    if (!value) {
      return Error{ErrorCode::invalid_argument,
                   option.value_name.empty() ? "expected a value" : "expected " + option.value_name,
                   split.name, ""};
    }
    HEADRACE_TRY(check_agreement(option, split.name, *value));
    out_.spellings[option.names] = split.name;
    // Apart from its name even where the user glued them: `--prompt=` has a value, an empty one.
    out_.args.push_back(parser_name(own));
    out_.args.push_back(option.takes_auto && *value == "auto" ? "0" : *value);
    return {};
  }

  /// `is_on`: what it means without a value.
  Result<void> take_flag(const std::string& own, const Split& split, bool is_on) {
    if (split.value && *split.value != "true" && *split.value != "false") {
      return Error{ErrorCode::invalid_argument, "takes no value but true or false", split.name, ""};
    }
    const bool is_set = split.value == "false" ? !is_on : is_on;
    out_.args.push_back(parser_name(own) + (is_set ? "" : "=false"));
    return {};
  }

  Result<void> check_agreement(const Option& option, const std::string& spelling,
                               const std::string& value) {
    if (keeps_all_values(option)) return {};
    const auto [before, first] = given_.try_emplace(option.names, GivenOption{spelling, value});
    if (first) return {};
    if (before->second.spelling != spelling && before->second.value != value) {
      return Error{ErrorCode::invalid_argument,
                   "'" + printable(value, 60) + "' contradicts " + before->second.spelling + " '" +
                       printable(before->second.value, 60) + "': here both are one setting",
                   spelling, ""};
    }
    before->second = GivenOption{spelling, value};
    return {};
  }

  Result<void> take_foreign(const ForeignFlag& flag, const Split& split) {
    std::optional<std::string> value = split.value;
    const bool value_follows =
        flag.takes_value && !value && at_ < args_.size() && !looks_like_option(args_[at_]);
    if (value_follows) value = args_[at_++];
    const bool is_other = !flag.neutral_value.empty() && value && *value != flag.neutral_value;
    if (flag.refused || is_other) {
      return Error{ErrorCode::invalid_argument, flag.reason, flag.name, ""};
    }
    out_.warnings.push_back(flag.name + " has no effect: " + flag.reason);
    return {};
  }

  const Command& command_;
  const std::vector<std::string>& args_;
  size_t at_ = 0;
  NormalizedArgs out_;
  std::vector<std::string> positionals_;
  std::map<std::string, GivenOption> given_;  ///< by Option::names
};

}  // namespace

const std::vector<std::vector<std::string>>& spelling_groups() {
  static const std::vector<std::vector<std::string>> kGroups = {
      {"-m", "--model"},
      {"-p", "--prompt"},
      {"-f", "--file"},
      {"-n", "--max-tokens", "--predict", "--n-predict"},
      {"-c", "--context", "--ctx-size", "--max-model-len"},
      {"-t", "--threads"},
      {"-s", "--seed"},
      {"--temp", "--temperature"},
      {"--top-k"},
      {"--top-p"},
      {"--min-p"},
      {"--typical-p", "--typical"},
      {"--repetition-penalty", "--repeat-penalty"},
      {"--penalty-last-n", "--repeat-last-n"},
      {"--chunk-tokens", "--ubatch-size", "-ub", "--max-num-batched-tokens"},
      {"--kv-type", "--kv-cache-dtype", "-ctk", "--cache-type-k", "-ctv", "--cache-type-v"},
      {"--block-tokens", "--kv-block-tokens", "--block-size"},
      {"--chat-template-file", "--chat-template"},
      {"--system", "--system-prompt", "-sys"},
      {"--max-sequences", "-np", "--parallel", "--max-num-seqs"},
      {"--no-prefix-cache", "--no-enable-prefix-caching", "--no-cache-prompt"},
  };
  return kGroups;
}

const std::vector<ForeignFlag>& foreign_flags() {
  static const std::string kNoGpu = "this build runs on the CPU";
  static const std::string kOneSequence = "this command runs one sequence";
  static const std::string kAlways = "that is always so, unless an option here says otherwise";
  static const std::string kPullFirst =
      "this command fetches nothing: use 'headrace pull hf:ORG/REPO', then -m hf:ORG/REPO";
  static const std::string kFileOfRepo = "the file is named behind the repository: ORG/REPO:FILE";
  static const std::string kOneProcess = "a model runs in one process";
  static const std::vector<ForeignFlag> kFlags = {
      {"-ngl", true, false, kNoGpu},
      {"--gpu-layers", true, false, kNoGpu},
      {"--n-gpu-layers", true, false, kNoGpu},
      {"--gpu-memory-utilization", true, false, kNoGpu},
      {"-fa", true, false, "attention is always computed in blocks"},
      {"--flash-attn", true, false, "attention is always computed in blocks"},
      {"-b", true, false, "a step's size is set by -ub"},
      {"--batch-size", true, false, "a step's size is set by -ub"},
      {"-np", true, false, kOneSequence},
      {"--parallel", true, false, kOneSequence},
      {"--max-num-seqs", true, false, kOneSequence},
      {"-cb", false, false, kAlways},
      {"--cont-batching", false, false, kAlways},
      {"--jinja", false, false, "chat templates are always Jinja's"},
      {"--metrics", false, false, "a server always has /metrics"},
      {"--slots", false, false, "a server always has /slots"},
      {"--enable-prefix-caching", false, false, kAlways},
      {"--dtype", true, false, "weights are computed as their file has them"},
      {"--tensor-parallel-size", true, false, kOneProcess, "1"},
      {"-tp", true, false, kOneProcess, "1"},
      {"--timeout", true, false,
       "a server has --header-timeout, --body-timeout and --stall-timeout instead"},
      {"--mlock", false, false, "pages are not locked in memory"},
      {"--no-mmap", false, false, "files are always mapped"},
      {"-hf", true, true, kPullFirst},
      {"-hfr", true, true, kPullFirst},
      {"--hf-repo", true, true, kPullFirst},
      {"-hff", true, true, kFileOfRepo},
      {"--hf-file", true, true, kFileOfRepo},
  };
  return kFlags;
}

bool takes_option(const Command& command, const std::string& name) {
  return !own_spelling(command, name).empty();
}

const Option* spelled_option(const Command& command, const std::string& name) {
  const std::string own = own_spelling(command, name);
  return own.empty() ? nullptr : find_option(command, own);
}

std::string parser_name(std::string_view name) {
  const bool one_dash = name.size() > 2 && name[0] == '-' && name[1] != '-';
  return one_dash ? "-" + std::string(name) : std::string(name);
}

Result<NormalizedArgs> normalize_args(const Command& command,
                                      const std::vector<std::string>& args) {
  return Normalizer(command, args).run();
}

}  // namespace headrace::cli
