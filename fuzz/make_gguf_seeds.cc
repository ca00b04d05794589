// Writes the seed corpus of fuzz_gguf: `make_gguf_seeds fuzz/corpus/gguf`. Run by hand; the files
// are committed.
#include <string>
#include <vector>

#include "quant/format.h"
#include "tests/gguf_builder.h"

using headrace::test::GgufBuilder;

namespace {

GgufBuilder all_values(uint32_t version) {
  GgufBuilder builder(version);
  builder.add("u8", uint8_t{1}).add("i8", int8_t{-1}).add("u16", uint16_t{2});
  builder.add("i16", int16_t{-2}).add("u32", uint32_t{3}).add("i32", int32_t{-3});
  builder.add("u64", uint64_t{4}).add("i64", int64_t{-4}).add("f32", 0.5f).add("f64", 0.25);
  builder.add("bool", true).add("string", "text");
  builder.add("u8s", std::vector<uint8_t>{1}).add("i8s", std::vector<int8_t>{-1});
  builder.add("u16s", std::vector<uint16_t>{1}).add("i16s", std::vector<int16_t>{-1});
  builder.add("u32s", std::vector<uint32_t>{1}).add("i32s", std::vector<int32_t>{-1});
  builder.add("u64s", std::vector<uint64_t>{1}).add("i64s", std::vector<int64_t>{-1});
  builder.add("f32s", std::vector<float>{1}).add("f64s", std::vector<double>{1});
  builder.add("bools", std::vector<bool>{true, false});
  builder.add("strings", std::vector<std::string>{"a", "", "bc"});
  builder.add("nested", std::vector<std::vector<int32_t>>{{1, 2}, {}, {3}});
  return builder;
}

GgufBuilder all_formats() {
  GgufBuilder builder;
  builder.set_alignment(16);
  for (const headrace::FormatTraits& traits : headrace::all_formats()) {
    builder.add_tensor(traits.name, traits.ggml_type, {2, traits.block_elements},
                       std::string(2 * traits.block_bytes, '5'));
  }
  return builder;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  all_values(2).write(folder + "values_v2.gguf");
  all_values(3).write(folder + "values_v3.gguf");
  all_formats().write(folder + "formats.gguf");
  GgufBuilder().write(folder + "empty.gguf");
  GgufBuilder split;
  split.add("split.no", uint16_t{0}).add("split.count", uint16_t{2});
  split.add("split.tensors.count", int32_t{1});
  split.add_f32("t", {1, 1, 1, 2}, std::vector<float>{1, 2}).write(folder + "split.gguf");
  GgufBuilder vocabulary;
  vocabulary.add("general.architecture", "llama").add("tokenizer.ggml.model", "gpt2");
  vocabulary.add("tokenizer.ggml.tokens", std::vector<std::string>{"<s>", "a", "b", "ab"});
  vocabulary.add("tokenizer.ggml.token_type", std::vector<int32_t>{3, 1, 1, 1});
  vocabulary.add("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
  vocabulary.write(folder + "vocabulary.gguf");
  return 0;
}
