// Quantised weights against the logits of float32 transformers, and files that convert writes
// against the directories that they come from: tiny checkpoints of many architectures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/convert.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/test_tensors.h"
#include "engine/session/session.h"
#include "model/hf/hf_checkpoint.h"
#include "model/registry.h"
#include "tests/conformance.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders() {
  std::vector<std::string> found;
  const auto root = conformance::folder("models");
  if (root.empty()) return found;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_directory()) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

nlohmann::json json_of(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

/// Logits of each input row, one after the other.
using AllLogits = std::vector<float>;

AllLogits logits_of(const std::string& path, Isa isa, const char* quantize,
                    const std::vector<TokenId>& tokens) {
  const auto checkpoint = std::move(open_model_files(path).value());
  const auto backend = make_cpu_backend({.isa = isa, .num_threads = 2});
  LoadModelOptions options;
  options.quantize = quantize != nullptr ? find_quantization(quantize) : nullptr;
  const auto model = load_model(*checkpoint, *backend, options);
  if (!model.ok()) throw std::runtime_error(model.error().to_string());
  const auto session = make_session(
      **model, {.kv_type = KvType::f32, .max_tokens = static_cast<int64_t>(tokens.size())});
  AllLogits out;
  const auto fed = session->feed(tokens, LogitsFor::all, [&](int64_t, auto logits) {
    out.insert(out.end(), logits.begin(), logits.end());
  });
  if (!fed.ok()) throw std::runtime_error(fed.error().to_string());
  return out;
}

std::vector<double> log_softmax(std::span<const float> logits) {
  const double largest = double{*std::max_element(logits.begin(), logits.end())};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  std::vector<double> out;
  for (const float logit : logits) out.push_back(double{logit} - largest - std::log(sum));
  return out;
}

/// Kullback-Leibler divergence of the second from the first, in nats, mean over rows of `vocab`.
double mean_kl(const AllLogits& exact, const AllLogits& other, size_t vocab) {
  double sum = 0;
  const size_t rows = exact.size() / vocab;
  for (size_t row = 0; row < rows; ++row) {
    const auto p = log_softmax(std::span(exact).subspan(row * vocab, vocab));
    const auto q = log_softmax(std::span(other).subspan(row * vocab, vocab));
    for (size_t i = 0; i < vocab; ++i) sum += std::exp(p[i]) * (p[i] - q[i]);
  }
  return sum / static_cast<double>(rows);
}

class QuantizedCheckpoints : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto config = json_of(fs::path(GetParam()) / "config.json");
    const auto architecture = config.at("architectures").at(0).get<std::string>();
    if (find_hf_architecture(architecture) == nullptr) {
      GTEST_SKIP() << architecture << " is not built in";
    }
    const auto golden = json_of(fs::path(GetParam()) / "golden.json");
    golden.at("input_ids").get_to(tokens_);
    for (const auto& row : golden.at("logits").get<std::vector<std::vector<float>>>()) {
      vocab_ = row.size();
      exact_.insert(exact_.end(), row.begin(), row.end());
    }
    ASSERT_GT(exact_.size(), 0u);
  }
  void TearDown() override { fs::remove(file_); }

  const std::string file_ = testing::TempDir() + "quantized_test.gguf";
  std::vector<TokenId> tokens_;
  AllLogits exact_;
  size_t vocab_ = 1;
};

/// The largest mean divergence that a type may have: twice the largest found. These weights are
/// random, and rounding them moves logits as PyTorch with the same rounded weights does (Q8_0,
/// reference: llama 2.5e-3, olmoe, where a router chooses another expert, 2.7e-2, both there too).
double max_kl(const std::string& type) {
  // Rows of 64 have no K formats; Q6_K falls back to Q8_0.
  if (type == "q8_0" || type == "q6_k") return 5e-2;
  return type == "q5_k" ? 1.0 : 5.0;
}

TEST_P(QuantizedCheckpoints, StayCloseToFloat32) {
  for (const char* type : {"q8_0", "q6_k", "q5_k", "q4_k", "q4_0"}) {
    for (const Isa isa : available_isas()) {
      const AllLogits got = logits_of(GetParam(), isa, type, tokens_);
      ASSERT_EQ(got.size(), exact_.size());
      const double kl = mean_kl(exact_, got, vocab_);
      std::printf("%s, %s, %s: mean KL %.2e\n", fs::path(GetParam()).filename().c_str(), type,
                  std::string(isa_name(isa)).c_str(), kl);
      EXPECT_LE(kl, max_kl(type));
      // Something was rounded.
      EXPECT_FALSE(backend_test::same_bits(got, logits_of(GetParam(), isa, nullptr, tokens_)));
    }
  }
}

TEST_P(QuantizedCheckpoints, AConvertedFileIsTheSameModel) {
  const auto checkpoint = std::move(open_model_files(GetParam()).value());
  for (const char* type : {"", "q8_0", "q4_k_m"}) {
    const Quantization* to = find_quantization(type);
    const auto summary = convert_model(*checkpoint, file_, {.to = to, .overwrite = true});
    ASSERT_TRUE(summary.ok()) << summary.error().to_string();
    for (const Isa isa : available_isas()) {
      const AllLogits expected =
          logits_of(GetParam(), isa, to != nullptr ? type : nullptr, tokens_);
      EXPECT_TRUE(backend_test::same_bits(logits_of(file_, isa, nullptr, tokens_), expected))
          << type << " " << isa_name(isa);
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(QuantizedCheckpoints);
INSTANTIATE_TEST_SUITE_P(Models, QuantizedCheckpoints, testing::ValuesIn(folders()),
                         [](const auto& folder) {
                           std::string name = fs::path(folder.param).filename().string();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace headrace
