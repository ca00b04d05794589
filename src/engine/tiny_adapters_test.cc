// Adapters: what a model with one computes is what the model computes whose weights were changed
// so; which row uses which; and what is refused.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "engine/engine_impl.h"
#include "engine/session/session.h"
#include "model/adapters/adapter_sizes.h"
#include "model/adapters/open_adapter.h"
#include "model/registry.h"
#include "tests/gguf_builder.h"
#include "tests/safetensors_builder.h"
#include "tests/tiny_engine.h"
#include "tests/tiny_models.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::TinyModel;

constexpr int64_t kRank = 3;

std::vector<float> random_values(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.3F);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) value = normal(random);
  return out;
}

/// What is added to one weight of a tiny model.
struct Change {
  std::string gguf;  ///< without ".weight"
  std::string module;
  int64_t rows, cols;
  uint32_t seed;

  std::vector<float> a() const { return random_values(kRank * cols, seed); }
  std::vector<float> b() const { return random_values(rows * kRank, seed + 100); }
};

/// Of all kinds of products in the first layer of a tiny llama, and its head.
std::vector<Change> llama_changes(uint32_t seed) {
  const std::string layer = "model.layers.0.";
  return {{"blk.0.attn_q", layer + "self_attn.q_proj", 32, 32, seed},
          {"blk.0.attn_k", layer + "self_attn.k_proj", 16, 32, seed + 1},
          {"blk.0.attn_v", layer + "self_attn.v_proj", 16, 32, seed + 2},
          {"blk.0.attn_output", layer + "self_attn.o_proj", 32, 32, seed + 3},
          {"blk.0.ffn_gate", layer + "mlp.gate_proj", 48, 32, seed + 4},
          {"blk.0.ffn_up", layer + "mlp.up_proj", 48, 32, seed + 5},
          {"blk.0.ffn_down", layer + "mlp.down_proj", 32, 48, seed + 6},
          {"output", "lm_head", 50, 32, seed + 7}};
}

/// The model with scale * B A added to its weights; rows are in the order of GGUF files.
TinyModel merged(const TinyModel& base, const std::vector<Change>& changes, float scale) {
  TinyModel out = test::tiny_metadata(base.options);
  for (const auto& [name, tensor] : base.tensors) {
    std::vector<float> values = tensor.values;
    for (const Change& change : changes) {
      if (change.gguf + ".weight" != name) continue;
      const auto a = change.a();
      const auto b = change.b();
      for (int64_t row = 0; row < change.rows; ++row) {
        for (int64_t col = 0; col < change.cols; ++col) {
          float sum = 0;
          for (int64_t r = 0; r < kRank; ++r) {
            sum += b[static_cast<size_t>(row * kRank + r)] *
                   a[static_cast<size_t>(r * change.cols + col)];
          }
          values[static_cast<size_t>(row * change.cols + col)] += scale * sum;
        }
      }
    }
    out.add(name, tensor.shape, values);
  }
  return out;
}

class AdapterTest : public testing::Test {
 protected:
  AdapterTest() { fs::create_directories(folder_); }
  ~AdapterTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string write_gguf(const std::vector<Change>& changes, float alpha) const {
    test::GgufBuilder file;
    file.add("general.architecture", "llama");
    file.add("general.type", "adapter");
    file.add("adapter.type", "lora");
    file.add("adapter.lora.alpha", alpha);
    for (const Change& change : changes) {
      file.add_f32(change.gguf + ".weight.lora_a", {kRank, change.cols}, change.a());
      file.add_f32(change.gguf + ".weight.lora_b", {change.rows, kRank}, change.b());
    }
    const std::string name = path("adapter" + std::to_string(changes[0].seed) + ".gguf");
    file.write(name);
    return name;
  }

  static json peft_config() {
    return {{"peft_type", "LORA"}, {"r", kRank}, {"lora_alpha", 6}, {"bias", "none"}};
  }
  static test::SafetensorsBuilder peft_weights(const std::vector<Change>& changes) {
    test::SafetensorsBuilder file;
    for (const Change& change : changes) {
      const std::string module = "base_model.model." + change.module;
      file.add_f32(module + ".lora_A.weight", {kRank, change.cols}, change.a());
      file.add_f32(module + ".lora_B.weight", {change.rows, kRank}, change.b());
    }
    return file;
  }
  std::string write_peft(const json& config, const test::SafetensorsBuilder& weights) const {
    std::ofstream(folder_ / "adapter_config.json") << config.dump();
    std::ofstream(folder_ / "adapter_model.safetensors", std::ios::binary) << weights.build();
    return folder_.string();
  }

