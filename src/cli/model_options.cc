// See model_options.h.
#include "cli/model_options.h"

#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/cpu_features.h"
#include "base/read_number.h"
#include "checkpoint/quantization.h"
#include "cli/fetch_model.h"
#include "cli/input.h"
#include "cli/make_option.h"
#include "cli/report.h"
#include "store/model_store.h"
#include "text/pretokenize.h"

namespace headrace::cli {
namespace {

constexpr const char* kModelGroup = "Model";

Option in_group(Option option) {
  option.group = kModelGroup;
  return option;
}

/// "NAME=FILE" or "FILE".
AdapterFile adapter_file(std::string text) {
  AdapterFile out;
  const size_t sign = text.find('=');
  std::error_code ignored;
  // A file that is there wins over a name.
  if (sign != text.npos && sign > 0 && !std::filesystem::exists(text, ignored)) {
    out.name = text.substr(0, sign);
    text.erase(0, sign + 1);
  }
  out.path = std::move(text);
  return out;
}

Result<std::vector<AdapterFile>> adapter_files(const ModelArgs& args) {
  std::vector<AdapterFile> out;
  for (const std::string& text : args.adapters) out.push_back(adapter_file(text));
  for (const std::string& text : args.scaled_adapters) {
    const size_t colon = text.rfind(':');
    const auto strength =
        colon == text.npos
            ? std::nullopt
            : number_within<float>(std::string_view(text).substr(colon + 1), -1000, 1000);
    if (!strength) {
      return Error{ErrorCode::invalid_argument,
                   "expected FILE:STRENGTH with a number from -1000 to 1000, found '" + text + "'",
                   "--lora-scaled", ""};
    }
    out.push_back(adapter_file(text.substr(0, colon)));
    out.back().strength = *strength;
  }
  return out;
}

}  // namespace

Result<OpenOptions> open_options(const ModelArgs& args) {
  OpenOptions options;
  options.isa = args.isa;
  options.num_threads = static_cast<int>(args.threads.value_or(0));
  options.pin = args.pin;
  options.full_head = args.full_head;
  options.pack = !args.no_pack;
  options.quantize = args.quantize;
  options.kv_type = args.kv_type;
  options.context = args.context.value_or(0);
  if (args.chunk_tokens) options.chunk_tokens = *args.chunk_tokens;
  options.pre_tokenizer = args.pre_tokenizer;
  if (!args.chat_template_file.empty()) {
    HEADRACE_ASSIGN(options.chat_template, read_text(args.chat_template_file));
    if (options.chat_template.empty()) {
      return Error{ErrorCode::invalid_argument, "the chat template is empty",
                   args.chat_template_file, ""};
    }
    auto parsed = ChatTemplate::parse(options.chat_template);
    if (!parsed.ok()) return std::move(parsed).error().at(args.chat_template_file);
  }
  HEADRACE_ASSIGN(options.adapters, adapter_files(args));
  HEADRACE_TRY(check_options(options));
  return options;
}

Option model_option(ModelArgs& args) {
  Option option =
      make_option("-m,--model", "MODEL",
                  "A GGUF file, a Hugging Face directory, a name in the store (headrace list), or "
                  "what was pulled: hf:ORG/REPO[:FILE]",
                  &args.model, ModelStore::default_model().name);
  option.is_model = true;
  return in_group(option);
}

Option tokenizer_model_option(ModelArgs& args) {
  Option option = model_option(args);
  option.help = "A GGUF file, a Hugging Face directory, or a name in the store (headrace list)";
  return option;
}

Option pre_tokenizer_option(ModelArgs& args) {
  Option option =
      make_option("--pre-tokenizer", "NAME",
                  "Split text like this pre-tokenizer instead of the file's", &args.pre_tokenizer);
  for (const auto& known : text::known_pre_tokenizers()) option.choices.emplace_back(known.name);
  option.shows_choices = false;  // too many
  return in_group(std::move(option));
}

Option chat_template_option(ModelArgs& args) {
  return in_group(path_option("--chat-template", "FILE",
                              "Use this Jinja template instead of the file's",
                              &args.chat_template_file));
}

Option kv_type_option(std::string* target, bool is_list) {
  Option option = make_option(
      "--kv-type", is_list ? "TYPE[,TYPE...]" : "TYPE", "Type of the cached keys and values",
      target, std::string(kv_type_name(kDefaultKvType)) + "; f32 with --isa reference");
  option.choices = {"q8", "q12", "f16", "f32"};
  option.is_list = is_list;
  return in_group(option);
}

Option isa_option(std::string* target, bool is_list) {
  Option option =
      make_option("--isa", is_list ? "NAME[,NAME...]" : "NAME", "Instruction set of the kernels",
                  target, "$HEADRACE_ISA, else the best of the machine but amx");
  option.choices = isa_names();
  option.is_list = is_list;
  return in_group(option);
}

Option pin_option(bool* target) {
  return in_group(make_option(
      "--pin", "", "Keep each thread on a processor of its own, where nothing else runs", target));
}

Option full_head_option(bool* target) {
  return in_group(
      make_option("--full-head", "",
                  "Compute all logits in every step, also where the largest few decide; "
                  "changes no token",
                  target));
}
Option no_pack_option(bool* target) {
  return in_group(
      make_option("--no-pack", "",
                  "Leave weights in the file, whose pages the system may drop, and pack "
                  "them anew in each step: for a model larger than memory; the same "
                  "answers, several times slower",
                  target));
}

Option quantize_option(std::string* target) {
  Option option = make_option("--quantize", "TYPE",
                              "Quantise weights of 16 and 32 bits to this type while they are "
                              "loaded",
                              target);
  option.choices = quantization_names();
  return in_group(std::move(option));
}

void add_adapter_options(std::vector<Option>& options, ModelArgs& args) {
  Option plain = make_option("--lora", "[NAME=]FILE",
                             "A LoRA adapter of the model: a GGUF file, or a directory with "
                             "adapter_config.json. May be given several times",
                             &args.adapters);
  plain.is_path = true;
  options.push_back(in_group(std::move(plain)));
  options.push_back(in_group(make_option("--lora-scaled", "[NAME=]FILE:STRENGTH",
                                         "The same, with what it adds multiplied by STRENGTH",
                                         &args.scaled_adapters)));
}

void add_model_options(std::vector<Option>& options, ModelArgs& args) {
  options.push_back(model_option(args));
  options.push_back(in_group(make_option(
      "-hf,-hfr,--hf-repo", "ORG/REPO[:QUANT]",
      "The model of a repository of the hub, fetched where it is not here yet", &args.hf_repo)));
  Option context =
      make_option("-c,--ctx-size,--context", "N",
                  "Tokens of context, prompt and answer together; auto: the model's, or what fits "
                  "the memory",
                  &args.context, "auto");
  context.min_value = 0;
  context.takes_auto = true;
  options.push_back(in_group(context));
  Option threads = make_option("-t,--threads", "N", "Threads", &args.threads,
                               "the processors this process may use");
  threads.min_value = 1;
  threads.max_value = 1024;
  options.push_back(in_group(threads));
  options.push_back(pin_option(&args.pin));
  options.push_back(full_head_option(&args.full_head));
  options.push_back(no_pack_option(&args.no_pack));
  options.push_back(quantize_option(&args.quantize));
  add_adapter_options(options, args);
  options.push_back(kv_type_option(&args.kv_type));
  options.push_back(isa_option(&args.isa));
  Option chunk = make_option("-ub,--ubatch-size", "N", "Prompt tokens computed in one step",
                             &args.chunk_tokens, "256");
  chunk.min_value = 1;
  chunk.max_value = 8192;
  options.push_back(in_group(chunk));
  options.push_back(pre_tokenizer_option(args));
}

Result<std::string> find_model(const ModelArgs& args, bool may_pull) {
  if (!args.hf_repo.empty() && !args.model.empty()) {
    return Error{ErrorCode::invalid_argument, "-m and -hf both name a model", args.hf_repo,
                 "give one of them"};
  }
  if (!args.hf_repo.empty()) {
    return may_pull ? fetch_from_hub(args.hf_repo) : resolve_model("hf:" + args.hf_repo);
  }
  return may_pull ? resolve_or_fetch(args.model, fetch_model) : resolve_model(args.model);
}

Result<std::unique_ptr<OpenedModel>> open_model_of(const ModelArgs& args, bool may_pull, bool json,
                                                   bool takes_encoders) {
  HEADRACE_ASSIGN(OpenOptions options, open_options(args));
  options.takes_encoders = takes_encoders;
  HEADRACE_ASSIGN(const std::string path, find_model(args, may_pull));
  auto model = open_model(path, options);
  if (model.ok() && !json) {
    for (const std::string& warning : (*model)->warnings) warn(warning);
  }
  return model;
}

std::string context_hint(const OpenedModel& model, std::string_view shorten) {
  const std::string hint(shorten);
  switch (model.context_limit) {
    case ContextLimit::asked:
      return hint + ", or give a larger context with -c";
    case ContextLimit::model:
      return hint + "; the model was made for no larger context";
    case ContextLimit::memory:
      return hint + "; no larger context fits the memory";
  }
  return hint;
}

Result<std::shared_ptr<const Tokenizer>> open_tokenizer_of(const ModelArgs& args) {
  HEADRACE_ASSIGN(const std::string path, find_model(args, true));
  return open_tokenizer(path, args.pre_tokenizer);
}

}  // namespace headrace::cli
