// See hf_plan.h.
#include "model/hf/hf_plan.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>

#include "checkpoint/quote_name.h"
#include "model/hf/hf_names.h"
#include "model/hf/hf_writer.h"
#include "model/registry.h"

namespace headrace {
namespace {

Error cannot_say(const std::string& message, const std::string& where) {
  return Error{ErrorCode::unsupported, message, where,
               "write a GGUF file, which any model can be written to"};
}

/// Numbers of 64 bits come of texts in one form and of 32 bits in the other.
ModelConfig in_32_bits(ModelConfig config) {
  for (RopeConfig* rope : {&config.rope, config.rope_window ? &*config.rope_window : nullptr}) {
    if (rope == nullptr) continue;
    for (double* value :
         {&rope->base, &rope->factor, &rope->low_freq_factor, &rope->high_freq_factor,
          &rope->beta_fast, &rope->beta_slow, &rope->attention_factor}) {
      *value = static_cast<double>(static_cast<float>(*value));
    }
    // Said by files, and of no use there.
    using Scaling = RopeConfig::Scaling;
    if (rope->scaling == Scaling::none || rope->scaling == Scaling::linear) {
      rope->original_context = 0;
    }
    // YaRN's is a product, which both forms split differently.
    rope->attention_factor = std::round(rope->attention_factor * 1e5) / 1e5;
  }
  // Other files of a directory say these.
  config.pooling.reset();
  config.normalizes = true;
  return config;
}

std::string write_config(const Architecture& architecture, const ModelConfig& config,
                         const Checkpoint& from, std::string_view dtype) {
  HfWriter out(config, from);
  const std::string name(architecture.hf_names.front());
  out.set_texts("architectures", std::span(&name, 1));
  architecture.write_hf(out);
  if (const CheckpointTensor* table = from.find("token_embd.weight");
      table != nullptr && table->shape.size() == 2) {
    out.set_int("vocab_size", table->shape[0]);
  }
  out.set_bool("tie_word_embeddings", !out.has_tensor("output.weight"));
  out.set_text("torch_dtype", dtype);
  for (const auto& [key, id] : {std::pair("bos_token_id", "tokenizer.ggml.bos_token_id"),
                                {"eos_token_id", "tokenizer.ggml.eos_token_id"},
                                {"pad_token_id", "tokenizer.ggml.padding_token_id"}}) {
    const auto found = from.metadata().get_int(id);
    // Without the key, classes have ids of their own.
    if (found.ok() && *found) {
      out.set_int(key, **found);
    } else {
      out.set_null(key);
    }
  }
  return out.text();
}

/// config.json as a reader of the directory understands it.
struct ReadBack {
  HfModel model;
  ModelConfig config;
};

Result<ReadBack> read_back(const Architecture& architecture, const std::string& text) {
  HEADRACE_ASSIGN(const HfConfig config, HfConfig::parse(text, "config.json"));
  ReadBack out{HfModel(config, architecture.gguf_name), {}};
  architecture.read_hf(out.model);
  if (config.error()) return *config.error();
  Metadata metadata;
  std::deque<std::string> texts;
  out.model.write_keys(metadata, texts);
  ConfigReader reader(metadata, architecture.gguf_name);
  out.config = architecture.read_config(reader);
  if (reader.error()) return *reader.error();
  return out;
}

/// Whether a tensor that only GGUF has is what config.json gives.
bool is_same_extra(const HfExtraTensor& extra, const std::vector<float>& found) {
  constexpr float kMostApart = 1e-5F;
  return std::ranges::equal(extra.values, found, [](float a, float b) {
    return std::abs(a - b) <= kMostApart * std::abs(a);
  });
}

bool has_same_extras(HfModel& model, const HfWriter& source) {
  const auto& extras = model.extra_tensors();
  for (const std::string_view name :
       {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"}) {
    const auto extra = std::ranges::find(extras, name, &HfExtraTensor::name);
    if (source.has_tensor(name) != (extra != extras.end())) return false;
    if (extra != extras.end() && !is_same_extra(*extra, source.floats(name))) return false;
  }
  return true;
}

/// The targets of the checkpoint's tensors.
class Targets {
 public:
  explicit Targets(HfModel& model) : model_(model) {}

  Result<void> add(const CheckpointTensor& tensor, std::vector<HfTarget>& out) {
    const auto& extras = model_.extra_tensors();
    if (std::ranges::find(extras, tensor.name, &HfExtraTensor::name) != extras.end()) return {};
    if (const auto place = name_of(tensor.name, -1); place && place->change != HfChange::stack) {
      HfTarget& target = out.emplace_back();
      target.name = place->gguf;
      target.source = &tensor;
      target.change = place->change;
      target.shape = tensor.shape;
      if (place->change == HfChange::transpose && tensor.shape.size() == 2) {
        std::swap(target.shape[0], target.shape[1]);
      }
      return {};
    }
    return add_parts(tensor, out);
  }

 private:
  /// The directory's name of a GGUF name (in HfPlace::gguf).
  std::optional<HfPlace> name_of(const std::string& gguf, int64_t row) const {
    return place_gguf_tensor(model_.names(), gguf, row);
  }

  /// A tensor each for the rows of a matrix, or for the experts of a stack.
  Result<void> add_parts(const CheckpointTensor& tensor, std::vector<HfTarget>& out) {
    constexpr std::string_view kStack = "_exps.weight";
    std::string stem = tensor.name;
    const bool is_stack = stem.ends_with(kStack) && tensor.shape.size() == 3;
    if (is_stack) stem.resize(stem.size() - kStack.size());
    for (int64_t part = 0; part < tensor.shape.front(); ++part) {
      const auto place = is_stack ? name_of(stem + "." + std::to_string(part) + ".weight", -1)
                                  : name_of(tensor.name, part);
      if (!place) {
        return cannot_say(
            "has no name in a Hugging Face directory of " + std::string("this architecture"),
            "tensor " + quote_name(tensor.name));
      }
      HfTarget& target = out.emplace_back();
      target.name = place->gguf;
      target.source = &tensor;
      target.part = part;
      target.shape.assign(tensor.shape.begin() + 1, tensor.shape.end());
    }
    return {};
  }

  HfModel& model_;
};

Result<HfDirectoryPlan> plan_as(const Architecture& architecture, const ModelConfig& config,
                                const Checkpoint& from, std::string_view dtype) {
  HfDirectoryPlan plan{&architecture, config, write_config(architecture, config, from, dtype), {}};
  HEADRACE_ASSIGN(ReadBack read, read_back(architecture, plan.config_json));
  const HfWriter source(config, from);
  if (in_32_bits(read.config) != in_32_bits(config) || !has_same_extras(read.model, source)) {
    return cannot_say("config.json of " + std::string(architecture.hf_names.front()) +
                          " cannot say all of this model",
                      from.path());
  }
  Targets targets(read.model);
  for (const CheckpointTensor& tensor : from.tensors()) {
    HEADRACE_TRY(targets.add(tensor, plan.targets));
  }
  return plan;
}

}  // namespace

Result<HfDirectoryPlan> plan_hf_directory(const Checkpoint& from, std::string_view dtype) {
  HEADRACE_ASSIGN(const RecognizedModel model, recognize(from));
  std::optional<Error> error;
  // Several may share GGUF's name: Llama, Mistral, Mixtral.
  for (const Architecture* architecture : architectures()) {
    if (architecture->gguf_name != model.architecture->gguf_name ||
        architecture->write_hf == nullptr) {
      continue;
    }
    auto plan = plan_as(*architecture, model.config, from, dtype);
    if (plan.ok()) return plan;
    if (!error) error = std::move(plan).error();
  }
  if (error) return *error;
  return cannot_say("models of the architecture " + quote_name(model.architecture->gguf_name) +
                        " cannot be written as a Hugging Face directory",
                    from.path());
}

}  // namespace headrace