  std::unique_ptr<Checkpoint> checkpoint_of(const TinyModel& tiny) const {
    tiny.file.write(path("model.gguf"));
    return std::move(open_checkpoint(path("model.gguf")).value());
  }

  /// Logits of all positions, with these adapters.
  std::vector<float> logits(const TinyModel& tiny, std::span<const Adapter> adapters,
                            std::span<const AdapterRows> rows) const {
    const auto checkpoint = checkpoint_of(tiny);
    const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
    LoadModelOptions options;
    options.adapters = adapters;
    const auto model = std::move(load_model(*checkpoint, *backend, options).value());
    SessionOptions session_options;
    session_options.kv_type = KvType::f32;
    session_options.max_tokens = 24;
    for (const AdapterRows& each : rows) {
      session_options.adapters.push_back({each.adapter, each.strength});
    }
    const auto session = make_session(*model, session_options);
    std::vector<float> out;
    EXPECT_TRUE(session
                    ->feed(tiny::some_tokens(20, 3), LogitsFor::all,
                           [&](int64_t, std::span<const float> values) {
                             out.insert(out.end(), values.begin(), values.end());
                           })
                    .ok());
    return out;
  }

  fs::path folder_ = testing::TempDir() + "adapter_test";
};

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

const std::array kFirst = {AdapterRows{.adapter = 0}};

TEST_F(AdapterTest, IsTheModelWithChangedWeights) {
  const TinyModel base = test::tiny_model({});
  const auto changes = llama_changes(1);
  const auto checkpoint = checkpoint_of(base);
  const std::array adapters = {open_adapter(write_gguf(changes, 6), "x", *checkpoint).value()};
  EXPECT_EQ(adapter_sizes_of(adapters).largest_rank, kRank);
  const auto changed = logits(base, adapters, kFirst);
  EXPECT_LT(largest_difference(changed, logits(merged(base, changes, 2), {}, {})), 1e-4F);
  const auto plain = logits(base, {}, {});
  EXPECT_GT(largest_difference(changed, plain), 0.1F);
  // Who does not use it computes what there is without it.
  EXPECT_EQ(logits(base, adapters, {}), plain);
}

TEST_F(AdapterTest, StrengthAndSeveralAddUp) {
  const TinyModel base = test::tiny_model({});
  const auto checkpoint = checkpoint_of(base);
  const auto first = llama_changes(1);
  const auto second = llama_changes(50);
  const std::array adapters = {open_adapter(write_gguf(first, 6), "x", *checkpoint).value(),
                               open_adapter(write_gguf(second, 0), "y", *checkpoint).value()};
  const std::array both = {AdapterRows{.adapter = 0, .strength = -0.5F},
                           AdapterRows{.adapter = 1, .strength = 0.25F}};
  const auto wanted = merged(merged(base, first, -1), second, 0.25F);
  EXPECT_LT(largest_difference(logits(base, adapters, both), logits(wanted, {}, {})), 1e-4F);
}

// GGUF files of llama hold the rows of queries and keys in another order than Hugging Face's.
TEST_F(AdapterTest, BothFormsAgree) {
  const TinyModel base = test::tiny_model({});
  const auto checkpoint = checkpoint_of(base);
  std::vector<Change> changes = llama_changes(1);
  changes.erase(changes.begin(), changes.begin() + 2);  // without queries and keys
  const std::array gguf = {open_adapter(write_gguf(changes, 6), "x", *checkpoint).value()};
  const auto wanted = logits(base, gguf, kFirst);
  const std::string folder = write_peft(peft_config(), peft_weights(changes));
  for (const std::string& name :
       {folder, folder + "/adapter_config.json", folder + "/adapter_model.safetensors"}) {
    const std::array peft = {open_adapter(name, "x", *checkpoint).value()};
    EXPECT_EQ(logits(base, peft, kFirst), wanted) << name;
  }
}

