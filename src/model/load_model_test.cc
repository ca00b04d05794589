// What loading refuses, and how it says so.
#include <gtest/gtest.h>

#include <filesystem>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/checkpoint.h"
#include "model/loader.h"
#include "model/model.h"
#include "tests/tiny_models.h"

namespace headrace {
namespace {

using test::TinyModel;

Result<std::unique_ptr<Model>> load(const TinyModel& tiny, const LoadModelOptions& options = {}) {
  const std::string path = testing::TempDir() + "load_model_test.gguf";
  tiny.file.write(path);
  auto checkpoint = open_checkpoint(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().to_string();
  static const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
  auto model = load_model(**checkpoint, *backend, options);
  std::filesystem::remove(path);
  return model;
}

Error error_of(const TinyModel& tiny) {
  auto model = load(tiny);
  EXPECT_FALSE(model.ok());
  return model.ok() ? Error{} : model.error();
}

testing::AssertionResult names(const Error& error, const std::string& what) {
  const std::string text = error.to_string();
  if (text.find(what) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' does not name '" << what << "'";
}

TEST(LoadModel, FillsInTheInfo) {
  LoadModelOptions options;
  options.name = "tiny";
  options.end_tokens = {3};
  uint64_t last = 0;
  uint64_t total = 0;
  options.progress = [&](uint64_t done, uint64_t all) {
    EXPECT_GT(done, last);
    last = done;
    total = all;
  };
  const TinyModel tiny = test::tiny_model({});
  auto model = load(tiny, options);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const ModelInfo& info = (*model)->info();
  EXPECT_EQ(info.name, "tiny");
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.vocab_size, 50);
  EXPECT_EQ(info.context_length, 256);
  EXPECT_EQ(info.num_layers, 2);
  EXPECT_EQ(info.end_tokens, std::vector<TokenId>{3});
  int64_t num_parameters = 0;
  for (const auto& [name, tensor] : tiny.tensors) {
    num_parameters += static_cast<int64_t>(tensor.values.size());
  }
  EXPECT_EQ(info.num_parameters, num_parameters);
  EXPECT_GT(info.weight_bytes, 0U);
  EXPECT_EQ(last, total);
}

TEST(LoadModel, KnowsTheWorkOfItsWeights) {
  for (const bool has_own_head : {true, false}) {
    test::TinyOptions options;
    options.has_own_head = has_own_head;
    auto model = load(test::tiny_model(options));
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const WeightWork work = (*model)->weight_work();
    // Two layers of q, k, v, output and gate, up, down.
    EXPECT_EQ(work.layer_macs, 2 * (32 * (32 + 16 + 16 + 32) + 3 * 32 * 48));
    EXPECT_EQ(work.head_macs, 50 * 32);
    const uint64_t all = (*model)->info().weight_bytes;
    // The embedding is as large as the head, and read only where it is the head.
    EXPECT_EQ(work.layer_bytes + (has_own_head ? 2 : 1) * work.head_bytes, all);
    EXPECT_GE(work.head_bytes, 4U * 50 * 32);
  }
}

TEST(LoadModel, Gemma3LayersFormTwoCacheGroups) {
  auto model = load(test::tiny_model(test::tiny_gemma3_options()));
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  const auto specs = (*model)->cache_specs();
  ASSERT_EQ(specs.size(), 7U);
  for (size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(specs[i].kind, i == 5 ? CacheSpec::Kind::paged : CacheSpec::Kind::window);
    EXPECT_EQ(specs[i].window, i == 5 ? 0 : 20);
  }
}

TEST(LoadModel, WindowPatternOfTheFile) {
  auto options = test::tiny_gemma3_options();
  options.num_layers = 3;
  TinyModel tiny = test::tiny_metadata(options);
  tiny.file.add("gemma3.attention.sliding_window_pattern", std::vector<bool>{false, true, true});
  test::add_tiny_tensors(tiny);
  auto model = load(tiny);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_EQ((*model)->cache_specs()[0].kind, CacheSpec::Kind::paged);
  EXPECT_EQ((*model)->cache_specs()[1].kind, CacheSpec::Kind::window);

  tiny = test::tiny_metadata(options);
  tiny.file.add("gemma3.attention.sliding_window_pattern", std::vector<bool>{false, true});
  test::add_tiny_tensors(tiny);
  EXPECT_TRUE(names(error_of(tiny), "gemma3.attention.sliding_window_pattern"));
}

TEST(LoadModel, UnknownArchitectureNamesItAndTheKnownOnes) {
  test::TinyOptions options;
  options.architecture = "clip9";
  const Error error = error_of(test::tiny_model(options));
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  for (const char* name : {"clip9", "llama", "gemma3"}) EXPECT_TRUE(names(error, name));
}

TEST(LoadModel, MissingTensorsAreNamed) {
  TinyModel tiny = test::tiny_metadata({});
  tiny.file.add_f32("token_embd.weight", {50, 32}, std::vector<float>(1600));
  const Error error = error_of(tiny);
  EXPECT_EQ(error.code, ErrorCode::corrupt_data);
  EXPECT_TRUE(names(error, "output_norm.weight"));
  EXPECT_TRUE(names(error, "blk.0.attn_q.weight"));
}

TEST(LoadModel, AFileThatIsCutMeanwhileIsAnError) {
  const std::string path = testing::TempDir() + "load_model_cut_test.gguf";
  test::tiny_model({.vocab = 3000}).file.write(path);
  auto checkpoint = open_checkpoint(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().to_string();
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 2});
  const auto model = load_model(**checkpoint, *backend, {});
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::corrupt_data);
  EXPECT_TRUE(names(model.error(), "became shorter"));
  EXPECT_TRUE(names(model.error(), path));
  std::filesystem::remove(path);
}

TEST(LoadModel, UnreadTensorsAreNamed) {
  TinyModel tiny = test::tiny_model({});
  tiny.add("blk.0.attn_gate.weight", {2}, {1, 2});
  const Error error = error_of(tiny);
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_TRUE(names(error, "blk.0.attn_gate.weight"));
}

TEST(LoadModel, MisshapenTensorsAreNamedWithBothShapes) {
  test::TinyOptions options;
  options.has_own_head = false;
  TinyModel tiny = test::tiny_model(options);
  tiny.add("output.weight", {49, 32}, std::vector<float>(49 * 32));
  const Error error = error_of(tiny);
  EXPECT_EQ(error.code, ErrorCode::corrupt_data);
  for (const char* text : {"output.weight", "[50, 32]", "[49, 32]"})
    EXPECT_TRUE(names(error, text));
}

TEST(LoadModel, FaultsOfTheMetadataNameTheKey) {
  using Edit = void (*)(test::GgufBuilder&);
  struct Fault {
    const char* key;
    ErrorCode code;
    Edit edit;
  };
  const std::vector<Fault> faults = {
      {"llama.rope.scaling.type", ErrorCode::unsupported,
       [](auto& f) { f.add("llama.rope.scaling.type", "spiral"); }},
      {"llama.rope.scaling.factor", ErrorCode::corrupt_data,
       [](auto& f) { f.add("llama.rope.scaling.factor", -2.0F); }},
      {"llama.rope.scaling.factor", ErrorCode::corrupt_data,
       [](auto& f) { f.add("llama.rope.scaling.factor", NAN); }},
      {"llama.expert_used_count", ErrorCode::corrupt_data,
       [](auto& f) { f.add("llama.expert_count", uint32_t{8}); }},
      {"llama.attention.causal", ErrorCode::unsupported,
       [](auto& f) { f.add("llama.attention.causal", false); }},
      {"llama.attention.scale", ErrorCode::corrupt_data,
       [](auto& f) { f.add("llama.attention.scale", "big"); }},
      {"llama.attention.sliding_window", ErrorCode::corrupt_data,
       [](auto& f) { f.add("llama.attention.sliding_window", int32_t{-1}); }},
  };
  for (const Fault& fault : faults) {
    TinyModel tiny = test::tiny_metadata({});
    fault.edit(tiny.file);
    test::add_tiny_tensors(tiny);
    const Error error = error_of(tiny);
    EXPECT_EQ(error.code, fault.code) << error.to_string();
    EXPECT_TRUE(names(error, fault.key));
  }
}

TEST(LoadModel, ImpossibleSizesNameTheKey) {
  using Edit = void (*)(test::TinyOptions&);
  const std::vector<std::pair<const char*, Edit>> faults = {
      {"llama.block_count", [](auto& o) { o.num_layers = 0; }},
      {"llama.embedding_length", [](auto& o) { o.embedding = 0; }},
      {"llama.attention.head_count_kv", [](auto& o) { o.num_kv_heads = 3; }},
      {"llama.attention.head_count_kv", [](auto& o) { o.num_kv_heads = 0; }},
      {"llama.rope.dimension_count", [](auto& o) { o.rope_dims = 7; }},
      {"llama.rope.dimension_count", [](auto& o) { o.rope_dims = 10; }},
      {"llama.attention.layer_norm_rms_epsilon", [](auto& o) { o.eps = -1; }},
      {"llama.rope.freq_base", [](auto& o) { o.rope_base = 0; }},
  };
  for (const auto& [key, edit] : faults) {
    test::TinyOptions options;
    edit(options);
    EXPECT_TRUE(names(error_of(test::tiny_metadata(options)), key));
  }
}

TEST(LoadModel, DivisorsOfFrequenciesMustBePositive) {
  TinyModel tiny = test::tiny_model({});
  tiny.add("rope_freqs.weight", {4}, {1, 0, 1, 1});
  EXPECT_TRUE(names(error_of(tiny), "rope_freqs.weight"));
}

TEST(LoadModel, WorkOfExpertsIsThatOfTheOnesInUse) {
  test::TinyOptions options = test::tiny_moe_options();
  for (const bool is_stacked : {true, false}) {
    options.has_stacked_experts = is_stacked;
    auto model = load(test::tiny_model(options));
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    const WeightWork work = (*model)->weight_work();
    const int64_t expert = 3 * 32 * 48;
    const int64_t others = 3 * 32 * (32 + 16 + 16 + 32) + 3 * 32 * 48;  // attention, a dense layer
    const int64_t shared = 2 * (3 * 32 * 56 + 32) + 2 * 5 * 32;         // with both routers
    EXPECT_EQ(work.layer_macs, others + shared + 2 * 2 * expert);
    EXPECT_EQ(work.active_share, 0.4);
    EXPECT_GE(work.expert_bytes, static_cast<uint64_t>(2 * 5 * expert) * sizeof(float));
    const ModelInfo& info = (*model)->info();
    EXPECT_EQ(info.num_parameters - info.num_active_parameters, 2 * 3 * expert);
    const auto one = static_cast<double>(work.layer_bytes);
    const auto experts = static_cast<double>(work.expert_bytes);
    EXPECT_EQ(work.step_layer_bytes(1), one);
    EXPECT_NEAR(work.step_layer_bytes(2), one + (0.64 - 0.4) * experts, 1);
    EXPECT_NEAR(work.step_layer_bytes(1000), one + 0.6 * experts, 1);
  }
  auto dense = load(test::tiny_model({}));
  ASSERT_TRUE(dense.ok());
  const WeightWork work = (*dense)->weight_work();
  EXPECT_EQ(work.step_layer_bytes(5), static_cast<double>(work.layer_bytes));
  EXPECT_EQ((*dense)->info().num_active_parameters, (*dense)->info().num_parameters);
}

TEST(LoadModel, ExpertsMayStayInTheFile) {
  LoadModelOptions options;
  options.pack = false;
  auto model = load(test::tiny_model(test::tiny_moe_options()), options);
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_GT((*model)->info().weight_bytes, 0U);
}

TEST(LoadModel, NamesWhatIsWrongWithExperts) {
  const auto with = [](auto edit) {
    test::TinyOptions options = test::tiny_moe_options();
    edit(options);
    return test::tiny_metadata(options);
  };
  for (const int64_t used : {0, 6}) {
    EXPECT_TRUE(
        names(error_of(with([&](auto& o) { o.num_active = used; })), "llama.expert_used_count"));
  }
  EXPECT_TRUE(names(error_of(with([](auto& o) { o.expert_length = 0; })),
                    "llama.expert_feed_forward_length"));
  EXPECT_TRUE(names(error_of(with([](auto& o) { o.num_dense_layers = 4; })),
                    "llama.leading_dense_block_count"));
  TinyModel gated = with([](auto&) {});
  gated.file.add("llama.expert_gating_func", uint32_t{3});
  EXPECT_TRUE(names(error_of(gated), "llama.expert_gating_func"));
  TinyModel groups = with([](auto&) {});
  groups.file.add("llama.expert_group_count", uint32_t{4});
  EXPECT_TRUE(names(error_of(groups), "llama.expert_group_count"));
  TinyModel dense = with([](auto&) {});
  dense.options.num_experts = 0;
  test::add_tiny_tensors(dense);
  EXPECT_TRUE(names(error_of(dense), "blk.1.ffn_gate_exps.weight"));

  test::TinyOptions options = test::tiny_moe_options();
  options.num_experts = 4;  // fewer than there are weights for
  TinyModel metadata = test::tiny_metadata(options);
  options.num_experts = 5;
  metadata.options = options;
  test::add_tiny_tensors(metadata);
  EXPECT_TRUE(names(error_of(metadata), "blk.1.ffn_gate_inp.weight"));
  test::TinyOptions unread = test::tiny_gemma3_options();
  unread.num_experts = 4;
  EXPECT_TRUE(names(error_of(test::tiny_metadata(unread)), "gemma3.expert_count"));
}

TEST(Loader, LayerNormsHaveABiasOrNot) {
  TinyModel tiny = test::tiny_metadata({});
  tiny.add("with.weight", {3}, {1, 2, 3});
  tiny.add("with.bias", {3}, {4, 5, 6});
  tiny.add("without.weight", {3}, {7, 8, 9});
  tiny.add("wrong.weight", {3}, {1, 2, 3});
  tiny.add("wrong.bias", {2}, {1, 2});
  const std::string path = testing::TempDir() + "layer_norm_test.gguf";
  tiny.file.write(path);
  const auto checkpoint = open_checkpoint(path);
  ASSERT_TRUE(checkpoint.ok());
  std::filesystem::remove(path);
  const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
  const LoadModelOptions options;
  Loader loader(**checkpoint, *backend, RopeRows::halves, options);
  const LayerNorm with = loader.layer_norm("with", 3, 0.5F);
  EXPECT_EQ(with.eps, 0.5F);
  EXPECT_EQ(with.weight.view().f32()[2], 3.0F);
  EXPECT_EQ(with.bias.view().f32()[0], 4.0F);
  EXPECT_EQ(loader.layer_norm("without", 3, 0.5F).bias.view().data, nullptr);
  EXPECT_EQ(loader.packed_bytes(), 9 * sizeof(float));
  loader.layer_norm("wrong", 3, 0.5F);
  const auto finished = loader.finish();
  ASSERT_FALSE(finished.ok());
  EXPECT_TRUE(names(finished.error(), "wrong.bias"));
}

TEST(DeinterleaveRows, BringsPairsToHalves) {
  EXPECT_EQ(deinterleave_rows({.num_heads = 1, .head_dim = 6, .rope_dims = 6}),
            (std::vector<int32_t>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(deinterleave_rows({.num_heads = 2, .head_dim = 6, .rope_dims = 4}),
            (std::vector<int32_t>{0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11}));
}

}  // namespace
}  // namespace headrace
