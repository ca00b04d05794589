// Quantised Hugging Face checkpoints, through the whole path: they give the logits of the same
// model written with the weights that their integers mean.
#include "model/hf/hf_quantized.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "model/hf/hf_checkpoint.h"
#include "model/model.h"
#include "tensor/half.h"
#include "tests/model_logits.h"
#include "tests/safetensors_builder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::SafetensorsBuilder;

constexpr int64_t kQuantWidth = 64;
constexpr int64_t kQuantHidden = 96;
constexpr int64_t kQuantVocab = 40;
constexpr int64_t kGroup = 32;

json quantized_llama_json(const json& quantization) {
  json config = {{"architectures", {"LlamaForCausalLM"}},
                 {"hidden_size", kQuantWidth},
                 {"intermediate_size", kQuantHidden},
                 {"num_hidden_layers", 1},
                 {"num_attention_heads", 2},
                 {"num_key_value_heads", 1},
                 {"max_position_embeddings", 64},
                 {"vocab_size", kQuantVocab},
                 {"hidden_act", "silu"},
                 {"rms_norm_eps", 1e-5},
                 {"tie_word_embeddings", false},
                 {"rope_theta", 10000.0}};
  if (!quantization.is_null()) config["quantization_config"] = quantization;
  return config;
}

/// Integers with scales and zero points, and the weights that they mean.
struct Levels {
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t group = kGroup;
  std::vector<int> q;             ///< [rows][cols]
  std::vector<int> zeros;         ///< [rows][groups]
  std::vector<float> scales;      ///< [rows][groups]
  std::vector<int32_t> group_of;  ///< [cols]

  int64_t num_groups() const { return (cols + group - 1) / group; }
  size_t at(int64_t row, int64_t g) const { return static_cast<size_t>(row * num_groups() + g); }
  int level(int64_t row, int64_t col) const { return q[static_cast<size_t>(row * cols + col)]; }

  std::vector<float> weights() const {
    std::vector<float> out(q.size());
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) {
        const size_t g = at(row, group_of[static_cast<size_t>(col)]);
        out[static_cast<size_t>(row * cols + col)] =
            scales[g] * static_cast<float>(level(row, col) - zeros[g]);
      }
    }
    return out;
  }
};

struct Range {
  int least = 0;
  int most = 15;
  int zero_least = 8;
  int zero_most = 8;
  int64_t group = kGroup;
};

