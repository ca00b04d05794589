// Tiny checkpoints of many architectures against float32 transformers, on every instruction set
// that the machine has: logits of every row and greedy tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "golden/golden_data.h"
#include "model/hf/hf_checkpoint.h"
#include "model/registry.h"
#include "sampling/logprobs.h"

namespace headrace::golden {
namespace {

namespace fs = std::filesystem;

/// Of a logit, absolute.
constexpr double kMaxReferenceError = 1e-4;
constexpr double kMaxFastError = 2e-3;

/// For keys and values that are stored rounded: the root mean square of the logits' errors, as a
/// share of their standard deviation. Random weights carry errors further than trained ones: three
/// times the largest found in 60 configurations.
double max_rounded_kv_share(KvType kv_type) {
  switch (kv_type) {
    case KvType::f32:
      break;
    case KvType::f16:
      return 0.005;
    case KvType::q8:
      return 0.15;
    case KvType::q12:
      return 0.055;
  }
  return 0;
}

struct TinyCheckpoint {
  std::string name;
  fs::path folder;
  std::string architecture = {};  ///< as config.json names it
};

/// What GoogleTest calls it.
void PrintTo(const TinyCheckpoint& checkpoint, std::ostream* out) {
  *out << checkpoint.name;
}

struct TinyCase {
  std::vector<TokenId> input_ids;
  std::vector<std::vector<float>> logits;  ///< [input_ids.size()][vocab]
  std::vector<TokenId> greedy;             ///< what follows input_ids
};

nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

/// Every folder of the reference data, sorted; none if it is absent.
std::vector<TinyCheckpoint> find_checkpoints() {
  std::vector<TinyCheckpoint> found;
  const auto root = conformance::folder("models");
  if (root.empty()) return found;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!entry.is_directory()) continue;
    TinyCheckpoint one{.name = entry.path().filename().string(), .folder = entry.path()};
    const auto config = read_json(one.folder / "config.json");
    one.architecture = config.at("architectures").at(0).get<std::string>();
    found.push_back(std::move(one));
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

const std::vector<TinyCheckpoint>& checkpoints() {
  static const std::vector<TinyCheckpoint> found = find_checkpoints();
  return found;
}

TinyCase read_case(const fs::path& folder) {
  const auto json = read_json(folder / "golden.json");
  TinyCase out;
  json.at("input_ids").get_to(out.input_ids);
  json.at("logits").get_to(out.logits);
  json.at("greedy").get_to(out.greedy);
  return out;
}

double standard_deviation(const std::vector<std::vector<float>>& rows) {
  double sum = 0;
  double sum_of_squares = 0;
  double count = 0;
  for (const auto& row : rows) {
    for (const float value : row) {
      sum += double{value};
      sum_of_squares += double{value} * double{value};
      ++count;
    }
  }
  return std::sqrt(sum_of_squares / count - (sum / count) * (sum / count));
}

/// Logits of a model: of each input row, and of each row that a token of the answer was chosen
/// from.
struct Outcome {
  std::vector<std::vector<float>> rows;
  std::vector<std::vector<float>> answer_rows;
};

/// Feeds the input, then the golden answer token by token: where each row's argmax is the golden
/// token, the answer left to run is the golden one.
Outcome run_case(const LoadedModel& loaded, const TinyCase& one, KvType kv_type) {
  const auto session =
      make_session(*loaded.model,
                   {.kv_type = kv_type,
                    .max_tokens = static_cast<int64_t>(one.input_ids.size() + one.greedy.size())});
  Outcome out;
  const auto feed = [&](std::span<const TokenId> tokens, std::vector<std::vector<float>>& rows) {
    const auto fed = session->feed(tokens, LogitsFor::all, [&](int64_t, auto logits) {
      rows.emplace_back(logits.begin(), logits.end());
    });
    if (!fed.ok()) throw std::runtime_error(fed.error().to_string());
  };
  feed(one.input_ids, out.rows);
  out.answer_rows.push_back(out.rows.back());
  for (size_t i = 0; i + 1 < one.greedy.size(); ++i) {
    feed(std::span(&one.greedy[i], 1), out.answer_rows);
  }
  return out;
}

double largest_error(const Outcome& outcome, const TinyCase& one) {
  double largest = 0;
  for (size_t row = 0; row < one.logits.size(); ++row) {
    for (size_t id = 0; id < one.logits[row].size(); ++id) {
      const double error = std::abs(double{outcome.rows[row][id]} - double{one.logits[row][id]});
      if (std::isnan(error)) return std::numeric_limits<double>::infinity();
      largest = std::max(largest, error);
    }
  }
  return largest;
}

/// The root of the mean of the squares.
double mean_square_error(const Outcome& outcome, const TinyCase& one) {
  double sum = 0;
  size_t count = 0;
  for (size_t row = 0; row < one.logits.size(); ++row) {
    for (size_t id = 0; id < one.logits[row].size(); ++id) {
      const double error = double{outcome.rows[row][id]} - double{one.logits[row][id]};
      sum += error * error;
      ++count;
    }
  }
  return std::isnan(sum) ? std::numeric_limits<double>::infinity()
                         : std::sqrt(sum / static_cast<double>(count));
}

class Checkpoints : public testing::TestWithParam<TinyCheckpoint> {
 protected:
  void SetUp() override {
    const TinyCheckpoint& checkpoint = GetParam();
    if (find_hf_architecture(checkpoint.architecture) == nullptr) {
      GTEST_SKIP() << checkpoint.architecture << " is not built in";
    }
    path_ = checkpoint.folder.string();
    const auto config = read_json(checkpoint.folder / "config.json");
    is_mixture_ = config.contains("num_experts_per_tok");
    case_ = read_case(checkpoint.folder);
    ASSERT_GT(case_.input_ids.size(), 0U);
    ASSERT_EQ(case_.logits.size(), case_.input_ids.size());
    ASSERT_EQ(case_.greedy.size(), 16U);
  }

