// See inspect.h.
#include "app/inspect.h"

#include <algorithm>
#include <array>
#include <utility>

#include "app/memory_plan.h"
#include "app/model_files.h"
#include "app/weight_needs.h"
#include "base/os/system_limits.h"
#include "model/registry.h"
#include "text/tokenizer.h"

namespace headrace {
namespace {

std::vector<FormatShare> shares_of(const Checkpoint& checkpoint) {
  std::array<FormatShare, 256> by_format{};
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    FormatShare& share = by_format.at(static_cast<size_t>(tensor.format));
    share.format = tensor.format;
    ++share.num_tensors;
    share.num_parameters += tensor.num_elements();
    share.bytes += tensor.num_bytes();
  }
  std::vector<FormatShare> shares;
  for (const FormatShare& share : by_format) {
    if (share.num_tensors > 0) shares.push_back(share);
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return shares;
}

/// Of experts that a router chooses: "blk.0.ffn_up_exps.weight", or "blk.0.ffn_up.7.weight".
int64_t expert_parameters(const Checkpoint& checkpoint) {
  int64_t sum = 0;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const std::string_view name = tensor.name;
    const size_t at = name.find(".ffn_");
    if (at == std::string_view::npos) continue;
    const size_t end = name.find('.', at + 1);
    if (end == std::string_view::npos) continue;
    const bool is_stacked = name.substr(at, end - at).ends_with("_exps");
    const bool is_one = end + 1 < name.size() && name[end + 1] >= '0' && name[end + 1] <= '9';
    if (is_stacked || is_one) sum += tensor.num_elements();
  }
  return sum;
}

std::string string_or_empty(const Metadata& metadata, std::string_view key) {
  const auto value = metadata.get_string(key);
  return value.ok() && value->has_value() ? std::string(**value) : std::string();
}

InspectedMemory plan(const Inspection& seen, const ModelConfig& config,
                     const InspectOptions& options) {
  MemoryNeeds needs = memory_needs(config, seen.vocab_size);
  needs.kv_type = options.kv_type;
  set_weight_needs(
      needs, *seen.checkpoint,
      {.pack = options.pack, .quantize = options.quantize, .num_threads = usable_processors()});
  InspectedMemory memory;
  memory.weight_bytes = needs.weight_bytes;
  memory.file_bytes = needs.file_bytes;
  memory.scratch_bytes = needs.scratch_bytes;
  memory.kv_type = options.kv_type;
  memory.kv_bytes_per_token = kv_bytes_per_token(needs);
  memory.context = options.context > 0 ? options.context : config.context_length;
  memory.kv_bytes = kv_bytes(needs, memory.context);
  memory.activation_bytes = activation_bytes(needs);
  memory.limit_bytes = memory_available_bytes();
  memory.largest_context = largest_context(needs, memory.limit_bytes, config.context_length);
  return memory;
}

}  // namespace

Result<Inspection> inspect_model(const std::string& path, const InspectOptions& options) {
  Inspection seen;
  HEADRACE_ASSIGN(seen.checkpoint, open_model_files(path));
  const Metadata& metadata = seen.checkpoint->metadata();
  seen.architecture = string_or_empty(metadata, "general.architecture");
  seen.name = string_or_empty(metadata, "general.name");
  const auto chat_template = chat_template_of(*seen.checkpoint);
  seen.has_chat_template = chat_template.ok() && !chat_template->value_or("").empty();
  seen.formats = shares_of(*seen.checkpoint);
  for (const FormatShare& share : seen.formats) seen.num_parameters += share.num_parameters;
  seen.num_active_parameters = seen.num_parameters;
  if (const auto tokens = metadata.get_strings("tokenizer.ggml.tokens");
      tokens.ok() && tokens->has_value()) {
    seen.vocab_size = static_cast<int64_t>((*tokens)->size());
  }
  if (seen.checkpoint->is_directory()) seen.vocab_size = embedding_rows(*seen.checkpoint);
  if (options.with_tokenizer && seen.vocab_size > 0) {
    const auto tokenizer = tokenizer_of(*seen.checkpoint, TokenizerOptions{});
    if (tokenizer.ok()) {
      seen.tokenizer = (*tokenizer)->description();
      seen.tokenizer_digest = (*tokenizer)->fingerprint().digest;
    } else {
      seen.warnings.push_back("the tokenizer cannot be used: " + tokenizer.error().to_string());
    }
  }
  const auto recognized = recognize(*seen.checkpoint);
  if (!recognized.ok()) {
    seen.warnings.push_back("the model cannot be run: " + recognized.error().to_string());
    return seen;
  }
  seen.context_length = recognized->config.context_length;
  if (recognized->config.moe) {
    const MoeConfig& moe = *recognized->config.moe;
    seen.num_active_parameters -=
        expert_parameters(*seen.checkpoint) / moe.num_experts * (moe.num_experts - moe.num_active);
  }
  if (seen.checkpoint->tensors().empty()) {
    seen.warnings.push_back("the model cannot be run: the file holds a vocabulary and no weights");
    return seen;
  }
  seen.is_supported = true;
  seen.memory = plan(seen, recognized->config, options);
  if (seen.memory->largest_context == 0) {
    seen.warnings.push_back("the model does not fit the memory that this process may use");
  }
  return seen;
}

}  // namespace headrace