class Draw {
 public:
  int between(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

  Levels levels(int64_t rows, int64_t cols, const Range& range) {
    Levels out;
    out.rows = rows;
    out.cols = cols;
    out.group = range.group < 0 ? cols : range.group;
    const float unit = 2 / std::sqrt(static_cast<float>(cols)) / static_cast<float>(range.most);
    for (int64_t i = 0; i < rows * cols; ++i) out.q.push_back(between(range.least, range.most));
    for (int64_t i = 0; i < rows * out.num_groups(); ++i) {
      out.zeros.push_back(between(range.zero_least, range.zero_most));
      out.scales.push_back(f16_to_f32(f32_to_f16(unit * (1 + 0.01F * static_cast<float>(i % 7)))));
    }
    for (int64_t col = 0; col < cols; ++col) {
      out.group_of.push_back(static_cast<int32_t>(col / out.group));
    }
    return out;
  }

  std::vector<float> floats(int64_t count, float mean, float spread) {
    std::normal_distribution<float> normal(mean, spread);
    std::vector<float> out(static_cast<size_t>(count));
    for (float& value : out) value = normal(random_);
    return out;
  }

 private:
  std::mt19937 random_{5};
};

/// Bytes of numbers.
template <class T>
std::string raw(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::string raw_halves(const std::vector<float>& values) {
  std::vector<uint16_t> halves;
  for (const float value : values) halves.push_back(f32_to_f16(value));
  return raw(halves);
}

void or_bits(uint32_t& word, int64_t place, int bits, int value) {
  word |= (static_cast<uint32_t>(value) & ((1U << bits) - 1)) << (place * bits);
}

/// [rows][groups] as [groups][rows].
template <class T>
std::vector<T> by_group(const Levels& levels, const std::vector<T>& values) {
  std::vector<T> out;
  for (int64_t g = 0; g < levels.num_groups(); ++g) {
    for (int64_t row = 0; row < levels.rows; ++row) out.push_back(values[levels.at(row, g)]);
  }
  return out;
}

void add_gptq(SafetensorsBuilder& file, const std::string& name, const Levels& levels, int bits,
              int less) {
  const int64_t in_word = 32 / bits;
  const int64_t zero_words = levels.rows / in_word;
  std::vector<uint32_t> words(static_cast<size_t>(levels.cols / in_word * levels.rows));
  std::vector<uint32_t> zeros(static_cast<size_t>(levels.num_groups() * zero_words));
  for (int64_t row = 0; row < levels.rows; ++row) {
    for (int64_t col = 0; col < levels.cols; ++col) {
      or_bits(words[static_cast<size_t>(col / in_word * levels.rows + row)], col % in_word, bits,
              levels.level(row, col));
    }
    for (int64_t g = 0; g < levels.num_groups(); ++g) {
      or_bits(zeros[static_cast<size_t>(g * zero_words + row / in_word)], row % in_word, bits,
              levels.zeros[levels.at(row, g)] - less);
    }
  }
  file.add(name + ".qweight", "I32", {levels.cols / in_word, levels.rows}, raw(words));
  file.add(name + ".qzeros", "I32", {levels.num_groups(), zero_words}, raw(zeros));
  file.add(name + ".scales", "F16", {levels.num_groups(), levels.rows},
           raw_halves(by_group(levels, levels.scales)));
  file.add(name + ".g_idx", "I32", {levels.cols}, raw(levels.group_of));
}

void add_awq(SafetensorsBuilder& file, const std::string& name, const Levels& levels) {
  constexpr int64_t kPlaces[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  const int64_t row_words = levels.rows / 8;
  std::vector<uint32_t> words(static_cast<size_t>(levels.cols * row_words));
  std::vector<uint32_t> zeros(static_cast<size_t>(levels.num_groups() * row_words));
  for (int64_t row = 0; row < levels.rows; ++row) {
    const int64_t place = kPlaces[row % 8];
    for (int64_t col = 0; col < levels.cols; ++col) {
      or_bits(words[static_cast<size_t>(col * row_words + row / 8)], place, 4,
              levels.level(row, col));
    }
    for (int64_t g = 0; g < levels.num_groups(); ++g) {
      or_bits(zeros[static_cast<size_t>(g * row_words + row / 8)], place, 4,
              levels.zeros[levels.at(row, g)]);
    }
  }
  file.add(name + ".qweight", "I32", {levels.cols, row_words}, raw(words));
  file.add(name + ".qzeros", "I32", {levels.num_groups(), row_words}, raw(zeros));
  file.add(name + ".scales", "F16", {levels.num_groups(), levels.rows},
           raw_halves(by_group(levels, levels.scales)));
}

/// Levels and zero points have half of the range taken off already.
void add_pack(SafetensorsBuilder& file, const std::string& name, const Levels& levels, int bits,
              bool has_zeros) {
  const int64_t in_word = 32 / bits;
  const int half = 1 << (bits - 1);
  const int64_t row_words = (levels.cols + in_word - 1) / in_word;
  const int64_t groups = levels.num_groups();
  std::vector<uint32_t> words(static_cast<size_t>(levels.rows * row_words));
  std::vector<uint32_t> zeros(static_cast<size_t>(levels.rows / in_word * groups));
  for (int64_t row = 0; row < levels.rows; ++row) {
    for (int64_t col = 0; col < levels.cols; ++col) {
      or_bits(words[static_cast<size_t>(row * row_words + col / in_word)], col % in_word, bits,
              levels.level(row, col) + half);
    }
    for (int64_t g = 0; g < groups; ++g) {
      or_bits(zeros[static_cast<size_t>(row / in_word * groups + g)], row % in_word, bits,
              levels.zeros[levels.at(row, g)] + half);
    }
  }
  file.add(name + ".weight_packed", "I32", {levels.rows, row_words}, raw(words));
  file.add(name + ".weight_scale", "F16", {levels.rows, groups}, raw_halves(levels.scales));
  file.add(name + ".weight_shape", "I64", {2}, raw(std::vector<int64_t>{levels.rows, levels.cols}));
  if (has_zeros) {
    file.add(name + ".weight_zero_point", "I32", {levels.rows / in_word, groups}, raw(zeros));
  }
}

void add_int8(SafetensorsBuilder& file, const std::string& name, const Levels& levels) {
  std::vector<int8_t> bytes;
  for (const int q : levels.q) bytes.push_back(static_cast<int8_t>(q));
  file.add(name + ".weight", "I8", {levels.rows, levels.cols}, raw(bytes));
  file.add(name + ".weight_scale", "F16", {levels.rows, 1}, raw_halves(levels.scales));
  file.add(name + ".input_scale", "F32", {1}, raw(std::vector<float>{1}));
}

/// E4M3 numbers below 2 in magnitude, and what they mean times scales of blocks. `block` 0: one
/// scale; -1: one a row.
std::vector<float> add_fp8(SafetensorsBuilder& file, const std::string& name, int64_t rows,
                           int64_t cols, int64_t block, Draw& draw) {
  const int64_t block_rows = block > 0 ? block : block < 0 ? 1 : rows;
  const int64_t block_cols = block > 0 ? block : cols;
  const int64_t down = (rows + block_rows - 1) / block_rows;
  const int64_t across = (cols + block_cols - 1) / block_cols;
  std::vector<float> scales;
  for (int64_t i = 0; i < down * across; ++i) {
    scales.push_back(std::ldexp(1.0F, -5 - static_cast<int>(i % 2)));
  }
  std::string bytes;
  std::vector<float> weights;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      const int exponent = draw.between(0, 7);
      const int mantissa = draw.between(0, 7);
      const bool is_negative = draw.between(0, 1) == 1;
      bytes += static_cast<char>((is_negative ? 0x80 : 0) | exponent << 3 | mantissa);
      const float magnitude = exponent == 0
                                  ? std::ldexp(static_cast<float>(mantissa), -9)
                                  : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
      const float scale = scales[static_cast<size_t>(row / block_rows * across + col / block_cols)];
      weights.push_back((is_negative ? -magnitude : magnitude) * scale);
    }
  }
  file.add(name + ".weight", "F8_E4M3", {rows, cols}, bytes);
  const std::vector<int64_t> shape =
      block == 0 ? std::vector<int64_t>{} : std::vector{down, across};
  file.add(name + (block > 0 ? ".weight_scale_inv" : ".weight_scale"), "F32", shape, raw(scales));
  file.add(name + ".kv_scale", "F32", {1}, raw(std::vector<float>{1}));
  return weights;
}

/// A way to quantise: writes a module, and says what its weights are.
struct Kind {
  std::string name;
  json config;
  Format format;
  std::function<std::vector<float>(SafetensorsBuilder&, const std::string&, int64_t rows,
                                   int64_t cols, Draw&)>
      add;
};

Kind gptq_kind(std::string name, Format format, const Range& range, json config, int bits,
               bool is_shuffled = false) {
  const std::string form = config.value("checkpoint_format", config.value("format", "gptq"));
  const int less = form.ends_with('2') ? 0 : 1;
  config["quant_method"] = "gptq";
  config["bits"] = bits;
  config["group_size"] = range.group;
  return {std::move(name), std::move(config), format,
          [=](auto& file, const std::string& module, int64_t rows, int64_t cols, Draw& draw) {
            Levels levels = draw.levels(rows, cols, range);
            if (is_shuffled) std::ranges::reverse(levels.group_of);
            add_gptq(file, module, levels, bits, less);
            return levels.weights();
          }};
}

json compressed_config(const std::string& format, const json& weights) {
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"ignore", {"lm_head"}},
          {"config_groups",
           {{"group_0",
             {{"targets", {"Linear"}}, {"weights", weights}, {"input_activations", nullptr}}}}}};
}

