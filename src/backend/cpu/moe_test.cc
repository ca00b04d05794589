// Mixtures of experts on every kernel table: against their products one by one, and against
// themselves in other company.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "backend/cpu/attention_scene.h"
#include "backend/cpu/test_tensors.h"

namespace headrace {
namespace {

using namespace backend_test;

struct MoeCase {
  int64_t num_experts = 5;
  int64_t num_active = 2;
  int64_t features = 64;
  int64_t length = 96;
  int64_t shared_length = 0;
  bool has_shared_score = false;
  Format format = Format::q8_0;
  bool data_stays = false;
  ExpertRouting::Gating gating = ExpertRouting::Gating::softmax;
  bool normalises = true;
  float scale = 1.0F;
  float weight_scale = 1.0F;
};

std::string name_of(const MoeCase& c) {
  return std::string(format_traits(c.format).name) + ", " + std::to_string(c.num_active) + " of " +
         std::to_string(c.num_experts) + " of " + std::to_string(c.length) +
         (c.shared_length > 0 ? ", shared" : "") + (c.data_stays ? ", in the file" : "");
}

std::vector<MoeCase> moe_cases() {
  std::vector<MoeCase> cases = {
      {.num_experts = 1, .num_active = 1},
      {.num_experts = 3, .num_active = 3, .normalises = false},
      {.num_experts = 7, .num_active = 1, .length = 48, .format = Format::f16},
      {.num_experts = 5, .num_active = 2, .length = 48, .shared_length = 160},
      {.num_active = 3, .shared_length = 64, .has_shared_score = true, .scale = 0.22F},
      {.gating = ExpertRouting::Gating::sigmoid, .weight_scale = 2.5F},
      {.gating = ExpertRouting::Gating::sigmoid, .normalises = false},
      {.num_experts = 40, .num_active = 6, .features = 32, .length = 32},
  };
  for (const Format format : {Format::f32, Format::f16, Format::bf16, Format::q4_0, Format::q4_1,
                              Format::q4_k, Format::q6_k, Format::iq4_nl}) {
    for (const bool data_stays : {false, true}) {
      cases.push_back({.features = 256, .length = 256, .format = format, .data_stays = data_stays});
    }
  }
  return cases;
}

/// A block's weights, packed, and the bytes that they were packed from.
class Weights {
 public:
  Weights(Backend& backend, const MoeCase& c) : case_(c), backend_(backend) {
    for (int64_t e = 0; e < c.num_experts; ++e) experts.push_back(make(c.length));
    if (c.shared_length > 0) shared = make(c.shared_length);
  }

  /// Makes numbers of an expert that are none.
  void spoil(size_t expert) {
    const auto cols = case_.features;
    auto data = made_up_blocks(Format::f32, case_.length, cols, 1);
    std::fill(data.begin(), data.end(), std::byte{0xff});
    experts[expert].gate = keep({Format::f32, case_.length, cols, std::move(data)});
  }

  std::vector<Expert> experts;
  std::optional<Expert> shared;

 private:
  struct Source {
    Format format;
    int64_t rows;
    int64_t cols;
    std::vector<std::byte> data;
  };

  Expert make(int64_t length) {
    Expert expert;
    expert.gate = matrix(length, case_.features);
    expert.up = matrix(length, case_.features);
    expert.down = matrix(case_.features, length);
    biases_.push_back(random_rows(1, length, seed_ + 500));
    expert.up_bias = biases_.back().view();
    return expert;
  }

  const Matrix* matrix(int64_t rows, int64_t cols) {
    const auto block = static_cast<int64_t>(format_traits(case_.format).block_elements);
    const Format format = cols % block == 0 ? case_.format : Format::f16;
    return keep({format, rows, cols, made_up_blocks(format, rows, cols, ++seed_)});
  }

  const Matrix* keep(Source source) {
    sources_.push_back(std::make_unique<Source>(std::move(source)));
    const Source& kept = *sources_.back();
    WeightView view{kept.format, kept.rows, kept.cols, kept.data, {}, "w"};
    view.data_stays = case_.data_stays;
    matrices_.push_back(backend_.pack(view).value());
    return matrices_.back().get();
  }

