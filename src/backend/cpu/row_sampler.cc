// See row_sampler.h.
#include "backend/cpu/row_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace headrace {
namespace {

/// Rows of one region: bounds the memory.
constexpr size_t kRowsAtOnce = 32;
/// Lists of tokens of a row: of the model's row and of the edited one.
constexpr size_t kTopOfRow = 2 * kMaxTopLogits;

bool wants_models_row(const RowQuery& query) {
  return query.wants_log_sum_exp || query.num_model_top > 0;
}

/// Kept finite, so that a distance of 0 does not become NaN.
float factor_of(float temperature) {
  return std::min(1.0F / temperature, std::numeric_limits<float>::max());
}

double log_sum_exp_of(const RowScan& scan) {
  return static_cast<double>(scan.largest) + std::log(scan.exp_sum);
}

void check(const RowQuery& query, int64_t cols) {
  HEADRACE_CHECK(query.num_top >= 0 && query.num_top <= kMaxTopLogits);
  HEADRACE_CHECK(query.num_model_top >= 0 && query.num_model_top <= kMaxTopLogits);
  HEADRACE_CHECK(query.temperature >= 0);
  HEADRACE_CHECK(query.draw < 1 && (query.draw < 0 || query.temperature > 0));
  for (const LogitEdit& edit : query.edits) HEADRACE_CHECK(edit.id >= 0 && edit.id < cols);
}

/// Looks at the model's row where the edited one has no finite largest logit: the edits may be the
/// reason. Undoes them if they are not.
void find_fault(std::span<float> row, std::span<const LogitEdit> edits, RowSummary& out) {
  for (const LogitEdit& edit : edits) row[static_cast<size_t>(edit.id)] = edit.original;
  out.fault = find_logit_fault(row, out.fault_token);
  if (out.fault != LogitFault::none) return;
  for (const LogitEdit& edit : edits) {
    row[static_cast<size_t>(edit.id)] = edited_logit(edit, edit.original);
  }
}

}  // namespace

void RowSampler::reserve(int64_t max_rows, int64_t cols) {
  const auto rows = static_cast<size_t>(max_rows);
  const size_t at_once = std::min(rows, kRowsAtOnce);
  scanner_.reserve(at_once, cols);
  scans_.reserve(at_once);
  if (top_.size() < rows * kTopOfRow) top_.resize(rows * kTopOfRow);
}

void RowSampler::sample(const Tensor& logits, std::span<const RowQuery> queries,
                        std::span<RowSummary> out) {
  const size_t num_rows = queries.size();
  HEADRACE_CHECK_EQ(logits.rows, static_cast<int64_t>(num_rows));
  HEADRACE_CHECK_EQ(out.size(), num_rows);
  for (const RowQuery& query : queries) check(query, logits.cols);
  if (top_.size() < num_rows * kTopOfRow) top_.resize(num_rows * kTopOfRow);
  for (size_t begin = 0; begin < num_rows; begin += kRowsAtOnce) {
    const size_t count = std::min(kRowsAtOnce, num_rows - begin);
    sample_some(logits.slice_rows(static_cast<int64_t>(begin), static_cast<int64_t>(count)),
                queries.subspan(begin, count), out.subspan(begin, count),
                top_.data() + begin * kTopOfRow);
  }
}