Kind pack_kind(std::string name, Format format, const Range& range, int bits, bool has_zeros) {
  return {std::move(name),
          compressed_config("pack-quantized",
                            {{"num_bits", bits}, {"type", "int"}, {"group_size", kGroup}}),
          format,
          [=](auto& file, const std::string& module, int64_t rows, int64_t cols, Draw& draw) {
            const Levels levels = draw.levels(rows, cols, range);
            add_pack(file, module, levels, bits, has_zeros);
            return levels.weights();
          }};
}

Kind fp8_kind(std::string name, json config, int64_t block) {
  return {std::move(name), std::move(config), Format::f16,
          [=](auto& file, const std::string& module, int64_t rows, int64_t cols, Draw& draw) {
            return add_fp8(file, module, rows, cols, block, draw);
          }};
}

std::vector<Kind> all_kinds() {
  const Range middle;
  const Range any = {.zero_least = 1, .zero_most = 15};
  std::vector<Kind> kinds = {
      gptq_kind("gptq", Format::q4_0, middle, {{"sym", true}}, 4),
      gptq_kind("gptq_v2", Format::q4_0, middle, {{"checkpoint_format", "gptq_v2"}}, 4),
      gptq_kind("gptq_v2_capitals", Format::q4_0, middle, {{"checkpoint_format", "GPTQ_V2"}}, 4),
      gptq_kind("gptq_v2_format", Format::q4_0, middle, {{"format", "gptq_v2"}}, 4),
      gptq_kind("gptq_zeros", Format::q5_0, any, {{"sym", false}}, 4),
      gptq_kind("gptq_order", Format::f32, middle, {{"desc_act", true}}, 4, true),
      gptq_kind("gptq_whole", Format::q4_0, {.group = -1}, json::object(), 4),
      gptq_kind("gptq_2", Format::q4_0, {.most = 3, .zero_least = 2, .zero_most = 2},
                json::object(), 2),
      gptq_kind("gptq_8", Format::q8_0, {.most = 255, .zero_least = 128, .zero_most = 128},
                {{"dynamic", {{"-:.*lm_head.*", json::object()}}}}, 8),
  };
  kinds.push_back(
      {"awq",
       {{"quant_method", "awq"}, {"bits", 4}, {"group_size", kGroup}, {"version", "GEMM"}},
       Format::q5_0,
       [=](auto& file, const std::string& module, int64_t rows, int64_t cols, Draw& draw) {
         const Levels levels = draw.levels(rows, cols, any);
         add_awq(file, module, levels);
         return levels.weights();
       }});
  kinds.push_back(pack_kind("pack_4", Format::q4_0,
                            {.least = -8, .most = 7, .zero_least = 0, .zero_most = 0}, 4, false));
  kinds.push_back(pack_kind("pack_4_zeros", Format::q5_0,
                            {.least = -8, .most = 7, .zero_least = -8, .zero_most = 7}, 4, true));
  kinds.push_back(pack_kind("pack_8", Format::q8_0,
                            {.least = -128, .most = 127, .zero_least = 0, .zero_most = 0}, 8,
                            false));
  kinds.push_back(
      {"w8a8",
       compressed_config("int-quantized",
                         {{"num_bits", 8}, {"type", "int"}, {"strategy", "channel"}}),
       Format::q8_0,
       [=](auto& file, const std::string& module, int64_t rows, int64_t cols, Draw& draw) {
         const Levels levels = draw.levels(
             rows, cols,
             {.least = -127, .most = 127, .zero_least = 0, .zero_most = 0, .group = -1});
         add_int8(file, module, levels);
         return levels.weights();
       }});
  const json floats = {{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}};
  kinds.push_back(fp8_kind("float_tensor", compressed_config("float-quantized", floats), 0));
  kinds.push_back(fp8_kind("float_rows", compressed_config("float-quantized", floats), -1));
  kinds.push_back(
      fp8_kind("fp8_blocks",
               {{"quant_method", "fp8"}, {"weight_block_size", {48, 48}}, {"fmt", "e4m3"}}, 48));
  return kinds;
}

