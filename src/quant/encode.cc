// See encode.h.
#include "quant/encode.h"

#include <cmath>
#include <limits>

#include "quant/encoders.h"

namespace headrace {
namespace {

constexpr float kMaxFloat = std::numeric_limits<float>::max();
// The largest float that rounds to a finite bfloat16.
constexpr float kMaxBf16 = 0x1.fefffep127f;

// What a block holds at most: its largest scale times its largest level.
constexpr Encoder kEncoders[] = {
    {Format::f32, kMaxFloat, encode_f32},
    {Format::f16, kMaxHalf, encode_f16},
    {Format::bf16, kMaxBf16, encode_bf16},
    {Format::q8_0, kMaxHalf * 127, encode_q8_0},
    {Format::q4_0, kMaxHalf * 7, encode_q4_0},
    {Format::q4_1, kMaxHalf, encode_q4_1},
    {Format::q5_0, kMaxHalf * 15, encode_q5_0},
    {Format::q5_1, kMaxHalf, encode_q5_1},
    {Format::iq4_nl, kMaxHalf * 113, encode_iq4_nl},
    {Format::q2_k, kMaxHalf * 15, encode_q2_k},
    {Format::q3_k, kMaxHalf * 31 * 3, encode_q3_k},
    {Format::q4_k, kMaxHalf * 63, encode_q4_k},
    {Format::q5_k, kMaxHalf * 63, encode_q5_k},
    {Format::q6_k, kMaxHalf * 127 * 31, encode_q6_k},
};

}  // namespace

const Encoder* encoder_of(Format format) {
  for (const Encoder& encoder : kEncoders) {
    if (encoder.format == format) return &encoder;
  }
  return nullptr;
}

std::optional<size_t> find_unencodable(const Encoder& encoder, std::span<const float> values) {
  const float most = encoder.max_magnitude;
  // In runs, so that the usual case compares many at once.
  constexpr size_t kRun = 64;
  for (size_t first = 0; first < values.size(); first += kRun) {
    const size_t end = std::min(values.size(), first + kRun);
    int num_bad = 0;
    for (size_t i = first; i < end; ++i) num_bad += std::fabs(values[i]) <= most ? 0 : 1;
    if (num_bad == 0) continue;
    for (size_t i = first; i < end; ++i) {
      if (!(std::fabs(values[i]) <= most)) return i;
    }
  }
  return std::nullopt;
}

}  // namespace headrace
