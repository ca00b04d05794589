// Sources: transformers' GPTQConfig, AwqConfig, FineGrainedFP8Config and FbgemmFp8Config;
// compressed-tensors' QuantizationConfig.
#include "model/hf/hf_quantization.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

constexpr const char* kQuantHint =
    "this build reads gptq, awq, compressed-tensors and fp8; others: use the model's own weights, "
    "or a GGUF file";

std::string lowered(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

/// The text in small letters; empty where it is absent. A fault unless it is one of these.
std::string expect_one_of(const HfConfig& config, std::string_view key,
                          std::initializer_list<std::string_view> known) {
  const auto found = config.text(key);
  if (!found) return "";
  const std::string lower = lowered(*found);
  std::string names;
  for (const std::string_view one : known) {
    if (lower == one) return lower;
    names += (names.empty() ? "'" : " or '") + std::string(one) + "'";
  }
  config.fail(key,
              "expected " + names + ", found " + quote_name(*found) + "; others are not built in",
              ErrorCode::unsupported);
  return "";
}

int read_bits(const HfConfig& config, std::string_view key, std::initializer_list<int64_t> known) {
  const auto found = config.integer(key);
  if (!found) {
    if (!config.has(key)) config.fail(key, "the key is missing");
    return 4;
  }
  if (std::ranges::find(known, *found) != known.end()) return static_cast<int>(*found);
  std::string names;
  for (const int64_t one : known) names += (names.empty() ? "" : ", ") + std::to_string(one);
  config.fail(key,
              "weights of " + std::to_string(*found) + " bits; this build reads those of " + names,
              ErrorCode::unsupported);
  return 4;
}

int64_t read_group_size(const HfConfig& config, std::string_view key = "group_size") {
  const auto found = config.integer(key);
  if (!found) return -1;
  if (*found == -1 || *found > 0) return *found;
  config.fail(key, "expected -1 or a number above 0, found " + std::to_string(*found));
  return -1;
}

std::string groups_text(int64_t size) {
  return size > 0 ? ", groups of " + std::to_string(size) : std::string();
}

void read_gptq(const HfConfig& config, HfQuantization& out) {
  out.bits = read_bits(config, "bits", {2, 4, 8});
  out.group_size = read_group_size(config);
  // `format` is the newer name.
  const char* key = config.has("checkpoint_format") ? "checkpoint_format" : "format";
  if (expect_one_of(config, key, {"gptq", "gptq_v2"}) == "gptq_v2") {
    out.zeros_form = GptqZeros::as_is;
  }
  expect_one_of(config, "pack_dtype", {"int32"});
  if (config.boolean("is_marlin_format").value_or(false)) {
    config.fail("is_marlin_format", "weights in Marlin's own order are not built in",
                ErrorCode::unsupported);
  }
  if (config.is_object("dynamic")) {
    for (const std::string& rule : config.object("dynamic").keys()) {
      if (rule.starts_with("-:")) continue;  // not quantised
      config.fail("dynamic", "modules with bits of their own are not built in",
                  ErrorCode::unsupported);
    }
  }
  out.name = "gptq, " + std::to_string(out.bits) + " bits" + groups_text(out.group_size);
}

void read_awq(const HfConfig& config, HfQuantization& out) {
  out.bits = read_bits(config, config.has("w_bit") ? "w_bit" : "bits", {4});
  out.group_size =
      read_group_size(config, config.has("q_group_size") ? "q_group_size" : "group_size");
  for (const char* key : {"version", "format", "checkpoint_format"}) {
    expect_one_of(config, key, {"gemm"});
  }
  if (lowered(config.text("backend").value_or("")) == "llm-awq") {
    config.fail("backend", "weights in the order of 'llm-awq' are not built in",
                ErrorCode::unsupported);
  }
  out.name = "awq, 4 bits" + groups_text(out.group_size);
}

/// Sets the sizes of blocks from `key`, [rows, columns].
void read_block(const HfConfig& config, std::string_view key, HfQuantization& out) {
  const std::vector<int64_t> block = config.integers(key);
  if (block.empty()) return;
  if (block.size() != 2 || block[0] < 1 || block[1] < 1) {
    return config.fail(key, "expected two numbers above 0");
  }
  const bool is_other =
      out.block_rows > 0 && (out.block_rows != block[0] || out.block_cols != block[1]);
  if (is_other) {
    return config.fail(key, "blocks of several sizes are not built in", ErrorCode::unsupported);
  }
  out.block_rows = block[0];
  out.block_cols = block[1];
}

void read_fp8(const HfConfig& config, HfQuantization& out) {
  read_block(config, "weight_block_size", out);
  expect_one_of(config, "fmt", {"e4m3"});
  out.name = "fp8";
  if (out.block_rows > 0) {
    out.name +=
        ", blocks of " + std::to_string(out.block_rows) + " x " + std::to_string(out.block_cols);
  }
}

void expect_compressed_format(const HfConfig& config) {
  expect_one_of(config, "format",
                {"pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "dense",
                 "mixed-precision"});
}

/// One of `config_groups`: modules that are quantised alike.
void read_compressed_group(const HfConfig& group, HfQuantization& out, bool is_first) {
  expect_compressed_format(group);
  if (!group.has("weights")) return;
  const HfConfig weights = group.object("weights");
  expect_one_of(weights, "type", {"int", "float"});
  const bool is_float = weights.text("type").value_or("int") == "float";
  const int bits =
      is_float ? read_bits(weights, "num_bits", {8}) : read_bits(weights, "num_bits", {4, 8});
  const int64_t size = weights.has("group_size") ? read_group_size(weights) : -1;
  if (weights.text("strategy").value_or("") == "block") read_block(weights, "block_structure", out);
  // Where groups differ, the scales of each module show it.
  out.group_size = is_first || out.group_size == size ? size : -1;
  out.name += (is_first ? ", " : " and ") +
              (is_float ? std::string("8-bit floats") : std::to_string(bits) + " bits") +
              groups_text(size);
}

void read_compressed_tensors(const HfConfig& config, HfQuantization& out) {
  constexpr size_t kMostGroups = 64;
  out.name = "compressed-tensors";
  expect_compressed_format(config);
  const HfConfig groups = config.object("config_groups");
  const std::vector<std::string> names = groups.keys();
  if (names.size() > kMostGroups) {
    return config.fail("config_groups",
                       "expected at most " + std::to_string(kMostGroups) + " groups");
  }
  for (const std::string& name : names) {
    read_compressed_group(groups.object(name), out, name == names.front());
  }
  if (config.is_object("sparsity_config")) {
    expect_one_of(config.object("sparsity_config"), "format", {"dense"});
  }
  if (config.is_object("transform_config") &&
      !config.object("transform_config").object("config_groups").keys().empty()) {
    config.fail("transform_config", "weights that were rotated are not built in",
                ErrorCode::unsupported);
  }
}

struct KnownMethod {
  std::string_view name;
  HfQuantMethod method;
  void (*read)(const HfConfig& config, HfQuantization& out);
};

constexpr std::array kMethods = {
    KnownMethod{"gptq", HfQuantMethod::gptq, read_gptq},
    KnownMethod{"awq", HfQuantMethod::awq, read_awq},
    KnownMethod{"compressed-tensors", HfQuantMethod::compressed_tensors, read_compressed_tensors},
    KnownMethod{"fp8", HfQuantMethod::fp8, read_fp8},
    KnownMethod{"fbgemm_fp8", HfQuantMethod::fp8, read_fp8},
};

}  // namespace

Result<HfQuantization> read_hf_quantization(const HfConfig& config) {
  HfQuantization out;
  const char* key =
      config.is_object("quantization_config") ? "quantization_config" : "compression_config";
  if (!config.is_object(key)) return out;
  const HfConfig quantization = config.object(key);
  const std::string name = quantization.text("quant_method").value_or("");
  if (config.error()) return *config.error();
  for (const KnownMethod& known : kMethods) {
    if (known.name != name) continue;
    out.method = known.method;
    known.read(quantization, out);
    if (config.error()) return *config.error();
    return out;
  }
  return Error{ErrorCode::unsupported,
               "weights quantised by " + (name.empty() ? "an unnamed method" : quote_name(name)) +
                   " are not built in",
               config.place(key), kQuantHint};
}

}  // namespace headrace
