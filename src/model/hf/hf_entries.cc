// See hf_entries.h.
#include "model/hf/hf_entries.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "checkpoint/quote_name.h"
#include "model/hf/hf_names.h"

namespace headrace {
namespace {

/// Tensors that belong to what this engine does not run: the eyes of a model that also sees.
bool is_of_other_parts(std::string_view name) {
  if (name.starts_with("model.")) name.remove_prefix(6);
  for (const std::string_view part :
       {"vision_tower.", "vision_model.", "multi_modal_projector.", "visual.", "audio_tower."}) {
    if (name.starts_with(part)) return true;
  }
  return false;
}

QuantizedModule module_of(const HfDirectory& directory, const QuantIndices& parts) {
  QuantizedModule out{};
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i]) out[i] = &directory.tensors()[*parts[i]];
  }
  return out;
}

/// Gathers the tensors under their GGUF names.
class HfEntries {
 public:
  HfEntries(const HfDirectory& directory, const HfModel& model, const HfQuantization& quantization,
            bool is_wrapped)
      : directory_(directory),
        model_(model),
        quantization_(quantization),
        is_wrapped_(is_wrapped) {}

  Result<std::vector<HfEntry>> build() {
    const auto stored = directory_.tensors();
    for (uint32_t i = 0; i < stored.size(); ++i) HEADRACE_TRY(add(i));
    for (auto& [name, rows] : stacks_) HEADRACE_TRY(add_stack(name, rows));
    for (auto& [name, parts] : modules_) HEADRACE_TRY(add_module(name, parts));
    HEADRACE_TRY(check_head());
    return std::move(entries_);
  }

 private:
  /// A head of its own that the config promises.
  Result<void> check_head() const {
    const HfConfig& config = model_.config();
    const bool is_own = !config.boolean("tie_word_embeddings").value_or(true);
    const auto rules = model_.names();
    const auto rule = std::ranges::find(rules, "output", &HfName::gguf);
    if (!is_own || rule == rules.end() || placed_.contains("output.weight")) return {};
    return Error{ErrorCode::corrupt_data,
                 "says that the output head is not tied, but there is no tensor " +
                     quote_name(std::string(rule->hf) + ".weight"),
                 config.place("tie_word_embeddings"), "fetch the whole model"};
  }

  /// Older tools left what they did to a file of their own.
  static Result<void> expect_unquantised(const StoredTensor& stored, const QuantPlace& place) {
    // A weight of 8-bit floats may do without.
    if (place.part != QuantPart::qweight && place.part != QuantPart::weight_packed &&
        place.part != QuantPart::weight_scale) {
      return {};
    }
    return Error{ErrorCode::mismatch,
                 "is a part of a quantised weight, and config.json has no `quantization_config`",
                 "tensor " + quote_name(stored.name),
                 "add one with `quant_method`, and what quantize_config.json or quant_config.json "
                 "says where there is such a file"};
  }

  Error at_tensor(uint32_t index, std::string message) const {
    return Error{ErrorCode::corrupt_data, std::move(message),
                 "tensor " + quote_name(directory_.tensors()[index].name), ""};
  }

  Result<void> add(uint32_t index) {
    const StoredTensor& stored = directory_.tensors()[index];
    if (is_wrapped_ && is_of_other_parts(stored.name)) return {};
    if (const auto place = place_quant_part(stored)) {
      if (quantization_.method != HfQuantMethod::none) return add_part(index, *place);
      HEADRACE_TRY(expect_unquantised(stored, *place));
    }
    // Without a rule a tensor keeps its name: the loader says that nothing reads it.
    const HfPlace place =
        find_hf_place(model_.names(), stored.name).value_or(HfPlace{.gguf = stored.name});
    if (place.gguf.empty()) return {};
    if (is_tied_head(place)) return {};
    if (place.change == HfChange::stack) {
      if (stacks_[place.gguf].emplace(place.row, index).second) return {};
      return at_tensor(index, "is there twice, under different names");
    }
    if (place.change == HfChange::gate_and_up) return add_gate_and_up(index, place.gguf);
    HEADRACE_TRY(take_place(place.gguf, index));
    return add_entry(place.gguf, place.change, {index});
  }

  /// Both of the tensors that one holds; `up` is the name of the second.
  Result<void> add_gate_and_up(uint32_t index, const std::string& up) {
    constexpr std::string_view kUp = "ffn_up";
    std::string gate = up;
    gate.replace(gate.find(kUp), kUp.size(), "ffn_gate");
    HEADRACE_TRY(take_place(gate, index));
    HEADRACE_TRY(take_place(up, index));
    HEADRACE_TRY(add_entry(gate, HfChange::gate_and_up, {index}, ExpertHalf::gate));
    return add_entry(up, HfChange::gate_and_up, {index}, ExpertHalf::up);
  }

  bool is_tied_head(const HfPlace& place) const {
    return place.gguf == "output.weight" &&
           model_.config().boolean("tie_word_embeddings").value_or(false);
  }

  Result<void> take_place(const std::string& name, uint32_t index) {
    const auto [other, is_new] = placed_.emplace(name, index);
    if (is_new) return {};
    return at_tensor(
        index, "has the place of " + quote_name(directory_.tensors()[other->second].name) + " too");
  }