TEST_F(AdapterTest, RowsOfQueriesAreThoseOfTheirForm) {
  const TinyModel base = test::tiny_model({});
  const auto checkpoint = checkpoint_of(base);
  const std::vector<Change> changes = {llama_changes(1)[0]};
  const Adapter gguf = open_adapter(write_gguf(changes, 6), "x", *checkpoint).value();
  // The same rows as Hugging Face has them: of each head first the even ones, then the odd ones.
  test::SafetensorsBuilder weights;
  const auto b = changes[0].b();
  std::vector<float> ordered;
  for (const int32_t row : deinterleave_rows({4, 8, 8})) {
    const auto from = b.begin() + row * kRank;
    ordered.insert(ordered.end(), from, from + kRank);
  }
  const std::string module = "base_model.model." + changes[0].module;
  weights.add_f32(module + ".lora_A.weight", {kRank, 32}, changes[0].a());
  weights.add_f32(module + ".lora_B.weight", {32, kRank}, ordered);
  const Adapter peft = open_adapter(write_peft(peft_config(), weights), "x", *checkpoint).value();
  EXPECT_EQ(logits(base, std::array{gguf}, kFirst), logits(base, std::array{peft}, kFirst));
}

// Requests with this adapter, that one, both or none, in one engine: each as if it were alone; and
// nobody finds the prefixes of who used other adapters.
TEST_F(AdapterTest, RequestsChooseTheirOwn) {
  const auto checkpoint = checkpoint_of(test::tiny_model({}));
  const std::array adapters = {
      open_adapter(write_gguf(llama_changes(1), 1), "x", *checkpoint).value(),
      open_adapter(write_gguf(llama_changes(50), 1), "y", *checkpoint).value()};
  const auto backend = make_cpu_backend({.isa = available_isas().back(), .num_threads = 2});
  LoadModelOptions load_options;
  load_options.adapters = adapters;
  const auto model = std::move(load_model(*checkpoint, *backend, load_options).value());
  ASSERT_EQ(model->info().adapters.size(), 2U);
  EXPECT_EQ(model->info().adapters[1].name, "y");
  EXPECT_NE(model->info().adapters[0].digest, model->info().adapters[1].digest);

  const std::vector<std::vector<AdapterUse>> choices = {
      {}, {{0, 1}}, {{1, 1}}, {{0, 1}, {1, 0.5F}}, {{0, 0.5F}}, {{0, 0}}};
  const auto request_of = [&](size_t i) {
    Request request;
    request.prompt = tiny::some_tokens(40, 1);  // the same for all
    request.stop.max_tokens = 12;
    request.stop.ignore_eos = true;
    request.sampling.temperature = 0;
    request.num_logprobs = 2;
    request.adapters = choices[i % choices.size()];
    return request;
  };
  std::vector<tiny::Answer> alone;
  for (size_t i = 0; i < choices.size(); ++i) {
    auto engine = std::move(make_engine(*model, {}).value());
    alone.push_back(tiny::read(std::move(*engine->submit(request_of(i)))));
  }
  for (size_t i = 1; i + 1 < choices.size(); ++i) EXPECT_NE(alone[i].logprobs, alone[0].logprobs);
  EXPECT_EQ(alone.back(), alone[0]);  // of no strength

  EngineOptions options;
  options.max_sequences = 8;
  options.chunk_tokens = 24;
  auto engine = std::move(make_engine(*model, options).value());
  for (int round = 0; round < 2; ++round) {
    std::vector<Stream> streams;
    for (size_t i = 0; i < 2 * choices.size(); ++i) {
      streams.push_back(std::move(*engine->submit(request_of(i))));
    }
    for (size_t i = 0; i < streams.size(); ++i) {
      const tiny::Answer answer = tiny::read(std::move(streams[i]));
      EXPECT_EQ(answer, alone[i % choices.size()]) << "request " << i;
      if (round > 0) {
        EXPECT_GT(answer.cached_tokens, 0) << "request " << i;
      }
    }
  }
  // A scope that looks like another's.
  const ModelInfo& info = model->info();
  const std::vector<AdapterUse> first = {{0, 1}};
  EXPECT_EQ(prefix_scope("1:a", {}, info), "1:a");
  EXPECT_NE(prefix_scope("", first, info), prefix_scope("x", first, info));
  EXPECT_NE(prefix_scope("", std::vector<AdapterUse>{{0, 2}}, info), prefix_scope("", first, info));
  Request wrong = request_of(0);
  wrong.adapters = {{2, 1}};
  EXPECT_EQ(engine->submit(wrong).error().where, "adapters");
  wrong.adapters = {{1, 1}, {1, 2}};
  EXPECT_EQ(engine->submit(wrong).error().where, "adapters");
  wrong.adapters = {{1, std::nanf("")}};
  EXPECT_EQ(engine->submit(wrong).error().where, "adapters");
}

