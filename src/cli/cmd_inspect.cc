// headrace inspect: what is in a model file and what it needs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/inspect.h"
#include "cli/commands.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/terminal_text.h"

namespace headrace::cli {
namespace {

/// Elements of an array that are shown; a vocabulary has hundreds of thousands.
constexpr size_t kShownElements = 8;

struct InspectArgs {
  ModelArgs model;
  std::optional<std::string> positional;
  std::optional<int64_t> context;
  std::string kv_type{kv_type_name(kDefaultKvType)};
  bool no_pack = false;
  std::string quantize;
  bool tensors = false;
  bool json = false;
};

/// A value as JSON; of a long array its length and first elements.
template <class T>
nlohmann::json array_json(const std::vector<T>& values) {
  auto first = nlohmann::json::array();
  for (size_t i = 0; i < std::min(values.size(), kShownElements); ++i) {
    if constexpr (std::is_same_v<T, std::string_view>) {
      first.push_back(std::string(values[i]));
    } else {
      first.push_back(static_cast<T>(values[i]));
    }
  }
  if (values.size() <= kShownElements) return first;
  return {{"length", values.size()}, {"first", first}};
}

nlohmann::json value_json(const MetaValue& value) {
  return std::visit(
      [](const auto& v) -> nlohmann::json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string_view>) {
          return std::string(v);
        } else if constexpr (std::is_arithmetic_v<T>) {
          return v;
        } else {
          return array_json(v);
        }
      },
      value);
}

std::string value_text(const MetaValue& value) {
  const nlohmann::json json = value_json(value);
  if (json.is_string()) return printable(json.get<std::string>(), 100);
  if (json.is_object()) {
    const auto first = json["first"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return fmt::format("{} values: {}...", json["length"].get<size_t>(),
                       printable(first.substr(0, first.size() - 1), 100));
  }
  return printable(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 100);
}

nlohmann::json memory_json(const std::optional<InspectedMemory>& memory) {
  if (!memory) return nullptr;
  return {{"weight_bytes", memory->weight_bytes},
          {"file_bytes", memory->file_bytes},
          {"scratch_bytes", memory->scratch_bytes},
          {"kv_type", kv_type_name(memory->kv_type)},
          {"kv_bytes_per_token", memory->kv_bytes_per_token},
          {"context", memory->context},
          {"kv_bytes", memory->kv_bytes},
          {"activation_bytes", memory->activation_bytes},
          {"limit_bytes", memory->limit_bytes},
          {"largest_context", memory->largest_context}};
}

nlohmann::json inspection_json(const Inspection& seen) {
  nlohmann::json metadata = nlohmann::json::object();
  for (const auto& [key, value] : seen.checkpoint->metadata().values()) {
    metadata[key] = value_json(value);
  }
  auto tensors = nlohmann::json::array();
  for (const CheckpointTensor& tensor : seen.checkpoint->tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"format", format_traits(tensor.format).name},
                       {"shape", tensor.shape},
                       {"bytes", tensor.num_bytes()}});
  }
  auto formats = nlohmann::json::array();
  for (const FormatShare& share : seen.formats) {
    formats.push_back({{"format", format_traits(share.format).name},
                       {"tensors", share.num_tensors},
                       {"parameters", share.num_parameters},
                       {"bytes", share.bytes}});
  }
  return {{"path", seen.checkpoint->path()},
          {"file_format", seen.checkpoint->format_name()},
          {"file_bytes", seen.checkpoint->file_bytes()},
          {"architecture", seen.architecture},
          {"name", seen.name},
          {"supported", seen.is_supported},
          {"num_parameters", seen.num_parameters},
          {"num_active_parameters", seen.num_active_parameters},
          {"context_length", seen.context_length},
          {"vocab_size", seen.vocab_size},
          {"tokenizer", seen.tokenizer},
          {"tokenizer_fingerprint", seen.tokenizer_digest},
          {"chat_template", seen.has_chat_template},
          {"formats", formats},
          {"memory", memory_json(seen.memory)},
          {"metadata", metadata},
          {"tensors", tensors},
          {"warnings", seen.warnings}};
}

void print_line(const char* label, const std::string& value) {
  print(fmt::format("{:<16}{}\n", label, value));
}

void print_memory(const InspectedMemory& memory) {
  print("\nMemory\n");
  print_line("weights", size_text(memory.weight_bytes) +
                            (memory.file_bytes > 0
                                 ? ", and " + size_text(memory.file_bytes) + " stay in the file"
                                 : ""));
  if (memory.scratch_bytes > 0) {
    print_line("scratch", "at most " + size_text(memory.scratch_bytes) + " to pack weights in");
  }
  print_line("KV cache",
             fmt::format("{} for {} tokens ({}, {} bytes a token)", size_text(memory.kv_bytes),
                         memory.context, kv_type_name(memory.kv_type), memory.kv_bytes_per_token));
  print_line("activations", "about " + size_text(memory.activation_bytes));
  print_line("this process", size_text(memory.limit_bytes) + " may be used");
  print_line("largest context", fmt::format("{} tokens fit", memory.largest_context));
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t dim : shape) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text;
}