  /// A tensor of a quantised module.
  Result<void> add_part(uint32_t index, const QuantPlace& place) {
    if (place.part == QuantPart::unused) return {};
    auto& part = modules_[std::string(place.module)][static_cast<size_t>(place.part)];
    if (part) return at_tensor(index, "is there twice, under different names");
    part = index;
    return {};
  }

  Result<void> add_module(const std::string& name, const QuantIndices& parts) {
    const auto first = std::ranges::find_if(parts, [](const auto& one) { return one.has_value(); });
    const std::string weight = name + ".weight";
    const HfPlace place = find_hf_place(model_.names(), weight).value_or(HfPlace{.gguf = weight});
    if (place.gguf.empty() || is_tied_head(place)) return {};
    // What GPTQ and AWQ pack of a projection [in, out] is [out, in] already.
    const bool is_packed = parts[static_cast<size_t>(QuantPart::qweight)].has_value();
    const bool is_as_gguf =
        place.change == HfChange::none || (place.change == HfChange::transpose && is_packed);
    if (!is_as_gguf) {
      return Error{ErrorCode::unsupported, "quantised weights of this tensor are not built in",
                   "tensor " + quote_name(weight), ""};
    }
    HEADRACE_TRY(take_place(place.gguf, **first));
    HEADRACE_ASSIGN(const UnpackedPlan plan,
                    plan_quantized(quantization_, module_of(directory_, parts)));
    HfEntry& entry = entries_.emplace_back();
    entry.tensor.name = place.gguf;
    entry.tensor.data = largest_data(parts);
    entry.tensor.format = plan.format;
    entry.tensor.shape = {plan.rows, plan.cols};
    entry.tensor.is_made = true;
    entry.made.emplace().quantized = parts;
    return {};
  }

  /// The weights themselves: by them models are told from each other.
  std::span<const std::byte> largest_data(const QuantIndices& parts) const {
    std::span<const std::byte> out;
    for (const auto& part : parts) {
      if (!part) continue;
      const auto data = directory_.tensors()[*part].data;
      if (data.size() > out.size()) out = data;
    }
    return out;
  }

  Result<void> add_stack(const std::string& name, const std::map<int64_t, uint32_t>& rows) {
    std::vector<uint32_t> parts;
    for (const auto& [row, index] : rows) {
      if (row != static_cast<int64_t>(parts.size())) {
        return at_tensor(
            index, "expected number " + std::to_string(parts.size()) + " after those before it");
      }
      parts.push_back(index);
    }
    return add_entry(name, HfChange::stack, std::move(parts));
  }

  Result<void> add_entry(const std::string& name, HfChange change, std::vector<uint32_t> parts,
                         ExpertHalf half = ExpertHalf::gate) {
    const StoredTensor& first = directory_.tensors()[parts.front()];
    HfEntry& entry = entries_.emplace_back();
    entry.tensor.name = name;
    entry.tensor.data = first.data;
    if (lies_as_it_is(first, change)) {
      entry.tensor.format = *format_of(first.type);
      entry.tensor.shape = first.shape;
      return {};
    }
    std::vector<const StoredTensor*> stored;
    for (const uint32_t part : parts) stored.push_back(&directory_.tensors()[part]);
    const HfChangeContext context = {model_.config().integer("hidden_size").value_or(0), half};
    HEADRACE_ASSIGN(MadeShape made, made_shape(stored, change, context));
    entry.tensor.format = made.format;
    entry.tensor.shape = std::move(made.shape);
    entry.tensor.is_made = true;
    entry.made.emplace(HfMade{change, context, std::move(parts)});
    return {};
  }

  const HfDirectory& directory_;
  const HfModel& model_;
  const HfQuantization& quantization_;
  bool is_wrapped_;
  std::vector<HfEntry> entries_;
  std::map<std::string, uint32_t> placed_;
  std::map<std::string, std::map<int64_t, uint32_t>> stacks_;
  std::map<std::string, QuantIndices> modules_;
};

HfEntry extra_entry(const HfExtraTensor& extra) {
  HfEntry entry;
  entry.tensor.name = extra.name;
  entry.tensor.shape = {static_cast<int64_t>(extra.values.size())};
  entry.tensor.is_made = true;
  const auto bytes = std::as_bytes(std::span(extra.values));
  entry.made.emplace().bytes.assign(bytes.begin(), bytes.end());
  return entry;
}

}  // namespace

Result<std::vector<HfEntry>> place_hf_tensors(const HfDirectory& directory, HfModel& model,
                                              const HfQuantization& quantization, bool is_wrapped) {
  HfEntries entries(directory, model, quantization, is_wrapped);
  HEADRACE_ASSIGN(std::vector<HfEntry> out, entries.build());
  for (const HfExtraTensor& extra : model.extra_tensors()) out.push_back(extra_entry(extra));
  return out;
}

Result<std::vector<std::byte>> make_hf_tensor(const HfDirectory& directory,
                                              const HfQuantization& quantization,
                                              const HfMade& made) {
  if (made.quantized) {
    HEADRACE_ASSIGN(UnpackedMatrix matrix,
                    unpack_quantized(quantization, module_of(directory, *made.quantized)));
    return std::move(matrix.bytes);
  }
  std::vector<const StoredTensor*> parts;
  for (const uint32_t part : made.parts) parts.push_back(&directory.tensors()[part]);
  return make_tensor(parts, made.change, made.context);
}

}  // namespace headrace
