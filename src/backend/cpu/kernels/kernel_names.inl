// Declares the kernels that every instruction set has, in namespace HEADRACE_ISA_NAMESPACE.
#pragma once

#include "backend/cpu/kernels/kernel_table.h"

namespace headrace::HEADRACE_ISA_NAMESPACE {

void f32_panels(const FloatRun& args);
void f16_panels(const FloatRun& args);
void bf16_panels(const FloatRun& args);
void quantize_row(const float* values, int64_t row, const QuantizedRows& x);
extern const PanelFunction int_panels[kNumIntPanelFormats];
void tile_rows(const float* values, int64_t stride, int64_t group, const TileRows& x);
extern const TileFunction tile_panels[kNumPanelFormats];
void attend(const AttentionTile& args);
extern const Q8Kernels q8_kernels;
void attend_merge(float* total_max, float* total_sum, float* total_out, float part_max,
                  float part_sum, const float* part_out, int64_t head_dim);
void rms_norm(const float* x, const float* weight, int64_t n, float eps, float* out);
void layer_norm(const float* x, const float* weight, const float* bias, int64_t n, float eps,
                float* out);
void rope_neox(float* head, const float* cos, const float* sin, int64_t num_pairs);
void activate(Activation activation, const float* x, const float* up, int64_t n, float* out);
void add(float* x, const float* delta, int64_t n);
void scale(const float* x, float factor, int64_t n, float* out);
void add_scaled(float* x, const float* delta, float factor, int64_t n);
void softmax(const float* x, int64_t n, float* out);
void sigmoid(const float* x, int64_t n, float* out);
void soft_cap(float* x, float cap, int64_t n);
void clamp(float* x, float limit, int64_t n);
void gate(float* x, float gate, int64_t n);
int64_t argmax(const float* x, int64_t n);
void to_f16(const float* x, int64_t n, uint16_t* out);
int64_t peak(int64_t rounds, float* sink);
uint64_t read_memory(const std::byte* data, int64_t num_bytes, int64_t prefetch_bytes);
extern const SamplingKernels sampling_kernels;

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