TEST_F(AdapterTest, ScalesAreThoseOfPeft) {
  const auto changes = llama_changes(1);
  const auto scale_of = [&](json more, const std::string& weight) {
    json config = peft_config();
    if (!more.empty()) config.merge_patch(more);
    const auto checkpoint = checkpoint_of(test::tiny_model({}));
    const std::string folder = write_peft(config, peft_weights(changes));
    return open_adapter(folder, "x", *checkpoint).value().find(weight)->scale;
  };
  EXPECT_FLOAT_EQ(scale_of({}, "blk.0.attn_q"), 2.0F);
  EXPECT_FLOAT_EQ(scale_of({{"use_rslora", true}}, "blk.0.attn_q"), 6 / std::sqrt(3.0F));
  const json own = {{"alpha_pattern", {{"self_attn.q_proj", 9}}}};
  EXPECT_FLOAT_EQ(scale_of(own, "blk.0.attn_q"), 3.0F);
  EXPECT_FLOAT_EQ(scale_of(own, "blk.0.attn_k"), 2.0F);
  const json twice = {
      {"alpha_pattern", {{"self_attn.q_proj", 9}, {"layers.0.self_attn.q_proj", 9}}}};
  EXPECT_FLOAT_EQ(scale_of(twice, "blk.0.attn_q"), 3.0F);
}

TEST_F(AdapterTest, NamesAreKnownOfEveryDecoder) {
  for (const Architecture* architecture : architectures()) {
    if (architecture->gguf_name == "bert") continue;
    const bool is_fused = architecture->gguf_name == "gpt2" || architecture->gguf_name == "phi3";
    const std::string module = architecture->gguf_name == "gpt2" ? "transformer.h.0.attn.c_attn"
                               : architecture->gguf_name == "phi3"
                                   ? "model.layers.0.self_attn.qkv_proj"
                                   : "model.layers.0.self_attn.v_proj";
    const std::string file = peft_weights({{"", module, 4, 4, 1}}).build();
    AdapterCopies copies;
    const auto adapter = read_peft_adapter(peft_config().dump(), std::as_bytes(std::span(file)),
                                           architecture->gguf_name, copies);
    ASSERT_TRUE(adapter.ok()) << architecture->gguf_name << adapter.error().to_string();
    EXPECT_EQ(adapter->pairs[0].weight, is_fused ? "blk.0.attn_qkv" : "blk.0.attn_v");
  }
}

