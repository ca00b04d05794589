// Mixtures of experts: each row's choice, its rows grouped by expert, the sum of what they give.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/context.h"
#include "backend/cpu/linear_group.h"

namespace headrace {

/// Backend::moe. Keeps its lists from one call to the next. One row takes two parallel regions,
/// one for gate and up of all its experts and one for down, besides what the shares need.
class CpuMoe {
 public:
  explicit CpuMoe(CpuContext& context) : context_(context) {}

  void run(const MoeTask& task);

 private:
  void choose(const MoeTask& task);
  void choose_row(const MoeTask& task, int64_t row);
  void order_by_expert(const MoeTask& task);
  void multiply_up(const MoeTask& task);
  void multiply_down(const MoeTask& task);
  void add_parts(const MoeTask& task);
  void add_parts_of_row(const MoeTask& task, int64_t row) const;

  CpuContext& context_;
  // By row and rank, [rows * num_active]. A place is where the row lies among those of its expert,
  // in MoeTask::gate, up and parts.
  std::vector<int32_t> experts_;
  std::vector<float> weights_;
  std::vector<int32_t> places_;
  std::vector<int32_t> rows_;          ///< by place
  std::vector<int64_t> first_places_;  ///< by expert, and the end
  std::vector<LinearTask> tasks_;
  std::vector<LinearGroup> groups_;
};

}  // namespace headrace
