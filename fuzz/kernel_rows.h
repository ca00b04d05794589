// The operations on rows, of every instruction set, on any numbers against double precision; the
// tables of one level agree in every bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backend/cpu/kernels/tables.h"
#include "fuzz/kernel_input.h"
#include "tensor/half.h"

namespace headrace::fuzzing {

/// What one operation gave, and what it should give: `expected` give or take `allowed`. Not finite:
/// nothing finite may come out. An infinite `allowed`: anything may.
struct RowResult {
  std::string name;
  std::vector<float> found;
  std::vector<double> expected;
  std::vector<double> allowed;

  void expect(double value, double error) {
    expected.push_back(value);
    allowed.push_back(std::abs(value) < kNearOverflow || !std::isfinite(value)
                          ? error
                          : std::numeric_limits<double>::infinity());
  }
};

/// Rows that operations work on; b has numbers of a size that norms and activations have.
struct RowInput {
  std::vector<float> a;
  std::vector<float> b;
  float cap = 1.0F;
};

inline RowResult rms_norm_result(const KernelTable& table, const RowInput& in) {
  RowResult out{"rms_norm", in.a, {}, {}};
  const auto n = static_cast<int64_t>(in.a.size());
  table.rms_norm(in.a.data(), in.b.data(), n, 1e-5F, out.found.data());
  double sum = 0;
  for (const float x : in.a) sum += double{x} * double{x};
  const double inverse = 1.0 / std::sqrt(sum / static_cast<double>(n) + 1e-5);
  for (size_t i = 0; i < in.a.size(); ++i) {
    const double value = double{in.a[i]} * inverse * double{in.b[i]};
    // A sum of squares past float32 gives zeros or no numbers.
    out.expect(value, sum < kNearOverflow ? 2e-6 * std::abs(value) + 1e-36 : HUGE_VAL);
  }
  return out;
}

inline RowResult layer_norm_result(const KernelTable& table, const RowInput& in) {
  RowResult out{"layer_norm", in.a, {}, {}};
  const auto n = static_cast<int64_t>(in.a.size());
  table.layer_norm(in.a.data(), in.b.data(), in.b.data(), n, 1e-5F, out.found.data());
  double mean = 0;
  double largest = 0;
  for (const float x : in.a) {
    mean += double{x} / static_cast<double>(n);
    largest = std::max(largest, std::abs(double{x}));
  }
  double squares = 0;
  for (const float x : in.a) squares += (double{x} - mean) * (double{x} - mean);
  const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
  for (size_t i = 0; i < in.a.size(); ++i) {
    const double weight = in.b[i];
    const double value = (double{in.a[i]} - mean) * inverse * weight + weight;
    // The mean is known to the last bits of the largest number. Squares of what that leaves, or
    // past float32, may be anything.
    const double error = 1e-5 * largest * inverse;
    const bool may_be_anything = !(error < 0.1) || !(squares < kNearOverflow);
    out.expect(value, may_be_anything ? HUGE_VAL
                                      : 2 * error * std::abs(weight) * (1 + std::abs(value)) +
                                            2e-6 * (std::abs(value) + std::abs(weight)) + 1e-36);
  }
  return out;
}

inline double silu(double x) {
  return x < -700 ? 0.0 : x / (1.0 + std::exp(-x));
}
inline double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::silu:
      return silu(x);
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::quick_gelu:
      return silu(1.702 * x) / 1.702;
    case Activation::relu:
      return std::max(x, 0.0);
  }
  return x;
}

inline RowResult activation_result(const KernelTable& table, const RowInput& in,
                                   Activation activation) {
  RowResult out{"activation " + std::to_string(static_cast<int>(activation)), in.a, {}, {}};
  table.activate(activation, in.a.data(), in.b.data(), static_cast<int64_t>(in.a.size()),
                 out.found.data());
  for (size_t i = 0; i < in.a.size(); ++i) {
    const double x = in.a[i];
    const double up = in.b[i];
    const double value = activated(activation, x) * up;
    // A number times zero, on the way to the limit at infinity, may be none.
    const bool may_be_anything = std::isinf(x) || std::abs(x) > 1e30;
    out.expect(value, may_be_anything ? HUGE_VAL : 2e-6 * std::abs(x * up) + 1e-36);
  }
  return out;
}

inline RowResult limit_result(const KernelTable& table, const RowInput& in) {
  RowResult out{"clamp, gate", in.a, {}, {}};
  const auto n = static_cast<int64_t>(in.a.size());
  table.clamp(out.found.data(), in.cap, n);
  const float gate = in.b[0];
  table.gate(out.found.data(), gate, n);
  for (const float x : in.a) {
    const double clamped =
        std::isnan(x) ? double{x} : std::clamp(double{x}, -double{in.cap}, double{in.cap});
    const double value = clamped / (1.0 + std::exp(-double{gate}));
    out.expect(value, 2e-6 * std::abs(value) + 1e-36);
  }
  return out;
}

inline RowResult weights_result(const KernelTable& table, const RowInput& in) {
  RowResult out{"softmax, add_scaled", in.a, {}, {}};
  const auto n = static_cast<int64_t>(in.a.size());
  table.softmax(in.b.data(), n, out.found.data());
  table.add_scaled(out.found.data(), in.b.data(), 0.5F, n);
  const double largest = *std::max_element(in.b.begin(), in.b.end());
  double sum = 0;
  for (const float x : in.b) sum += std::exp(double{x} - largest);
  for (const float x : in.b) {
    const double weight = std::exp(double{x} - largest) / sum;
    out.expect(weight + 0.5 * double{x}, 2e-6 * (weight + std::abs(double{x})) + 1e-36);
  }
  return out;
}

