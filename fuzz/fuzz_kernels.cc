// Products and operations on rows, from any weights and activations, on every instruction set of
// the machine: on one level a row has the same bits whatever its company, the threads, and where
// the weights lie; and every level is near double precision.
//
// Input: format, columns, outputs, rows, threads and switches, a byte each, then the blocks of the
// weights and the rows of activations (kernel_input.h).
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/linear.h"
#include "backend/cpu/matrix.h"
#include "fuzz/kernel_input.h"
#include "fuzz/kernel_rows.h"

namespace {

using namespace headrace;
using namespace headrace::fuzzing;

struct Problem {
  Format format = Format::f32;
  int64_t cols = 0;
  int64_t outputs = 0;
  int64_t rows = 0;
  std::vector<std::byte> blocks;
  std::vector<int32_t> order;  ///< of the weights' rows; may be empty
  Buffer x;
  Buffer bias;
  bool has_bias = false;

  std::string text() const {
    return std::string(format_traits(format).name) + " x[" + std::to_string(rows) + ", " +
           std::to_string(cols) + "] -> " + std::to_string(outputs);
  }
};

[[noreturn]] void fail(const KernelTable& table, const Problem& problem, const std::string& what) {
  std::fprintf(stderr, "%s: %s: %s\n", table.name, problem.text().c_str(), what.c_str());
  std::abort();
}

/// Scales of blocks: as they come (0), finite ones of any size (1), of a size that models have (2).
void tame_scales(Format format, int64_t how, std::span<std::byte> blocks) {
  const FormatTraits& traits = format_traits(format);
  for (size_t block = 0; block < blocks.size() && how > 0; block += traits.block_bytes) {
    for (const size_t offset : backend_test::half_offsets(format)) {
      uint16_t half;
      std::memcpy(&half, blocks.data() + block + offset, 2);
      if (how == 1 && (half & 0x7c00) == 0x7c00) half ^= 0x4000;
      if (how == 2) half = static_cast<uint16_t>((half & 0x83ff) | 0x2000);
      std::memcpy(blocks.data() + block + offset, &half, 2);
    }
  }
}

Problem read_problem(Bytes& bytes) {
  Problem out;
  const auto formats = all_formats();
  const FormatTraits& traits = formats[static_cast<size_t>(bytes.below(std::ssize(formats)))];
  out.format = traits.format;
  const uint8_t cols = bytes.byte();
  // Formats without blocks have any number of columns, and as integers multiples of 32.
  out.cols = traits.block_elements == 1 && cols % 2 == 0
                 ? 1 + cols % 101
                 : (1 + cols / 2 % 3) * std::max<int64_t>(traits.block_elements, 32);
  out.outputs = 1 + bytes.below(40);
  out.rows = 1 + bytes.below(19);
  const int64_t taming = bytes.below(4);
  out.has_bias = bytes.below(2) == 1;
  const bool is_permuted = bytes.below(2) == 1;
  out.blocks.resize(*format_row_bytes(out.format, static_cast<uint64_t>(out.cols)) *
                    static_cast<size_t>(out.outputs));
  for (std::byte& byte : out.blocks) byte = static_cast<std::byte>(bytes.byte());
  tame_scales(out.format, taming, out.blocks);
  if (is_permuted) {
    for (int64_t i = 0; i < out.outputs; ++i) {
      out.order.push_back(static_cast<int32_t>(out.outputs - 1 - i));
    }
  }
  out.x = Buffer(DType::f32, out.rows, out.cols);
  for (int64_t r = 0; r < out.rows; ++r) {
    fill_row(bytes, {out.x.view().f32(r), static_cast<size_t>(out.cols)});
  }
  out.bias = Buffer(DType::f32, 1, out.outputs);
  for (int64_t o = 0; o < out.outputs; ++o) out.bias.view().f32()[o] = bytes.small();
  return out;
}

/// Weights as the reference decode gives them, in the order of outputs, and for each what its parts
/// come to: a scale's share and a minimum's may cancel each other, their rounding does not.
struct Weights {
  std::vector<float> values;
  std::vector<float> sizes;
};

Weights decode(const Problem& problem) {
  const bool has_min = problem.format == Format::q4_1 || problem.format == Format::q5_1;
  const bool has_negative_min = problem.format == Format::q4_k || problem.format == Format::q5_k ||
                                problem.format == Format::q2_k;
  std::vector<std::byte> positive = problem.blocks;
  if (has_min || has_negative_min) {
    const auto offsets = backend_test::half_offsets(problem.format);
    for (size_t block = 0; block < positive.size();
         block += format_traits(problem.format).block_bytes) {
      // Little-endian: the sign is in the second byte.
      std::byte& scale = positive[block + offsets[0] + 1];
      std::byte& min = positive[block + offsets[1] + 1];
      scale &= std::byte{0x7f};
      min = has_min ? min & std::byte{0x7f} : min | std::byte{0x80};
    }
  }
  const auto values = backend_test::decode_all(problem.format, problem.blocks);
  const auto sizes = backend_test::decode_all(problem.format, positive);
  Weights out;
  for (int64_t o = 0; o < problem.outputs; ++o) {
    const int64_t row = problem.order.empty() ? o : problem.order[static_cast<size_t>(o)];
    const auto begin = row * problem.cols;
    out.values.insert(out.values.end(), values.begin() + begin,
                      values.begin() + begin + problem.cols);
    out.sizes.insert(out.sizes.end(), sizes.begin() + begin, sizes.begin() + begin + problem.cols);
  }
  return out;
}

CpuContext& context_of(const KernelTable& table, int num_threads) {
  static std::map<std::pair<const KernelTable*, int>, std::unique_ptr<CpuContext>> contexts;
  auto& context = contexts[{&table, num_threads}];
  if (!context) context = std::make_unique<CpuContext>(table, num_threads);
  return *context;
}

std::unique_ptr<CpuMatrix> matrix_of(const Problem& problem, const KernelTable& table, bool stays) {
  static WeightMemory memory;
  WeightView view{problem.format, problem.outputs, problem.cols,
                  problem.blocks, problem.order,   "w"};
  view.data_stays = stays;
  auto matrix = CpuMatrix::pack(view, context_of(table, 1).pool, packing_for(table), memory);
  if (!matrix.ok()) fail(table, problem, matrix.error().to_string());
  return std::move(*matrix);
}

/// The product, `batch` rows at a time.
std::vector<float> product(const Problem& problem, const KernelTable& table,
                           const CpuMatrix& matrix, int num_threads, int64_t batch) {
  const Buffer out(DType::f32, problem.rows, problem.outputs);
  for (int64_t r = 0; r < problem.rows; r += batch) {
    const int64_t n = std::min(batch, problem.rows - r);
    const Tensor bias = problem.has_bias ? problem.bias.view() : Tensor{};
    const LinearTask task{&matrix, bias, out.view().slice_rows(r, n)};
    cpu_linear(context_of(table, num_threads), problem.x.view().slice_rows(r, n),
               std::span(&task, 1));
  }
  return backend_test::to_vector(out.view());
}

void expect_same(const Problem& problem, const KernelTable& table, const std::vector<float>& a,
                 const std::vector<float>& b, const std::string& what) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (same_number(a[i], b[i])) continue;
    fail(table, problem,
         what + " changes element " + std::to_string(i) + " from " + std::to_string(a[i]) + " to " +
             std::to_string(b[i]));
  }
}