void RowSampler::sample_some(const Tensor& logits, std::span<const RowQuery> queries,
                             std::span<RowSummary> out, TokenLogit* top) {
  for (RowSummary& one : out) one = {};
  scan_models_rows(logits, queries, out, top);
  edit(logits, queries);
  scans_.clear();
  for (size_t i = 0; i < queries.size(); ++i) {
    const RowQuery& query = queries[i];
    RowScan scan;
    scan.row = logits.f32(static_cast<int64_t>(i));
    scan.top = top + i * kTopOfRow + kMaxTopLogits;
    scan.num_top = query.num_top;
    if (query.temperature > 0) scan.factor = factor_of(query.temperature);
    scan.draw = query.draw;
    if (query.edits.empty()) {
      scan.num_top = std::max(query.num_top, query.num_model_top);
      scan.wants_exp_sum = query.wants_log_sum_exp;
    }
    scans_.push_back(scan);
  }
  scanner_.run(scans_, logits.cols);
  for (size_t i = 0; i < queries.size(); ++i) {
    const RowQuery& query = queries[i];
    const RowScan& scan = scans_[i];
    RowSummary& summary = out[i];
    if (!std::isfinite(scan.largest)) {
      const std::span row(logits.f32(static_cast<int64_t>(i)), static_cast<size_t>(logits.cols));
      find_fault(row, query.edits, summary);
      if (summary.fault != LogitFault::none) {
        summary = {.fault = summary.fault, .fault_token = summary.fault_token};
        continue;
      }
    }
    summary.largest = scan.largest;
    summary.best = scan.best;
    summary.total_weight = scan.total_weight;
    summary.drawn = scan.drawn;
    if (scan.drawn >= 0) summary.drawn_logit = scan.row[scan.drawn];
    const auto found = [&](int32_t wanted) {
      return std::span<const TokenLogit>(scan.top,
                                         static_cast<size_t>(std::min(wanted, scan.num_found)));
    };
    summary.top = found(query.num_top);
    if (query.edits.empty()) {
      summary.model_top = found(query.num_model_top);
      if (query.wants_log_sum_exp) summary.log_sum_exp = log_sum_exp_of(scan);
    }
  }
}

/// What is wanted of rows before they are edited.
void RowSampler::scan_models_rows(const Tensor& logits, std::span<const RowQuery> queries,
                                  std::span<RowSummary> out, TokenLogit* top) {
  const auto is_wanted = [](const RowQuery& query) {
    return !query.edits.empty() && wants_models_row(query);
  };
  scans_.clear();
  for (size_t i = 0; i < queries.size(); ++i) {
    if (!is_wanted(queries[i])) continue;
    RowScan scan;
    scan.row = logits.f32(static_cast<int64_t>(i));
    scan.top = top + i * kTopOfRow;
    scan.num_top = queries[i].num_model_top;
    scan.wants_exp_sum = queries[i].wants_log_sum_exp;
    scans_.push_back(scan);
  }
  scanner_.run(scans_, logits.cols);
  size_t next = 0;
  for (size_t i = 0; i < queries.size(); ++i) {
    if (!is_wanted(queries[i])) continue;
    const RowScan& scan = scans_[next++];
    out[i].model_top = {scan.top, static_cast<size_t>(scan.num_found)};
    if (scan.wants_exp_sum) out[i].log_sum_exp = log_sum_exp_of(scan);
  }
}

void RowSampler::edit(const Tensor& logits, std::span<const RowQuery> queries) {
  int64_t longest = 0;
  for (const RowQuery& query : queries) {
    longest = std::max(longest, static_cast<int64_t>(query.edits.size()));
  }
  // An edit reads from memory that another thread may have written: about 30 times an element's
  // usual work.
  context_.for_rows(logits.rows, 30 * longest, [&](int64_t r) {
    float* const row = logits.f32(r);
    const std::span<LogitEdit> edits = queries[static_cast<size_t>(r)].edits;
    // Apart, so that many loads are under way at once.
    for (LogitEdit& one : edits) one.original = row[one.id];
    for (const LogitEdit& one : edits) row[one.id] = edited_logit(one, one.original);
  });
}

void RowSampler::argmax(const Tensor& logits, std::span<TokenId> out) {
  HEADRACE_CHECK_EQ(logits.rows, static_cast<int64_t>(out.size()));
  for (size_t begin = 0; begin < out.size(); begin += kRowsAtOnce) {
    const size_t count = std::min(kRowsAtOnce, out.size() - begin);
    scans_.clear();
    for (size_t i = begin; i < begin + count; ++i) {
      RowScan& scan = scans_.emplace_back();
      scan.row = logits.f32(static_cast<int64_t>(i));
    }
    scanner_.run(scans_, logits.cols);
    for (size_t i = 0; i < count; ++i) out[begin + i] = scans_[i].best;
  }
}

}  // namespace headrace
