// An adapter as PEFT writes it. Source: PEFT's LoraConfig and the names of its saved weights,
// "base_model.model.<module>.lora_A.weight" and ".lora_B.weight".
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/model_directory.h"
#include "checkpoint/quote_name.h"
#include "checkpoint/safetensors_file.h"
#include "model/adapters/adapter_halves.h"
#include "model/adapters/open_adapter.h"
#include "model/hf/hf_checkpoint.h"
#include "model/hf/hf_config.h"
#include "model/hf/hf_names.h"
#include "model/hf/hf_tensor.h"
#include "model/registry.h"

namespace headrace {
namespace {

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kWeightsFile = "adapter_model.safetensors";

/// The mapped weights, and copies of what could not be used as it lies there.
struct PeftFiles {
  MappedFile weights;
  AdapterCopies copies;
};

/// How strong what is added is: alpha over the rank, or over its root.
class Scales {
 public:
  static Result<Scales> read(const HfConfig& config) {
    Scales out;
    out.alpha_ = config.number("lora_alpha").value_or(8.0);  // as PEFT has it
    out.is_rooted_ = config.boolean("use_rslora").value_or(false);
    const HfConfig own = config.object("alpha_pattern");
    for (const std::string& module : own.keys()) {
      if (module.find_first_of("\\^$*+?()[]{}|") != module.npos) {
        own.fail(module, "patterns with other than names are not built in", ErrorCode::unsupported);
      }
      out.own_alphas_.emplace_back(module, own.number(module).value_or(0.0));
    }
    if (config.error()) return *config.error();
    return out;
  }

  /// Error: two names with different numbers fit, of which the file's order would choose.
  Result<float> of(std::string_view module, int64_t rank) const {
    std::optional<double> own;
    for (const auto& [name, alpha] : own_alphas_) {
      const bool is_named = module == name || (module.ends_with(name) &&
                                               module[module.size() - name.size() - 1] == '.');
      if (!is_named) continue;
      if (own && *own != alpha) {
        return Error{ErrorCode::unsupported,
                     "several numbers fit the module " + quote_name(std::string(module)),
                     std::string(kConfigFile) + ": alpha_pattern", "name each module whole"};
      }
      own = alpha;
    }
    const auto by = static_cast<double>(rank);
    return scale_of(own.value_or(alpha_), is_rooted_ ? std::sqrt(by) : by);
  }