  const MoeCase& case_;
  Backend& backend_;
  uint64_t seed_ = 100;
  std::vector<Buffer> biases_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<std::unique_ptr<Matrix>> matrices_;
};

/// Inputs of some rows.
struct MoeScene {
  MoeScene(const MoeCase& c, int64_t rows)
      : x(uneven_rows(rows, c.features, 1)),
        norm(random_rows(1, c.features, 2)),
        scores(random_rows(rows, c.num_experts, 3, 4.0F)),
        shared_scores(random_rows(rows, 1, 4, 3.0F)) {}
  Buffer x, norm, scores, shared_scores;
};

/// Rows of the block's result, `batch` of them at a time.
struct MoeResult {
  Buffer out;
  Buffer sum;
};

MoeResult run_moe(Backend& backend, const MoeCase& c, const Weights& weights, const MoeScene& scene,
                  int64_t batch) {
  const int64_t rows = scene.x.view().rows;
  MoeResult result{Buffer(DType::f32, rows, c.features), random_rows(rows, c.features, 9)};
  for (int64_t first = 0; first < rows; first += batch) {
    const int64_t n = std::min(batch, rows - first);
    const Buffer scores(DType::f32, n, c.num_experts);
    std::copy_n(scene.scores.view().f32(first), n * c.num_experts, scores.view().f32());
    const Buffer gate(DType::f32, n * c.num_active, c.length);
    const Buffer up(DType::f32, n * c.num_active, c.length);
    const Buffer shared_gate(DType::f32, n, c.shared_length);
    const Buffer shared_up(DType::f32, n, c.shared_length);
    const Buffer parts(DType::f32, n * (c.num_active + (weights.shared ? 1 : 0)), c.features);
    MoeTask task;
    task.input = scene.x.view().slice_rows(first, n);
    task.input.norm = scene.norm.view();
    task.input.norm_eps = 1e-5F;
    task.scores = scores.view();
    task.experts = weights.experts;
    task.routing = {c.num_active, c.gating, c.normalises, c.weight_scale};
    if (weights.shared) task.shared = &*weights.shared;
    if (c.has_shared_score) task.shared_scores = scene.shared_scores.view().slice_rows(first, n);
    task.out = result.out.view().slice_rows(first, n);
    task.add_to = result.sum.view().slice_rows(first, n);
    task.scale = c.scale;
    task.gate = gate.view();
    task.up = up.view();
    task.shared_gate = shared_gate.view();
    task.shared_up = shared_up.view();
    task.parts = parts.view();
    backend.moe(task);
  }
  return result;
}

/// What an expert gives for one row, by other operations.
std::vector<float> run_expert(Backend& backend, const Expert& expert, const MoeScene& scene,
                              int64_t row) {
  const int64_t length = expert.gate->rows();
  const Buffer gate(DType::f32, 1, length);
  const Buffer up(DType::f32, 1, length);
  const Buffer out(DType::f32, 1, expert.down->rows());
  LinearInput input = scene.x.view().slice_rows(row, 1);
  input.norm = scene.norm.view();
  input.norm_eps = 1e-5F;
  const std::array tasks = {LinearTask{expert.gate, expert.gate_bias, gate.view()},
                            LinearTask{expert.up, expert.up_bias, up.view()}};
  backend.linear(input, tasks);
  LinearInput hidden = gate.view();
  hidden.up = up.view();
  backend.linear(hidden, {expert.down, expert.down_bias, out.view()});
  return to_vector(out.view());
}

/// The experts of a row and their weights, the largest first.
std::vector<std::pair<size_t, double>> plain_choice(const MoeCase& c, const float* scores) {
  std::vector<double> probabilities;
  const double largest = *std::max_element(scores, scores + c.num_experts);
  double sum = 0;
  for (int64_t e = 0; e < c.num_experts; ++e) {
    const double score = scores[e];
    const bool is_softmax = c.gating == ExpertRouting::Gating::softmax;
    probabilities.push_back(is_softmax ? std::exp(score - largest) : 1 / (1 + std::exp(-score)));
    sum += is_softmax ? probabilities.back() : 0;
  }
  if (sum > 0) {
    for (double& one : probabilities) one /= sum;
  }
  std::vector<size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return probabilities[a] > probabilities[b]; });
  order.resize(static_cast<size_t>(c.num_active));
  double chosen = 0;
  for (const size_t e : order) chosen += probabilities[e];
  std::vector<std::pair<size_t, double>> out;
  for (const size_t e : order) {
    const double weight = probabilities[e] / (c.normalises ? chosen : 1);
    out.emplace_back(e, weight * double{c.weight_scale});
  }
  return out;
}

class MoeOnTable : public TestOfKernelTable {};

TEST_P(MoeOnTable, IsTheSumOfItsExperts) {
  for (const MoeCase& c : moe_cases()) {
    SCOPED_TRACE(name_of(c));
    const auto backend = backend_with(2);
    const Weights weights(*backend, c);
    const MoeScene scene(c, 21);
    const MoeResult result = run_moe(*backend, c, weights, scene, 21);
    const Buffer before = random_rows(21, c.features, 9);
    for (int64_t row = 0; row < 21; ++row) {
      std::vector<double> expected(static_cast<size_t>(c.features), 0.0);
      std::vector<double> sizes(expected);
      const auto add = [&](const Expert& expert, double weight) {
        const auto part = run_expert(*backend, expert, scene, row);
        for (size_t i = 0; i < part.size(); ++i) {
          expected[i] += double{c.scale} * weight * double{part[i]};
          sizes[i] += std::abs(weight * double{part[i]});
        }
      };
      for (const auto& [e, weight] : plain_choice(c, scene.scores.view().f32(row))) {
        add(weights.experts[e], weight);
      }
      const double score = *scene.shared_scores.view().f32(row);
      if (weights.shared) {
        add(*weights.shared, c.has_shared_score ? 1 / (1 + std::exp(-score)) : 1);
      }
      for (int64_t i = 0; i < c.features; ++i) {
        const auto at = static_cast<size_t>(i);
        ASSERT_NEAR(result.out.view().f32(row)[i], expected[at], 2e-6 * sizes[at] + 1e-9)
            << "row " << row;
        ASSERT_EQ(result.sum.view().f32(row)[i],
                  before.view().f32(row)[i] + result.out.view().f32(row)[i]);
      }
    }
  }
}