std::string parameters_text(const Inspection& seen) {
  const std::string all = fmt::format("{:.1f} M", static_cast<double>(seen.num_parameters) / 1e6);
  if (seen.num_active_parameters == seen.num_parameters) return all;
  return fmt::format("{}, of which a token uses {:.1f} M", all,
                     static_cast<double>(seen.num_active_parameters) / 1e6);
}

void print_inspection(const Inspection& seen, bool with_tensors) {
  print_line("file", printable(seen.checkpoint->path()));
  print_line("format", fmt::format("{}, {}", seen.checkpoint->format_name(),
                                   size_text(seen.checkpoint->file_bytes())));
  print_line("architecture", printable(seen.architecture) +
                                 (seen.is_supported ? "" : " (this build cannot run it)"));
  print_line("name", printable(seen.name));
  print_line("parameters", parameters_text(seen));
  print_line("context",
             seen.context_length > 0 ? fmt::format("{} tokens", seen.context_length) : "unknown");
  print_line("vocabulary", fmt::format("{} tokens, {}", seen.vocab_size, seen.tokenizer));
  print_line("chat template", seen.has_chat_template ? "yes" : "no");
  if (seen.memory) print_memory(*seen.memory);
  print("\nWeights\n");
  for (const FormatShare& share : seen.formats) {
    print(fmt::format("{:<16}{:5} tensors  {:9.1f} M parameters  {}\n",
                      format_traits(share.format).name, share.num_tensors,
                      static_cast<double>(share.num_parameters) / 1e6, size_text(share.bytes)));
  }
  if (with_tensors) {
    print("\nTensors\n");
    for (const CheckpointTensor& tensor : seen.checkpoint->tensors()) {
      print(fmt::format("{:<40} {:<8} {}\n", printable(tensor.name),
                        format_traits(tensor.format).name, shape_text(tensor.shape)));
    }
  }
  print("\nMetadata\n");
  for (const auto& [key, value] : seen.checkpoint->metadata().values()) {
    print(fmt::format("{:<40} {}\n", printable(key), value_text(value)));
  }
}

Result<int> run_checked(InspectArgs& args) {
  if (args.positional) args.model.model = *args.positional;
  HEADRACE_ASSIGN(const std::string path, find_model(args.model, true));
  InspectOptions options;
  options.context = args.context.value_or(0);
  options.kv_type = kv_type_named(args.kv_type).value_or(kDefaultKvType);
  options.pack = !args.no_pack;
  options.quantize = find_quantization(args.quantize);
  HEADRACE_ASSIGN(const Inspection seen, inspect_model(path, options));
  if (args.json) {
    print_json(inspection_json(seen));
    return kDone;
  }
  for (const std::string& text : seen.warnings) warn(text);
  print_inspection(seen, args.tensors);
  return kDone;
}

}  // namespace

Command inspect_command() {
  auto args = std::make_shared<InspectArgs>();
  Command command;
  command.name = "inspect";
  command.summary = "Show what is in a model file and what it needs";
  command.description =
      "Shows a file's metadata, its weights by format, and the memory it needs to run: weights, KV "
      "cache and activations, and the largest context that fits. Nothing is loaded. Files that "
      "this build cannot run are shown too.";
  auto& options = command.options;
  options.push_back(
      make_option("model", "", "A GGUF file, or a name in the store", &args->positional));
  options.back().is_model = true;
  options.push_back(model_option(args->model));
  options.push_back(make_option("-c,--ctx-size,--context", "N", "Plan memory for N tokens",
                                &args->context, "the model's context"));
  options.back().min_value = 1;
  options.back().max_value = 1 << 30;
  options.push_back(make_option("--kv-type", "TYPE", "Plan memory for keys and values of this type",
                                &args->kv_type, std::string(kv_type_name(kDefaultKvType))));
  options.back().choices = {"q8", "q12", "f16", "f32"};
  options.push_back(make_option("--no-pack", "", "Plan memory for weights that stay in the file",
                                &args->no_pack));
  options.push_back(quantize_option(&args->quantize));
  options.back().help = "Plan memory for weights quantised to this type at load";
  options.push_back(make_option("--tensors", "", "List every tensor", &args->tensors));
  options.push_back(json_option(&args->json));
  command.examples = {
      {"headrace inspect gemma3-270m", "a model in the store"},
      {"headrace inspect model.gguf -c 4096 --tensors", "every tensor, memory for 4096 tokens"},
      {"headrace inspect model.gguf --json", "everything as JSON; long arrays shortened"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
