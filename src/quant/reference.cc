// See reference.h. Instantiates each format's `decode_<format>` over runs of blocks.
#include "quant/reference.h"

#include "quant/bf16.h"
#include "quant/f16.h"
#include "quant/f32.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/mxfp4.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"

namespace headrace {
namespace {

template <class Block>
using DecodeBlock = void (*)(const Block& block, float* out);

template <auto decode, size_t block_elements, class Block>
void decode_run(const std::byte* blocks, float* out, size_t num_blocks, DecodeBlock<Block>) {
  const auto* block = reinterpret_cast<const Block*>(blocks);
  for (size_t i = 0; i < num_blocks; ++i) decode(block[i], out + i * block_elements);
}

template <auto decode, size_t block_elements>
void decode_blocks(const std::byte* blocks, float* out, size_t num_blocks) {
  decode_run<decode, block_elements>(blocks, out, num_blocks, decode);
}

template <class Block>
constexpr size_t block_size(DecodeBlock<Block>) {
  return sizeof(Block);
}

#define HEADRACE_FORMAT(id, name, ggml_type, block_elements, block_bytes) \
  static_assert(block_size(decode_##id) == (block_bytes), name ": wrong block size");
#include "quant/formats.def"
#undef HEADRACE_FORMAT

constexpr DecodeBlocks kDecoders[] = {
#define HEADRACE_FORMAT(id, name, ggml_type, block_elements, block_bytes) \
  decode_blocks<decode_##id, block_elements>,
#include "quant/formats.def"
#undef HEADRACE_FORMAT
};

}  // namespace

std::span<const DecodeBlocks> reference_decoders() {
  return kDecoders;
}

}  // namespace headrace