 private:
  double alpha_ = 0;
  bool is_rooted_ = false;
  std::vector<std::pair<std::string, double>> own_alphas_;
};

void refuse_unless(const HfConfig& config, std::string_view key, bool is_fine,
                   std::string_view what) {
  if (!is_fine) config.fail(key, std::string(what) + " are not built in", ErrorCode::unsupported);
}

/// PiSSA, OLoRA, CorDA and the like take something out of the model's weights when training begins:
/// what they add belongs to what was left.
bool starts_from_other_weights(const HfConfig& config) {
  if (!config.is_text("init_lora_weights")) return false;
  const std::string way = config.text("init_lora_weights").value_or("");
  return way.starts_with("pissa") || way == "olora" || way == "corda" || way == "loftq" ||
         way == "lora_ga";
}

Result<void> check_peft_kind(const HfConfig& config) {
  const std::string kind = config.text("peft_type").value_or("");
  if (kind != "LORA") {
    config.fail("peft_type", "expected \"LORA\", found " + quote_name(kind),
                ErrorCode::unsupported);
  }
  const std::string bias = config.text("bias").value_or("none");
  refuse_unless(config, "bias", bias == "none", "changes of biases");
  refuse_unless(config, "lora_bias", !config.boolean("lora_bias").value_or(false), "biases");
  refuse_unless(config, "use_dora", !config.boolean("use_dora").value_or(false), "DoRA adapters");
  refuse_unless(config, "use_qalora", !config.boolean("use_qalora").value_or(false),
                "QALoRA adapters");
  refuse_unless(config, "alora_invocation_tokens", !config.has("alora_invocation_tokens"),
                "adapters that begin at a token");
  refuse_unless(config, "layer_replication", !config.has("layer_replication"),
                "models with repeated layers");
  refuse_unless(config, "init_lora_weights", !starts_from_other_weights(config),
                "adapters of a model whose own weights they changed");
  refuse_unless(config, "modules_to_save", config.texts("modules_to_save").empty(),
                "modules that are replaced whole");
  if (config.error()) return *config.error();
  return {};
}

constexpr HalfEndings kPeftEndings = {".lora_A.weight", ".lora_B.weight"};

std::optional<HalfName> parse_peft_name(std::string_view name) {
  constexpr std::string_view kPrefix = "base_model.model.";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  for (const bool is_a : {true, false}) {
    const std::string_view mark = is_a ? ".lora_A." : ".lora_B.";
    const size_t at = name.find(mark);
    if (at == name.npos) continue;
    const std::string_view rest = name.substr(at + mark.size());
    if (rest != "weight" && rest != "default.weight") return std::nullopt;
    return HalfName{std::string(name.substr(0, at)), is_a};
  }
  return std::nullopt;
}

Result<CheckpointTensor> read_tensor(const StoredTensor& stored, AdapterCopies& copies) {
  CheckpointTensor out;
  out.name = stored.name;
  out.shape = stored.shape;
  out.data = stored.data;
  if (lies_as_it_is(stored, HfChange::none)) {
    out.format = *format_of(stored.type);
    return out;
  }
  const StoredTensor* const part = &stored;
  HEADRACE_ASSIGN(const MadeShape made, made_shape(std::span(&part, 1), HfChange::none, {}));
  HEADRACE_ASSIGN(auto bytes, make_tensor(std::span(&part, 1), HfChange::none, {}));
  out.format = made.format;
  out.data = copies.emplace_back(std::move(bytes));
  return out;
}

/// GGUF's name of a module's weight, without its ending; empty: there is none.
std::string weight_of(std::span<const HfName> rules, const std::string& module) {
  constexpr std::string_view kEnding = ".weight";
  const auto place = find_hf_place(rules, module + std::string(kEnding));
  if (!place || !place->gguf.ends_with(kEnding)) return {};
  if (place->change != HfChange::none && place->change != HfChange::transpose) return {};
  return place->gguf.substr(0, place->gguf.size() - kEnding.size());
}

/// The names of an architecture's tensors, whatever its config says. Several architectures of
/// Hugging Face may share one of GGUF's.
Result<std::vector<HfName>> rules_of(std::string_view architecture) {
  std::vector<HfName> rules;
  for (const Architecture* found : architectures()) {
    if (found->gguf_name != architecture || found->read_hf == nullptr) continue;
    HEADRACE_ASSIGN(HfConfig empty, HfConfig::parse("{}", "config.json"));
    HfModel model(std::move(empty), architecture);
    found->read_hf(model);
    rules.insert(rules.end(), model.names().begin(), model.names().end());
  }
  if (!rules.empty()) return rules;
  return Error{ErrorCode::unsupported,
               "adapters of this kind for " + quote_name(std::string(architecture)) +
                   " models are not built in",
               "", "convert it to GGUF"};
}

Result<void> add_pairs(std::span<const StoredTensor> stored, std::string_view architecture,
                       const Scales& scales, AdapterCopies& copies, Adapter& adapter) {
  HEADRACE_ASSIGN(const auto rules, rules_of(architecture));
  HEADRACE_ASSIGN(const auto modules, pair_halves(stored, kPeftEndings, parse_peft_name));
  for (const auto& [module, halves] : modules) {
    AdapterPair pair;
    pair.weight = weight_of(rules, module);
    if (pair.weight.empty()) {
      return Error{ErrorCode::mismatch,
                   "changes the module " + quote_name(module) + ", which " +
                       std::string(architecture) + " models do not have",
                   "tensor " + quote_name(halves.a->name), "it was made for another model"};
    }
    HEADRACE_ASSIGN(pair.a, read_tensor(*halves.a, copies));
    HEADRACE_ASSIGN(pair.b, read_tensor(*halves.b, copies));
    HEADRACE_TRY(check_pair(pair));
    HEADRACE_ASSIGN(pair.scale, scales.of(module, pair.rank()));
    HEADRACE_TRY(add_pair(adapter, std::move(pair)));
  }
  return {};
}

}  // namespace

Result<Adapter> read_peft_adapter(std::string_view config_text, std::span<const std::byte> weights,
                                  std::string_view architecture, AdapterCopies& copies) {
  HEADRACE_ASSIGN(const HfConfig config, HfConfig::parse(config_text, kConfigFile));
  HEADRACE_TRY(check_peft_kind(config));
  HEADRACE_ASSIGN(const Scales scales, Scales::read(config));
  Adapter adapter;
  adapter.keeps_rope_halves = true;
  adapter.architecture = architecture;
  adapter.base_model = config.text("base_model_name_or_path").value_or("");
  if (config.error()) return *config.error();
  HeapBudget budget;
  auto stored = read_safetensors(weights, budget);
  if (!stored.ok()) return std::move(stored).error().at(kWeightsFile);
  auto added = add_pairs(*stored, architecture, scales, copies, adapter);
  if (!added.ok()) return std::move(added).error().at(kWeightsFile);
  return adapter;
}

Result<Adapter> open_peft_adapter(const std::string& path, std::string_view architecture) {
  HEADRACE_ASSIGN(const ModelDirectory directory, ModelDirectory::open(directory_of_hf_path(path)));
  if (!directory.has(kConfigFile)) {
    return Error{
        ErrorCode::not_found, "there is no " + std::string(kConfigFile), path,
        "an adapter is a directory with it and " + std::string(kWeightsFile) + ", or a GGUF file"};
  }
  HEADRACE_ASSIGN(const MappedFile config, directory.open_file(kConfigFile));
  HEADRACE_ASSIGN(MappedFile weights, directory.open_file(kWeightsFile));
  const auto files = std::make_shared<PeftFiles>(PeftFiles{std::move(weights), {}});
  HEADRACE_ASSIGN(Adapter adapter, read_peft_adapter(text_of(config), files->weights.bytes(),
                                                     architecture, files->copies));
  HEADRACE_TRY(files->weights.check_whole());
  adapter.files = files;
  return adapter;
}

}  // namespace headrace
