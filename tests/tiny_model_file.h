// A tiny model with a tokenizer, in a file of its own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/tiny_models.h"
#include "text/vocabulary.h"

namespace headrace::test {

/// A token a byte.
class ModelFile {
 public:
  ModelFile(const std::string& name, TinyOptions options)
      : path_(testing::TempDir() + name + ".gguf") {
    options.vocab = 256;
    TinyModel tiny = tiny_model(options);
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) {
      tokens.emplace_back(text::ByteAlphabet::get().spelling(static_cast<uint8_t>(byte)));
    }
    tiny.file.add("tokenizer.ggml.model", "gpt2").add("tokenizer.ggml.pre", "gpt-2");
    tiny.file.add("tokenizer.ggml.tokens", tokens);
    tiny.file.add("tokenizer.ggml.token_type", std::vector<int32_t>(256, 1));
    tiny.file.add("tokenizer.ggml.merges", std::vector<std::string>());
    tiny.file.add("tokenizer.ggml.eos_token_id", uint32_t{7});
    tiny.file.write(path_);
  }
  ~ModelFile() { std::filesystem::remove(path_); }
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace headrace::test