class HfQuantized : public testing::TestWithParam<Kind> {
 protected:
  HfQuantized() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~HfQuantized() override { fs::remove_all(folder_); }

  void write(const json& config, const SafetensorsBuilder& file) const {
    std::ofstream(folder_ / "config.json", std::ios::binary) << config.dump();
    std::ofstream(folder_ / "model.safetensors", std::ios::binary) << file.build();
  }

  /// Writes the model: quantised, or with the weights that this means. The head is never quantised.
  void write_model(const Kind& kind, bool is_quantized) const {
    Draw draw;
    SafetensorsBuilder file;
    const auto plain = [&](const std::string& name, std::vector<int64_t> shape, float mean,
                           float spread) {
      const int64_t count =
          std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
      file.add_f32(name + ".weight", shape, draw.floats(count, mean, spread));
    };
    const auto linear = [&](const std::string& name, int64_t rows, int64_t cols) {
      SafetensorsBuilder unused;
      const auto weights = kind.add(is_quantized ? file : unused, name, rows, cols, draw);
      if (!is_quantized) file.add_f32(name + ".weight", {rows, cols}, weights);
    };
    const std::string layer = "model.layers.0.";
    plain("model.embed_tokens", {kQuantVocab, kQuantWidth}, 0, 1);
    plain("model.norm", {kQuantWidth}, 1, 0.1F);
    plain("lm_head", {kQuantVocab, kQuantWidth}, 0, 0.2F);
    plain(layer + "input_layernorm", {kQuantWidth}, 1, 0.1F);
    plain(layer + "post_attention_layernorm", {kQuantWidth}, 1, 0.1F);
    linear(layer + "self_attn.q_proj", kQuantWidth, kQuantWidth);
    linear(layer + "self_attn.k_proj", kQuantWidth / 2, kQuantWidth);
    linear(layer + "self_attn.v_proj", kQuantWidth / 2, kQuantWidth);
    linear(layer + "self_attn.o_proj", kQuantWidth, kQuantWidth);
    linear(layer + "mlp.gate_proj", kQuantHidden, kQuantWidth);
    linear(layer + "mlp.up_proj", kQuantHidden, kQuantWidth);
    linear(layer + "mlp.down_proj", kQuantWidth, kQuantHidden);
    write(quantized_llama_json(is_quantized ? kind.config : json()), file);
  }

