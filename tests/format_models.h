// Tiny models of quantised weights.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/cpu/test_tensors.h"
#include "quant/format.h"
#include "tests/tiny_models.h"

namespace headrace::test {

/// A model whose matrices have the formats in turn, of made-up blocks.
inline TinyModel model_of_formats(std::span<const Format> formats) {
  TinyOptions options;
  options.embedding = 256;
  options.feed_forward = 512;
  options.head_dim = 64;
  options.rope_dims = 64;
  options.vocab = 50;
  const TinyModel plain = tiny_model(options);
  TinyModel out = tiny_metadata(options);
  size_t count = 0;
  for (const auto& [name, tensor] : plain.tensors) {
    if (tensor.shape.size() < 2) {
      out.add(name, tensor.shape, tensor.values);
      continue;
    }
    const Format format = formats[count++ % formats.size()];
    const auto data = backend_test::made_up_blocks(format, tensor.shape[0], tensor.shape[1], count);
    out.file.add_tensor(name, format_traits(format).ggml_type, tensor.shape,
                        {reinterpret_cast<const char*>(data.data()), data.size()});
  }
  return out;
}

inline std::vector<Format> every_format() {
  std::vector<Format> formats;
  for (const FormatTraits& traits : all_formats()) formats.push_back(traits.format);
  return formats;
}

}  // namespace headrace::test