TEST_P(MoeOnTable, ARowDoesNotDependOnItsCompanyOrTheThreads) {
  for (const MoeCase& c : moe_cases()) {
    SCOPED_TRACE(name_of(c));
    const MoeScene scene(c, 70);
    std::vector<float> expected;
    for (const int num_threads : {1, 2, 3}) {
      const auto backend = backend_with(num_threads);
      const Weights weights(*backend, c);
      for (const int64_t batch : {1, 2, 7, 33, 70}) {
        const MoeResult result = run_moe(*backend, c, weights, scene, batch);
        if (expected.empty()) expected = to_vector(result.sum.view());
        ASSERT_TRUE(same_bits(to_vector(result.sum.view()), expected))
            << num_threads << " threads, batches of " << batch;
      }
    }
  }
}

TEST_P(MoeOnTable, EqualScoresGoToTheLowerExperts) {
  const MoeCase c{.num_experts = 6, .num_active = 2};
  const auto backend = backend_with(2);
  const Weights weights(*backend, c);
  MoeScene scene(c, 3);
  std::fill_n(scene.scores.view().f32(), 18, 1.0F);
  scene.scores.view().f32(1)[4] = 2.0F;
  scene.scores.view().f32(2)[0] = 0.5F;
  const MoeResult result = run_moe(*backend, c, weights, scene, 3);
  for (int64_t row = 0; row < 3; ++row) {
    const std::array<std::pair<int, int>, 3> chosen = {{{0, 1}, {4, 0}, {1, 2}}};
    const auto [first, second] = chosen[static_cast<size_t>(row)];
    const double ratio = row == 1 ? std::exp(1.0) : 1.0;
    const auto a = run_expert(*backend, weights.experts[static_cast<size_t>(first)], scene, row);
    const auto b = run_expert(*backend, weights.experts[static_cast<size_t>(second)], scene, row);
    for (size_t i = 0; i < a.size(); ++i) {
      const double expected = (ratio * double{a[i]} + double{b[i]}) / (ratio + 1);
      ASSERT_NEAR(result.out.view().f32(row)[i], expected,
                  2e-6 * (std::abs(a[i]) + std::abs(b[i])) + 1e-9);
    }
  }
}

TEST_P(MoeOnTable, ScoresThatAreNoNumbersSpoilTheirRowOnly) {
  const MoeCase c;
  const auto backend = backend_with(2);
  const Weights weights(*backend, c);
  MoeScene scene(c, 4);
  const auto clean = to_vector(run_moe(*backend, c, weights, scene, 4).out.view());
  std::fill_n(scene.scores.view().f32(1), c.num_experts, std::numeric_limits<float>::quiet_NaN());
  scene.scores.view().f32(2)[3] = std::numeric_limits<float>::infinity();
  const auto found = to_vector(run_moe(*backend, c, weights, scene, 4).out.view());
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t row = i / static_cast<size_t>(c.features);
    if (row == 1 || row == 2) {
      ASSERT_TRUE(std::isnan(found[i]));
    } else {
      ASSERT_EQ(found[i], clean[i]);
    }
  }
}

TEST_P(MoeOnTable, ExpertsThatNoRowUsesDoNotMatter) {
  const MoeCase c{.num_experts = 6};
  const auto backend = backend_with(2);
  Weights weights(*backend, c);
  MoeScene scene(c, 5);
  for (int64_t row = 0; row < 5; ++row) scene.scores.view().f32(row)[2] = -50.0F;
  const auto expected = to_vector(run_moe(*backend, c, weights, scene, 5).out.view());
  weights.spoil(2);
  EXPECT_TRUE(same_bits(to_vector(run_moe(*backend, c, weights, scene, 5).out.view()), expected));
  scene.scores.view().f32(0)[2] = 50.0F;
  EXPECT_TRUE(std::isnan(run_moe(*backend, c, weights, scene, 5).out.view().f32()[0]));
}

TEST_P(MoeOnTable, BrokenShapesAreInternalErrors) {
  const auto backend = backend_with(1);
  for (const MoeCase& c : {MoeCase{.num_experts = 2, .num_active = 3}, MoeCase{.num_active = 0}}) {
    const Weights weights(*backend, c);
    const MoeScene scene(c, 2);
    EXPECT_THROW(run_moe(*backend, c, weights, scene, 2), InternalError);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, MoeOnTable, testing::ValuesIn(all_tables()), table_name);

}  // namespace
}  // namespace headrace
