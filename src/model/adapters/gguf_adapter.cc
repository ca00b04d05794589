// An adapter in a GGUF file. Source: llama.cpp's adapters, "general.type" "adapter",
// "adapter.type" "lora", "adapter.lora.alpha", and for each weight "<weight>.lora_a" and ".lora_b".
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "checkpoint/quote_name.h"
#include "model/adapters/adapter_halves.h"
#include "model/adapters/open_adapter.h"

namespace headrace {
namespace {

Result<void> expect_text(const Metadata& metadata, std::string_view key, std::string_view wanted,
                         std::string_view hint) {
  HEADRACE_ASSIGN(const auto found, metadata.get_string(key));
  if (found && *found == wanted) return {};
  return Error{ErrorCode::unsupported,
               "expected " + quote_name(std::string(wanted)) + ", found " +
                   (found ? quote_name(std::string(*found)) : std::string("nothing")),
               std::string(key), std::string(hint)};
}

Result<void> check_kind(const Metadata& metadata, std::string_view architecture) {
  HEADRACE_TRY(expect_text(metadata, "general.type", "adapter", "this file is no adapter"));
  HEADRACE_TRY(expect_text(metadata, "adapter.type", "lora", "only LoRA adapters are built in"));
  HEADRACE_ASSIGN(const auto found, metadata.get_string("general.architecture"));
  if (!found || *found == architecture) return {};
  return Error{ErrorCode::mismatch,
               "the adapter is of " + quote_name(std::string(*found)) + ", the model of " +
                   quote_name(std::string(architecture)),
               "general.architecture", "it was made for another model"};
}

constexpr HalfEndings kGgufEndings = {".weight.lora_a", ".weight.lora_b"};

std::optional<HalfName> parse_gguf_name(std::string_view name) {
  for (const bool is_a : {true, false}) {
    const std::string_view ending = is_a ? kGgufEndings.a : kGgufEndings.b;
    if (!name.ends_with(ending)) continue;
    name.remove_suffix(ending.size());
    return HalfName{std::string(name), is_a};
  }
  return std::nullopt;
}

}  // namespace

Result<Adapter> open_gguf_adapter(const std::string& path, std::string_view architecture) {
  HEADRACE_ASSIGN(std::unique_ptr<Checkpoint> opened, open_checkpoint(path));
  const std::shared_ptr<const Checkpoint> checkpoint = std::move(opened);
  const Metadata& metadata = checkpoint->metadata();
  HEADRACE_TRY(check_kind(metadata, architecture));
  HEADRACE_ASSIGN(const auto found_alpha, metadata.get_float("adapter.lora.alpha"));
  const double alpha = found_alpha.value_or(0);
  if (!std::isfinite(alpha)) {
    return Error{ErrorCode::corrupt_data, "expected a finite number", "adapter.lora.alpha", ""};
  }
  HEADRACE_ASSIGN(const auto base, metadata.get_string("general.base_model.0.name"));

  Adapter adapter;
  adapter.base_model = base.value_or("");
  adapter.architecture = architecture;
  HEADRACE_ASSIGN(const auto weights,
                  pair_halves(checkpoint->tensors(), kGgufEndings, parse_gguf_name));
  for (const auto& [weight, halves] : weights) {
    AdapterPair pair{.weight = weight, .a = *halves.a, .b = *halves.b};
    // Without alpha what is added is added as it is.
    HEADRACE_TRY(check_pair(pair));
    if (alpha != 0) {
      HEADRACE_ASSIGN(pair.scale, scale_of(alpha, static_cast<double>(pair.rank())));
    }
    HEADRACE_TRY(add_pair(adapter, std::move(pair)));
  }
  HEADRACE_TRY(checkpoint->check_whole());
  adapter.files = checkpoint;
  return adapter;
}

}  // namespace headrace