  Result<std::unique_ptr<Checkpoint>> open() const { return open_hf_checkpoint(folder_.string()); }

  std::vector<float> logits(bool pack) const {
    auto checkpoint = open();
    if (!checkpoint.ok()) throw std::runtime_error(checkpoint.error().to_string());
    const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
    LoadModelOptions options;
    options.pack = pack;
    auto model = load_model(**checkpoint, *backend, options);
    if (!model.ok()) throw std::runtime_error(model.error().to_string());
    const std::vector<TokenId> tokens = {3, 17, 5, 39, 0, 22, 22, 8};
    return test::model_logits(**model, tokens);
  }

  /// Of opening and loading.
  std::string error_text() const {
    auto checkpoint = open();
    if (!checkpoint.ok()) return checkpoint.error().to_string();
    const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
    const auto loaded = load_model(**checkpoint, *backend, {});
    return loaded.ok() ? "no error" : loaded.error().to_string();
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "hf_quantized_test";
};

TEST_P(HfQuantized, GivesTheLogitsOfItsWeights) {
  write_model(GetParam(), false);
  const auto expected = logits(true);
  write_model(GetParam(), true);
  EXPECT_EQ(logits(true), expected);
  EXPECT_EQ(logits(false), expected) << "not packed";
  const auto largest = std::ranges::max(expected, {}, [](float x) { return std::abs(x); });
  EXPECT_GT(std::abs(largest), 0.1F);

  const auto checkpoint = open();
  ASSERT_TRUE(checkpoint.ok());
  const CheckpointTensor* tensor = (*checkpoint)->find("blk.0.attn_q.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(format_traits(tensor->format).name, format_traits(GetParam().format).name);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{kQuantWidth, kQuantWidth}));
  EXPECT_GE(tensor->data.size(), kQuantWidth * kQuantWidth / 4) << "the weights, not the scales";
  EXPECT_EQ((*checkpoint)->find("output.weight")->format, Format::f32);
  const std::string method = GetParam().config["quant_method"];
  EXPECT_NE((*checkpoint)->format_name().find(method), std::string::npos);
  const auto read = (*checkpoint)->read(*tensor);
  const std::vector<std::byte> once(read->begin(), read->end());
  (*checkpoint)->release(*tensor);
  EXPECT_TRUE(std::ranges::equal(once, *(*checkpoint)->read(*tensor))) << "again once released";
}

INSTANTIATE_TEST_SUITE_P(All, HfQuantized, testing::ValuesIn(all_kinds()),
                         [](const auto& one) { return one.param.name; });

class HfQuantizedFaults : public HfQuantized {
 protected:
  static Kind kind_named(const std::string& name) {
    const auto kinds = all_kinds();
    return *std::ranges::find(kinds, name, &Kind::name);
  }
  void expect_error(const std::string& name, const json& changes, const std::string& part) const {
    Kind kind = kind_named(name);
    kind.config.merge_patch(changes);
    write_model(kind, true);
    EXPECT_NE(error_text().find(part), std::string::npos) << changes << ": " << error_text();
    EXPECT_EQ(error_text().find('\n'), std::string::npos);
  }
};

TEST_F(HfQuantizedFaults, ConfigsThatAreNotBuiltIn) {
  const std::string place = "config.json: quantization_config.";
  expect_error("gptq", {{"quant_method", "bitsandbytes"}}, "'bitsandbytes' are not built in");
  expect_error("gptq", {{"quant_method", "hqq"}}, "reads gptq, awq, compressed-tensors and fp8");
  expect_error("gptq", {{"quant_method", nullptr}}, "an unnamed method");
  expect_error("gptq", {{"bits", 3}},
               place + "bits: weights of 3 bits; this build reads those of 2");
  expect_error("gptq", {{"bits", nullptr}}, place + "bits: the key is missing");
  expect_error("gptq", {{"bits", "four"}}, place + "bits: expected an integer");
  expect_error("gptq", {{"group_size", 0}}, place + "group_size: expected -1 or a number above 0");
  expect_error("gptq", {{"checkpoint_format", "marlin"}}, "found 'marlin'");
  expect_error("gptq", {{"format", "marlin"}}, "found 'marlin'");
  expect_error("gptq", {{"is_marlin_format", true}}, place + "is_marlin_format");
  expect_error("gptq", {{"dynamic", {{"+:.*down.*", {{"bits", 8}}}}}}, place + "dynamic");
  expect_error("awq", {{"version", "gemv"}}, "expected 'gemm', found 'gemv'");
  expect_error("awq", {{"bits", 8}}, place + "bits");
  expect_error("awq", {{"version", nullptr}, {"format", "gemv_fast"}}, place + "format");
  expect_error("awq", {{"backend", "llm-awq"}}, place + "backend");
  expect_error("awq", {{"q_group_size", 0}}, place + "q_group_size: expected -1 or a number");
  expect_error("pack_4", {{"format", "marlin-24"}}, place + "format");
  expect_error("pack_4", {{"sparsity_config", {{"format", "sparse-24-bitmask"}}}},
               place + "sparsity_config.format");
  expect_error("pack_4", {{"transform_config", {{"config_groups", {{"u", 1}}}}}},
               place + "transform_config");
  expect_error("pack_4", {{"config_groups", {{"group_0", {{"weights", {{"num_bits", 6}}}}}}}},
               place + "config_groups.group_0.weights.num_bits");
  expect_error("fp8_blocks", {{"weight_block_size", {0, 128}}}, place + "weight_block_size");
}

TEST_F(HfQuantizedFaults, AConfigThatSaysNothing) {
  for (const char* name : {"gptq", "awq", "pack_4", "fp8_blocks"}) {
    Kind kind = kind_named(name);
    kind.config = json();
    write_model(kind, true);
    const std::string error = error_text();
    EXPECT_NE(error.find("config.json has no `quantization_config`"), std::string::npos) << error;
    EXPECT_NE(error.find("quantize_config.json"), std::string::npos) << error;
  }
}

TEST_F(HfQuantizedFaults, WeightsThatAreNotAsTheConfigSays) {
  expect_error("gptq", {{"group_size", 64}}, "tensor 'model.layers.0.mlp.down_proj.scales'");
  expect_error("gptq", {{"bits", 8}}, "'model.layers.0.mlp.down_proj.");
  expect_error("awq", {{"quant_method", "gptq"}}, "'model.layers.0.mlp.down_proj.");
  expect_error("awq", {{"quant_method", "compressed-tensors"}}, "is no part of a weight as");
  expect_error("pack_4", {{"quant_method", "gptq"}, {"bits", 4}, {"format", nullptr}},
               "is no part of a weight as");
  expect_error("fp8_blocks", {{"weight_block_size", {32, 48}}},
               "expected a scale a block of 32 x 48");
}

TEST_F(HfQuantizedFaults, APartThatIsMissing) {
  for (const std::string left_out : {"qweight", "scales", "qzeros"}) {
    SafetensorsBuilder file;
    for (const std::string part : {"qweight", "scales", "qzeros"}) {
      if (part == left_out) continue;
      const bool is_half = part == "scales";
      const std::vector<int64_t> shape = part == "qweight" ? std::vector<int64_t>{8, 8}
                                         : is_half         ? std::vector<int64_t>{2, 8}
                                                           : std::vector<int64_t>{2, 1};
      const auto count = static_cast<size_t>(shape[0] * shape[1]);
      file.add("lm_head." + part, is_half ? "F16" : "I32", shape,
               std::string(count * (is_half ? 2 : 4), '\0'));
    }
    write(quantized_llama_json(kind_named("gptq").config), file);
    const std::string part =
        left_out == "qweight" ? "is no part of a weight" : left_out + " beside it";
    EXPECT_NE(error_text().find(part), std::string::npos) << left_out << ": " << error_text();
  }
}

TEST_F(HfQuantizedFaults, AFloatWithoutANumberIsNamedWhenItIsRead) {
  Draw draw;
  SafetensorsBuilder file;
  file.add("lm_head.weight", "F8_E4M3", {1, 2}, "\x7f\x01");
  file.add("lm_head.weight_scale", "BF16", {1}, std::string("\x80\x3f", 2));
  write(quantized_llama_json(kind_named("float_tensor").config), file);
  const auto checkpoint = open();
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().to_string();
  const auto read = (*checkpoint)->read(*(*checkpoint)->find("output.weight"));
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().to_string().find("'lm_head.weight'"), std::string::npos);
}

// Values and keys of quantization_config changed: a model that loads, or an error of one line.
TEST_F(HfQuantizedFaults, MutantsOfTheConfig) {
  std::mt19937 random(3);
  const std::vector<json> values = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    1,
                                    2,
                                    8,
                                    1e300,
                                    "x",
                                    "",
                                    "gptq_v2",
                                    "dense",
                                    json::array(),
                                    json::object(),
                                    4294967296,
                                    {48, 48},
                                    {{"bits", 2}}};
  const std::vector<std::string> keys = {"quant_method",
                                         "bits",
                                         "group_size",
                                         "version",
                                         "format",
                                         "checkpoint_format",
                                         "weight_block_size",
                                         "dynamic",
                                         "config_groups",
                                         "sparsity_config",
                                         "transform_config"};
  const std::vector<std::string> methods = {"gptq", "awq", "compressed-tensors", "fp8"};
  const auto kinds = all_kinds();
  size_t num_refused = 0;
  size_t num_done = 0;
  for (const Kind& kind : kinds) {
    write_model(kind, true);
    for (int i = 0; i < 60; ++i) {
      json mutant = quantized_llama_json(kind.config);
      json* at = &mutant["quantization_config"];
      for (size_t edits = random() % 3 + 1; edits > 0; --edits) {
        if (random() % 8 == 0) (*at)["quant_method"] = methods[random() % methods.size()];
        json* place = at;
        while (place->is_object() && !place->empty() && random() % 3 != 0) {
          auto member = place->begin();
          std::advance(member, static_cast<int64_t>(random() % place->size()));
          place = &*member;
        }
        if (random() % 2 == 0 && at->is_object()) place = &(*at)[keys[random() % keys.size()]];
        if (place != at) *place = values[random() % values.size()];
      }
      std::ofstream(folder_ / "config.json", std::ios::binary) << mutant.dump();
      const std::string error = error_text();
      ++num_done;
      num_refused += error == "no error" ? 0 : 1;
      EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    }
  }
  EXPECT_GT(num_refused, num_done / 4);
  EXPECT_LT(num_refused, num_done);
}

}  // namespace
}  // namespace headrace
