// Weights as quantised Hugging Face checkpoints hold them (GPTQ, AWQ, compressed-tensors, FP8),
// brought to this project's formats: without any loss wherever a format's numbers are the same.
// Pure functions over views of bytes. Must not know files, JSON or models.
//
// Integers with a scale a group become blocks, value for value, where a group is a multiple of 32
// columns and the scales are binary16 numbers (or within 2^-11 of one): Q4_0 where q - zero cannot
// leave -8..7, Q5_0 for -16..15, Q8_0 for -128..127. Anything else (columns in an order of their
// own, wider differences, other groups) becomes F32.
//
// A plan_ function says what its unpack_ function gives. It reads scales, zero points and the order
// of columns, not the weights, and finds all that is wrong but for weights that are no numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/result.h"
#include "quant/format.h"

namespace headrace {

/// The type of a tensor's elements, little-endian.
enum class PackedType : uint8_t { i8, u8, i32, i64, f8_e4m3, f16, bf16, f32 };

/// A tensor of a checkpoint. `shape` has the outermost dimension first.
struct PackedTensor {
  std::string name;  ///< for errors
  PackedType type = PackedType::i32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

/// A matrix to be.
struct UnpackedPlan {
  Format format = Format::f32;
  int64_t rows = 0;  ///< output features
  int64_t cols = 0;  ///< input features
};

/// A matrix [rows, cols], rows of blocks of `format`: what GGUF's data would be.
struct UnpackedMatrix {
  Format format = Format::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<std::byte> bytes;
};

/// What GPTQ stores of a zero point: one less (`checkpoint_format` "gptq"), or itself ("gptq_v2").
enum class GptqZeros : uint8_t { minus_one, as_is };

/// A module of quant_method "gptq": weight = scale * (q - zero).
struct GptqModule {
  int bits = 4;              ///< 2, 4 or 8
  int64_t group_size = 128;  ///< -1: all columns are one group
  GptqZeros zeros_form = GptqZeros::minus_one;
  PackedTensor qweight;                 ///< i32 [cols / (32 / bits), rows], lowest bits first
  PackedTensor qzeros;                  ///< i32 [groups, rows / (32 / bits)]
  PackedTensor scales;                  ///< f16, bf16 or f32 [groups, rows]
  const PackedTensor* g_idx = nullptr;  ///< i32 [cols], the group of each column; null: in order
};

/// Errors of all these functions: corrupt_data, which names the tensor, what was expected and what
/// was found (types, shapes, sizes, groups, scales that are no numbers); unsupported (bits). They
/// throw std::bad_alloc.
Result<UnpackedPlan> plan_gptq(const GptqModule& module);
Result<UnpackedMatrix> unpack_gptq(const GptqModule& module);

/// A module of quant_method "awq", version "gemm": weight = scale * (q - zero), 4 bits. A word
/// holds the outputs 0, 2, 4, 6, 1, 3, 5, 7 of eight, lowest bits first.
struct AwqModule {
  int64_t group_size = 128;              ///< -1: all columns are one group
  PackedTensor qweight;                  ///< i32 [cols, rows / 8]
  const PackedTensor* qzeros = nullptr;  ///< i32 [groups, rows / 8]; null: zero points of 8
  PackedTensor scales;                   ///< f16, bf16 or f32 [groups, rows]
};

Result<UnpackedPlan> plan_awq(const AwqModule& module);
Result<UnpackedMatrix> unpack_awq(const AwqModule& module);

/// A module of compressed-tensors, format "pack-quantized": weight = scale * (q - zero), both less
/// half of the range.
struct PackQuantizedModule {
  int bits = 4;  ///< 4 or 8
  /// -1: deduced from the scales.
  int64_t group_size = -1;
  PackedTensor weight_packed;                       ///< i32 [rows, cols / (32 / bits), rounded up]
  PackedTensor weight_scale;                        ///< f16, bf16 or f32 [rows, groups]
  PackedTensor weight_shape;                        ///< i32 or i64 [2]: rows, cols
  const PackedTensor* weight_zero_point = nullptr;  ///< i8 [rows, groups], or packed i32
                                                    ///< [rows / (32 / bits), rounded up, groups]
  const PackedTensor* weight_g_idx = nullptr;       ///< i32 [cols]; null or all -1: in order
};

Result<UnpackedPlan> plan_pack_quantized(const PackQuantizedModule& module);
Result<UnpackedMatrix> unpack_pack_quantized(const PackQuantizedModule& module);

/// A matrix of 8-bit integers with scales: compressed-tensors "int-quantized" (W8A8).
struct ScaledIntModule {
  PackedTensor weight;  ///< i8 [rows, cols]
  /// f16, bf16 or f32: [] or [1] for all, [rows] or [rows, 1] a row, [rows, groups] a group.
  PackedTensor weight_scale;
  const PackedTensor* weight_zero_point = nullptr;  ///< i8, as weight_scale
};

Result<UnpackedPlan> plan_scaled_int(const ScaledIntModule& module);
Result<UnpackedMatrix> unpack_scaled_int(const ScaledIntModule& module);

/// A matrix of E4M3 numbers (one sign, four exponent, three mantissa bits; no infinities) with
/// scales: compressed-tensors "float-quantized", and quant_method "fp8". The products of 4 bits and
/// a scale have more bits than a number of 16: it becomes F16, where a weight moves by 2^-11 of
/// itself at the most and small ones by 2^-25, or BF16 (2^-9) where the largest scale would take
/// weights out of F16's reach.
struct ScaledFp8Module {
  PackedTensor weight;  ///< f8_e4m3 [rows, cols]
  /// f16, bf16 or f32: [] or [1] for all, [rows] or [rows, 1] a row, or [rows / block_rows,
  /// cols / block_cols], rounded up, a block. It multiplies, by whatever name.
  PackedTensor weight_scale;
  int64_t block_rows = 0;  ///< `weight_block_size`; 0: scales are not of blocks
  int64_t block_cols = 0;
};

Result<UnpackedPlan> plan_scaled_fp8(const ScaledFp8Module& module);
Result<UnpackedMatrix> unpack_scaled_fp8(const ScaledFp8Module& module);

}  // namespace headrace
