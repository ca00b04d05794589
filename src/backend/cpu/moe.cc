// See moe.h.
#include "backend/cpu/moe.h"

#include <algorithm>

#include "backend/cpu/linear.h"

namespace headrace {
namespace {

void check_expert(const Expert& expert, int64_t features, int64_t length, int64_t outputs) {
  HEADRACE_CHECK(expert.gate != nullptr && expert.up != nullptr && expert.down != nullptr);
  for (const Matrix* matrix : {expert.gate, expert.up}) {
    HEADRACE_CHECK_EQ(matrix->rows(), length);
    HEADRACE_CHECK_EQ(matrix->cols(), features);
  }
  HEADRACE_CHECK_EQ(expert.down->rows(), outputs);
  HEADRACE_CHECK_EQ(expert.down->cols(), length);
}

void check_shape(const Tensor& x, int64_t rows, int64_t cols) {
  HEADRACE_CHECK_EQ(x.rows, rows);
  HEADRACE_CHECK_EQ(x.cols, cols);
}

void check_moe(const MoeTask& task) {
  const int64_t rows = task.input.x.rows;
  const int64_t features = task.input.x.cols;
  const auto num_experts = static_cast<int64_t>(task.experts.size());
  const int64_t num_active = task.routing.num_active;
  HEADRACE_CHECK(num_active >= 1 && num_active <= num_experts);
  check_shape(task.scores, rows, num_experts);
  const int64_t length = task.experts[0].gate->rows();
  for (const Expert& expert : task.experts) check_expert(expert, features, length, task.out.cols);
  check_shape(task.gate, rows * num_active, length);
  check_shape(task.up, rows * num_active, length);
  check_shape(task.out, rows, task.out.cols);
  check_shape(task.parts, rows * (num_active + (task.shared != nullptr ? 1 : 0)), task.out.cols);
  if (task.add_to.data != nullptr) check_shape(task.add_to, rows, task.out.cols);
  if (task.shared == nullptr) return;
  check_expert(*task.shared, features, task.shared->gate->rows(), task.out.cols);
  check_shape(task.shared_gate, rows, task.shared->gate->rows());
  check_shape(task.shared_up, rows, task.shared->gate->rows());
  if (task.shared_scores.data != nullptr) check_shape(task.shared_scores, rows, 1);
}

}  // namespace

void CpuMoe::run(const MoeTask& task) {
  if (task.input.x.rows == 0) return;
  check_moe(task);
  choose(task);
  order_by_expert(task);
  multiply_up(task);
  multiply_down(task);
  add_parts(task);
}

void CpuMoe::choose(const MoeTask& task) {
  const auto pairs = static_cast<size_t>(task.input.x.rows * task.routing.num_active);
  experts_.resize(pairs);
  weights_.resize(pairs);
  places_.resize(pairs);
  rows_.resize(pairs);
  const auto num_experts = static_cast<int64_t>(task.experts.size());
  context_.for_rows(task.input.x.rows, num_experts * (4 + task.routing.num_active),
                    [&](int64_t row) { choose_row(task, row); });
}

void CpuMoe::choose_row(const MoeTask& task, int64_t row) {
  const ExpertRouting& routing = task.routing;
  const KernelTable& kernels = context_.kernels;
  float* probabilities = task.scores.f32(row);
  const int64_t num_experts = task.scores.cols;
  if (routing.gating == ExpertRouting::Gating::softmax) {
    kernels.softmax(probabilities, num_experts, probabilities);
  } else {
    kernels.sigmoid(probabilities, num_experts, probabilities);
  }
  int32_t* chosen = experts_.data() + row * routing.num_active;
  float* weights = weights_.data() + row * routing.num_active;
  float sum = 0.0F;
  for (int64_t rank = 0; rank < routing.num_active; ++rank) {
    int32_t best = -1;  // where there are no numbers, the first that is left
    for (int32_t e = 0; e < num_experts; ++e) {
      if (std::find(chosen, chosen + rank, e) != chosen + rank) continue;
      if (best < 0 || probabilities[e] > probabilities[best]) best = e;
    }
    chosen[rank] = best;
    weights[rank] = probabilities[best];
    sum += weights[rank];
  }
  for (int64_t rank = 0; rank < routing.num_active; ++rank) {
    if (routing.normalises) weights[rank] /= sum;
    weights[rank] *= routing.scale;
  }
}

void CpuMoe::order_by_expert(const MoeTask& task) {
  const size_t num_experts = task.experts.size();
  first_places_.assign(num_experts + 1, 0);
  for (const int32_t expert : experts_) ++first_places_[static_cast<size_t>(expert) + 1];
  for (size_t e = 0; e < num_experts; ++e) first_places_[e + 1] += first_places_[e];
  // Rows of an expert keep their order. Each first place runs to the next one's.
  for (size_t pair = 0; pair < experts_.size(); ++pair) {
    const int64_t place = first_places_[static_cast<size_t>(experts_[pair])]++;
    places_[pair] = static_cast<int32_t>(place);
    rows_[static_cast<size_t>(place)] =
        static_cast<int32_t>(static_cast<int64_t>(pair) / task.routing.num_active);
  }
  for (size_t e = num_experts; e > 0; --e) first_places_[e] = first_places_[e - 1];
  first_places_[0] = 0;
}

void CpuMoe::multiply_up(const MoeTask& task) {
  tasks_.clear();
  groups_.clear();
  tasks_.reserve(2 * (task.experts.size() + 1));  // groups point into it
  const auto add_group = [&](const Expert& expert, std::span<const int32_t> rows,
                             const Tensor& gate, const Tensor& up) {
    tasks_.push_back({expert.gate, expert.gate_bias, gate});
    tasks_.push_back({expert.up, expert.up_bias, up});
    LinearGroup& group = groups_.emplace_back();
    group.input = task.input;
    group.rows = rows;
    group.tasks = std::span(tasks_).last(2);
    // One row is the same for all of its experts.
    group.has_rows_of_last = task.input.x.rows == 1 && groups_.size() > 1;
  };
  for (size_t e = 0; e < task.experts.size(); ++e) {
    const int64_t first = first_places_[e];
    const int64_t count = first_places_[e + 1] - first;
    if (count == 0) continue;
    add_group(task.experts[e],
              std::span(rows_).subspan(static_cast<size_t>(first), static_cast<size_t>(count)),
              task.gate.slice_rows(first, count), task.up.slice_rows(first, count));
  }
  if (task.shared != nullptr) add_group(*task.shared, {}, task.shared_gate, task.shared_up);
  cpu_linear_groups(context_, groups_);
}

void CpuMoe::multiply_down(const MoeTask& task) {
  tasks_.clear();
  groups_.clear();
  tasks_.reserve(task.experts.size() + 1);
  const auto add_group = [&](const Expert& expert, const Tensor& gate, const Tensor& up,
                             const Tensor& out) {
    tasks_.push_back({expert.down, expert.down_bias, out});
    LinearGroup& group = groups_.emplace_back();
    group.input = gate;
    group.input.up = up;
    group.input.activation = task.activation;
    group.tasks = std::span(tasks_).last(1);
  };
  for (size_t e = 0; e < task.experts.size(); ++e) {
    const int64_t first = first_places_[e];
    const int64_t count = first_places_[e + 1] - first;
    if (count == 0) continue;
    add_group(task.experts[e], task.gate.slice_rows(first, count), task.up.slice_rows(first, count),
              task.parts.slice_rows(first, count));
  }
  if (task.shared != nullptr) {
    const int64_t rows = task.input.x.rows;
    add_group(*task.shared, task.shared_gate, task.shared_up,
              task.parts.slice_rows(rows * task.routing.num_active, rows));
  }
  cpu_linear_groups(context_, groups_);
}

void CpuMoe::add_parts(const MoeTask& task) {
  context_.for_rows(task.out.rows, (task.routing.num_active + 2) * task.out.cols,
                    [&](int64_t row) { add_parts_of_row(task, row); });
}

void CpuMoe::add_parts_of_row(const MoeTask& task, int64_t row) const {
  const KernelTable& kernels = context_.kernels;
  const int64_t num_active = task.routing.num_active;
  const int64_t cols = task.out.cols;
  float* out = task.out.f32(row);
  for (int64_t rank = 0; rank < num_active; ++rank) {
    const auto pair = static_cast<size_t>(row * num_active + rank);
    const float* part = task.parts.f32(places_[pair]);
    if (rank == 0) {
      kernels.scale(part, weights_[pair], cols, out);
    } else {
      kernels.add_scaled(out, part, weights_[pair], cols);
    }
  }
  if (task.shared != nullptr) {
    const float* part = task.parts.f32(task.out.rows * num_active + row);
    float weight = 1.0F;
    if (task.shared_scores.data != nullptr) kernels.gate(&weight, *task.shared_scores.f32(row), 1);
    kernels.add_scaled(out, part, weight, cols);
  }
  if (task.scale != 1.0F) kernels.scale(out, task.scale, cols, out);
  if (task.add_to.data != nullptr) kernels.add(task.add_to.f32(row), out, cols);
}

}  // namespace headrace