inline RowResult soft_cap_result(const KernelTable& table, const RowInput& in) {
  RowResult out{"soft_cap", in.a, {}, {}};
  table.soft_cap(out.found.data(), in.cap, static_cast<int64_t>(in.a.size()));
  for (const float x : in.a) {
    const double value = in.cap * std::tanh(double{x} / in.cap);
    out.expect(value, std::isinf(x) ? HUGE_VAL : 2e-6 * in.cap);
  }
  return out;
}

inline RowResult rope_result(const KernelTable& table, const RowInput& in) {
  RowResult out{"rope_neox", in.a, {}, {}};
  const size_t pairs = in.a.size() / 2;
  const float* cos = in.b.data();
  const float* sin = in.b.data() + pairs;
  table.rope_neox(out.found.data(), cos, sin, static_cast<int64_t>(pairs));
  for (size_t i = 0; i < in.a.size(); ++i) {
    if (i >= 2 * pairs) {
      out.expect(in.a[i], 0);
      continue;
    }
    const size_t pair = i % pairs;
    const double first = in.a[pair];
    const double second = in.a[pair + pairs];
    const double value = i >= pairs ? second * double{cos[pair]} + first * double{sin[pair]}
                                    : first * double{cos[pair]} - second * double{sin[pair]};
    out.expect(value, 1e-6 * (std::abs(first) + std::abs(second)) + 1e-36);
  }
  return out;
}

inline RowResult sum_result(const KernelTable& table, const RowInput& in) {
  RowResult out{"add, scale", in.a, {}, {}};
  const auto n = static_cast<int64_t>(in.a.size());
  table.add(out.found.data(), in.b.data(), n);
  table.scale(out.found.data(), in.cap, n, out.found.data());
  for (size_t i = 0; i < in.a.size(); ++i) {
    const float sum = in.a[i] + in.b[i];
    out.expect(sum * in.cap, 0);
  }
  return out;
}

inline RowResult argmax_result(const KernelTable& table, const RowInput& in) {
  RowResult out{"argmax, to_f16", {}, {}, {}};
  const auto n = static_cast<int64_t>(in.a.size());
  out.found.push_back(static_cast<float>(table.argmax(in.a.data(), n)));
  const bool has_nan = std::any_of(in.a.begin(), in.a.end(), [](float x) { return std::isnan(x); });
  const auto largest = std::max_element(in.a.begin(), in.a.end()) - in.a.begin();
  out.expect(has_nan ? -1.0 : static_cast<double>(largest), 0);
  std::vector<uint16_t> halves(in.a.size());
  table.to_f16(in.a.data(), n, halves.data());
  for (size_t i = 0; i < in.a.size(); ++i) {
    const float x = in.a[i];
    out.found.push_back(f16_to_f32(halves[i]));
    // Half a unit of 11 bits, or of the smallest numbers.
    const double clamped = std::clamp(double{x}, -65504.0, 65504.0);
    out.expect(std::isnan(x) ? double{x} : clamped, std::abs(clamped) * 0x1p-11 + 0x1p-25);
  }
  return out;
}

inline std::vector<RowResult> row_results(const KernelTable& table, const RowInput& in) {
  std::vector<RowResult> out = {rms_norm_result(table, in), layer_norm_result(table, in),
                                limit_result(table, in),    weights_result(table, in),
                                soft_cap_result(table, in), rope_result(table, in),
                                sum_result(table, in),      argmax_result(table, in)};
  for (const Activation activation : {Activation::silu, Activation::gelu_tanh, Activation::gelu,
                                      Activation::quick_gelu, Activation::relu}) {
    out.push_back(activation_result(table, in, activation));
  }
  return out;
}

inline void check_rows(Bytes& bytes) {
  RowInput in;
  in.a.resize(static_cast<size_t>(1 + bytes.below(120)));
  fill_row(bytes, in.a);
  for (size_t i = 0; i < in.a.size(); ++i) in.b.push_back(bytes.small());
  in.cap = 0.5F + static_cast<float>(bytes.below(64));
  for (const Isa isa : available_isas()) {
    std::vector<RowResult> of_level;
    for (const KernelTable* table : kernel_tables(isa)) {
      const auto results = row_results(*table, in);
      if (of_level.empty()) of_level = results;
      for (size_t op = 0; op < results.size(); ++op) {
        const RowResult& result = results[op];
        for (size_t i = 0; i < result.found.size(); ++i) {
          const double expected = result.expected[i];
          const float found = result.found[i];
          const bool is_near =
              std::isinf(result.allowed[i]) ||
              (std::isfinite(expected) ? std::abs(found - expected) <= result.allowed[i]
                                       : !std::isfinite(found));
          const bool is_same = same_number(found, of_level[op].found[i]);
          if (is_near && is_same) continue;
          std::fprintf(stderr, "%s: %s of %zu, element %zu: found %g, expected %g, %s %g\n",
                       table->name, result.name.c_str(), in.a.size(), i, double{found}, expected,
                       is_same ? "give or take" : "another width gives",
                       is_same ? result.allowed[i] : double{of_level[op].found[i]});
          std::abort();
        }
      }
    }
  }
}

}  // namespace headrace::fuzzing