/// Whether activations as integers are no numbers, or so large that they count as none.
bool is_spoilt(const float* x, int64_t cols) {
  for (int64_t k = 0; k < cols; ++k) {
    if (!(std::abs(x[k]) < 1e30F)) return true;
  }
  return false;
}

/// What a product may lose where numbers below the normal range count as 0.
double lost_below_normal(const float* x, const float* w, int64_t cols) {
  constexpr double kLeast = std::numeric_limits<float>::min();
  double sum = 1e-30;
  for (int64_t k = 0; k < cols; ++k) {
    if (std::abs(x[k]) < kLeast || std::abs(w[k]) < kLeast)
      sum += std::abs(double{x[k]} * double{w[k]});
  }
  return sum;
}

void expect_near_double(const Problem& problem, const KernelTable& table, const CpuMatrix& matrix,
                        const Weights& weights, const std::vector<float>& found) {
  const bool integers = matrix.input_form() == InputForm::integers;
  const bool tiles = matrix.input_form() == InputForm::tiles;
  // Roundings of float32 on the way of one element.
  const double num_roundings =
      16.0 + static_cast<double>(integers ? problem.cols / 8 : problem.cols);
  for (int64_t r = 0; r < problem.rows; ++r) {
    const float* x = problem.x.view().f32(r);
    const bool spoilt = integers && is_spoilt(x, problem.cols);
    for (int64_t o = 0; o < problem.outputs; ++o) {
      const float* w = weights.values.data() + o * problem.cols;
      const float* part_sizes = weights.sizes.data() + o * problem.cols;
      double expected = problem.has_bias ? problem.bias.view().f32()[o] : 0.0;
      double size = std::abs(expected);
      for (int64_t k = 0; k < problem.cols; ++k) {
        expected += double{x[k]} * double{w[k]};
        size += std::abs(double{x[k]} * double{part_sizes[k]});
      }
      const float value = found[static_cast<size_t>(r * problem.outputs + o)];
      const std::string place = " at row " + std::to_string(r) + ", output " + std::to_string(o);
      if (spoilt || !std::isfinite(expected)) {
        if (std::isfinite(value)) fail(table, problem, "a number where there is none" + place);
        continue;
      }
      if (!(size < kNearOverflow)) continue;
      double allowed = num_roundings * 0x1p-24 * size + 1e-36;
      if (integers) {
        allowed +=
            1.01 * backend_test::activation_rounding(table.has_wide_steps, x, w, problem.cols);
      }
      // Weights and activations are rounded to 8 bits, each by at most 2^-8 of itself; what is
      // below the normal range becomes 0.
      if (tiles) allowed += (0x1p-7 + 0x1p-15) * size + lost_below_normal(x, w, problem.cols);
      if (!(std::abs(value - expected) <= allowed)) {
        fail(table, problem,
             "found " + std::to_string(value) + ", expected " + std::to_string(expected) +
                 " give or take " + std::to_string(allowed) + place);
      }
    }
  }
}

void check_products(const Problem& problem, Bytes& bytes) {
  const Weights weights = decode(problem);
  const int num_threads = 1 + static_cast<int>(bytes.below(3));
  const int64_t batch = 1 + bytes.below(problem.rows);
  for (const Isa isa : available_isas()) {
    std::vector<float> of_level;
    for (const KernelTable* table : kernel_tables(isa)) {
      const auto packed = matrix_of(problem, *table, false);
      const auto found = product(problem, *table, *packed, 1, problem.rows);
      if (of_level.empty()) {
        of_level = found;
        expect_near_double(problem, *table, *packed, weights, found);
      }
      expect_same(problem, *table, of_level, found, "the width of vectors");
      expect_same(problem, *table, found, product(problem, *table, *packed, num_threads, batch),
                  "company, or the number of threads,");
      const auto in_place = matrix_of(problem, *table, true);
      expect_same(problem, *table, found,
                  product(problem, *table, *in_place, num_threads, problem.rows),
                  "where weights lie");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  if (bytes.below(4) == 0) {
    check_rows(bytes);
  } else {
    check_products(read_problem(bytes), bytes);
  }
  return 0;
}