  void check_shape(const Outcome& outcome) const {
    ASSERT_EQ(outcome.rows.size(), case_.logits.size());
    for (size_t row = 0; row < case_.logits.size(); ++row) {
      ASSERT_EQ(outcome.rows[row].size(), case_.logits[row].size());
    }
    ASSERT_EQ(outcome.answer_rows.size(), case_.greedy.size());
  }

  void report(Isa isa, KvType kv_type, double error) const {
    std::printf("%s, %s, KV %s: largest error of a logit %.2e\n", GetParam().name.c_str(),
                std::string(isa_name(isa)).c_str(), std::string(kv_type_name(kv_type)).c_str(),
                error);
  }

  std::string path_;
  TinyCase case_;
  bool is_mixture_ = false;
};

TEST_P(Checkpoints, LogitsAndGreedyTokensEqualTransformers) {
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(isa_name(isa));
    const LoadedModel loaded = load(path_, isa, 2);
    const Outcome outcome = run_case(loaded, case_, KvType::f32);
    ASSERT_NO_FATAL_FAILURE(check_shape(outcome));
    const double error = largest_error(outcome, case_);
    EXPECT_LE(error, isa == Isa::reference ? kMaxReferenceError : kMaxFastError);
    for (size_t row = 0; row < case_.logits.size(); ++row) {
      EXPECT_EQ(argmax(outcome.rows[row]), argmax(case_.logits[row])) << "row " << row;
    }
    for (size_t i = 0; i < case_.greedy.size(); ++i) {
      EXPECT_EQ(argmax(outcome.answer_rows[i]), case_.greedy[i]) << "answer token " << i;
    }
    report(isa, KvType::f32, error);
  }
}

// Rounded keys and values move logits a little. Not where a router chooses experts: random weights
// leave choices so close that any rounding changes some, and with them everything.
TEST_P(Checkpoints, RoundedKvTypesMoveLogitsALittle) {
  if (is_mixture_) GTEST_SKIP() << "a mixture of experts";
  const double deviation = standard_deviation(case_.logits);
  for (const Isa isa : available_isas()) {
    const LoadedModel loaded = load(path_, isa, 2);
    for (const KvType kv_type : kKvTypes) {
      if (kv_type == KvType::f32) continue;
      SCOPED_TRACE(std::string(isa_name(isa)) + ", " + std::string(kv_type_name(kv_type)));
      const Outcome outcome = run_case(loaded, case_, kv_type);
      ASSERT_NO_FATAL_FAILURE(check_shape(outcome));
      const double share = mean_square_error(outcome, case_) / deviation;
      EXPECT_LE(share, max_rounded_kv_share(kv_type));
      std::printf("%s, %s, KV %s: error %.5f of the standard deviation\n", GetParam().name.c_str(),
                  std::string(isa_name(isa)).c_str(), std::string(kv_type_name(kv_type)).c_str(),
                  share);
    }
  }
}

// Without reference data there is no instance.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Checkpoints);
INSTANTIATE_TEST_SUITE_P(Models, Checkpoints, testing::ValuesIn(checkpoints()),
                         [](const auto& checkpoint) {
                           std::string name = checkpoint.param.name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(CheckpointList, EveryArchitectureHasACheckpoint) {
  if (checkpoints().empty()) GTEST_SKIP() << "no reference data";
  for (const TinyCheckpoint& one : checkpoints()) {
    const bool is_run = find_hf_architecture(one.architecture) != nullptr;
    std::printf("%s: %s\n", one.name.c_str(), is_run ? "run" : "not run");
  }
  std::printf("conformance/models: %zu cases\n", checkpoints().size());
}

}  // namespace
}  // namespace headrace::golden