TEST_F(AdapterTest, WhatIsNoAdapterOfThisModelIsRefused) {
  const TinyModel base = test::tiny_model({});
  const auto checkpoint = checkpoint_of(base);
  const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
  const auto error_of = [&](const std::string& name) {
    auto opened = open_adapter(name, "x", *checkpoint);
    if (!opened.ok()) return opened.error().to_string();
    LoadModelOptions options;
    const std::array adapters = {std::move(opened).value()};
    options.adapters = adapters;
    const auto loaded = load_model(*checkpoint, *backend, options);
    return loaded.ok() ? "no error" : loaded.error().to_string();
  };
  const auto peft_error = [&](const json& more, const std::vector<Change>& changes) {
    json config = peft_config();
    if (!more.empty()) config.merge_patch(more);
    return error_of(write_peft(config, peft_weights(changes)));
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != text.npos && text.find('\n') == text.npos;
  };
  const auto fine = llama_changes(1);
  EXPECT_EQ(peft_error({}, fine), "no error");
  EXPECT_TRUE(has(peft_error({{"peft_type", "IA3"}}, fine), "peft_type"));
  EXPECT_TRUE(has(peft_error({{"use_dora", true}}, fine), "DoRA"));
  EXPECT_TRUE(has(peft_error({{"bias", "all"}}, fine), "bias"));
  EXPECT_TRUE(has(peft_error({{"modules_to_save", {"lm_head"}}}, fine), "modules_to_save"));
  EXPECT_TRUE(has(peft_error({{"lora_alpha", "much"}}, fine), "lora_alpha"));
  EXPECT_TRUE(has(peft_error({{"alpha_pattern", {{"q.*", 1}}}}, fine), "patterns"));
  EXPECT_TRUE(has(peft_error({{"alpha_pattern", {{"q_proj", 1}, {"self_attn.q_proj", 2}}}}, fine),
                  "several numbers"));
  EXPECT_TRUE(has(peft_error({{"lora_alpha", 1e300}}, fine), "scale"));
  EXPECT_TRUE(has(peft_error({{"alora_invocation_tokens", {1, 2}}}, fine), "alora"));
  EXPECT_TRUE(has(peft_error({{"layer_replication", {{0, 1}}}}, fine), "layer_replication"));
  EXPECT_TRUE(has(peft_error({{"init_lora_weights", "pissa_niter_4"}}, fine), "init_lora_weights"));
  EXPECT_EQ(peft_error({{"init_lora_weights", true}}, fine), "no error");
  auto wide = fine;
  wide[0].cols = 40;
  EXPECT_TRUE(has(peft_error({{"base_model_name_or_path", "org/other"}}, wide), "org/other"));
  EXPECT_TRUE(has(peft_error({}, wide), "[32, 40], here it is [32, 32]"));
  auto deep = fine;
  deep[0].module = "model.layers.7.self_attn.q_proj";
  EXPECT_TRUE(has(peft_error({}, deep), "blk.7.attn_q"));
  deep[0].module = "model.layers.0.mixer.in_proj";
  EXPECT_TRUE(has(peft_error({}, deep), "mixer"));
  deep[0].module = "model.embed_tokens";
  deep[0].rows = 50;
  EXPECT_TRUE(has(peft_error({}, deep), "token_embd"));
  EXPECT_TRUE(has(peft_error({}, {}), "no weight"));
  test::SafetensorsBuilder half;
  half.add_f32("base_model.model.lm_head.lora_A.weight", {3, 32}, random_values(96, 1));
  EXPECT_TRUE(has(error_of(write_peft(peft_config(), half)), "lora_B"));
  half.add_f32("base_model.model.lm_head.lora_B.weight", {50, 2}, random_values(100, 1));
  EXPECT_TRUE(has(error_of(write_peft(peft_config(), half)), "expected 3 columns"));
  half.add_f32("base_model.model.lm_head.lora_magnitude_vector", {50}, random_values(50, 1));
  EXPECT_TRUE(has(error_of(write_peft(peft_config(), half)), "magnitude"));

  EXPECT_TRUE(has(error_of(path("model.gguf")), "no adapter"));
  EXPECT_TRUE(has(error_of(path("absent")), "absent"));
  test::GgufBuilder other;
  other.add("general.architecture", "gemma3");
  other.add("general.type", "adapter");
  other.add("adapter.type", "lora");
  other.write(path("other.gguf"));
  EXPECT_TRUE(has(error_of(path("other.gguf")), "'gemma3', the model of 'llama'"));
}

TEST_F(AdapterTest, DamagedFilesGiveOneLine) {
  const std::string config = json(peft_config()).dump();
  const std::string weights = peft_weights(llama_changes(1)).build();
  std::mt19937 random(5);
  size_t num_refused = 0;
  const auto read = [&](const std::string& text, const std::string& bytes) {
    AdapterCopies copies;
    const auto adapter = read_peft_adapter(text, std::as_bytes(std::span(bytes)), "llama", copies);
    if (adapter.ok()) return;
    ++num_refused;
    EXPECT_EQ(adapter.error().to_string().find('\n'), std::string::npos);
  };
  for (size_t i = 0; i < config.size(); ++i) read(config.substr(0, i), weights);
  for (size_t i = 0; i < weights.size(); i += 7) read(config, weights.substr(0, i));
  EXPECT_GE(num_refused, config.size());
  const size_t header = weights.find('}') + 2000;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = weights;
    std::string text = config;
    bytes[random() % std::min(header, bytes.size())] = static_cast<char>(random());
    text[random() % text.size()] = static_cast<char>(random());
    read(i % 2 == 0 ? text : config, bytes);
  }

  const auto checkpoint = checkpoint_of(test::tiny_model({}));
  std::ifstream file(write_gguf(llama_changes(1), 6), std::ios::binary);
  const std::string gguf((std::istreambuf_iterator<char>(file)), {});
  for (int i = 0; i < 500; ++i) {
    std::string bytes = gguf.substr(0, i % 2 == 0 ? gguf.size() : 1 + random() % (gguf.size() - 1));
    for (int j = 0; j < 3; ++j) {
      char& byte = bytes[random() % std::min<size_t>(1500, bytes.size())];
      byte = static_cast<char>(byte ^ (1 << (random() % 8)));
    }
    std::ofstream(path("mutant.gguf"), std::ios::binary) << bytes;
    const auto adapter = open_adapter(path("mutant.gguf"), "x", *checkpoint);
    const std::string text = adapter.ok() ? "" : adapter.error().to_string();
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace headrace
