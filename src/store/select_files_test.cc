#include "store/select_files.h"

#include <gtest/gtest.h>

#include "store/gguf_names.h"

namespace headrace {
namespace {

std::vector<RepoFile> files_of(const std::vector<std::string>& paths) {
  std::vector<RepoFile> files;
  for (const auto& path : paths) files.push_back({path, 1'000'000 * (files.size() + 1), "", ""});
  return files;
}

/// The paths chosen, with commas; of an error its code and hint.
std::string chosen(const std::vector<std::string>& paths, const std::string& selector = "") {
  const auto files = files_of(paths);
  const auto selection = select_files(files, selector);
  if (!selection.ok()) {
    return std::string(error_code_name(selection.error().code)) + ": " + selection.error().hint;
  }
  std::string text;
  for (const size_t index : selection->files) {
    text += (text.empty() ? "" : ",") + files[index].path;
  }
  return text;
}

TEST(GgufNames, TellTheQuantisation) {
  EXPECT_EQ(quantization_of("Qwen3-0.6B-Q4_K_M.gguf"), "Q4_K_M");
  EXPECT_EQ(quantization_of("qwen3.q8_0.gguf"), "Q8_0");
  EXPECT_EQ(quantization_of("model_q5_k_s.gguf"), "Q5_K_S");
  EXPECT_EQ(quantization_of("x-UD-IQ2_XXS.gguf"), "IQ2_XXS");
  EXPECT_EQ(quantization_of("x-bf16-00001-of-00002.gguf"), "BF16");
  EXPECT_EQ(quantization_of("gpt-oss-20b-mxfp4.gguf"), "MXFP4");
  EXPECT_EQ(quantization_of("Q6_K/model.gguf"), "Q6_K");
  EXPECT_EQ(quantization_of("Qwen2.gguf"), "");
  EXPECT_EQ(quantization_of("Q4.gguf"), "");
}

TEST(GgufNames, TellTheParts) {
  const auto split = split_name_of("a/b-00002-of-00011.gguf");
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->base, "a/b");
  EXPECT_EQ(split->part, 2);
  EXPECT_EQ(split->total, 11);
  for (const char* other : {"b.gguf", "b-00003-of-00002.gguf", "b-00000-of-00002.gguf",
                            "b-0001-of-0002.gguf", "-00001-of-00002.gguf", "b-00001-of-00002"}) {
    EXPECT_FALSE(split_name_of(other).has_value()) << other;
  }
}

TEST(SelectFiles, PrefersWhatPeopleMean) {
  EXPECT_EQ(chosen({"a-Q2_K.gguf", "a-Q4_K_M.gguf", "a-Q8_0.gguf"}), "a-Q4_K_M.gguf");
  EXPECT_EQ(chosen({"a-Q2_K.gguf", "a-Q8_0.gguf", "mmproj-a-Q4_K_M.gguf"}), "a-Q8_0.gguf");
  EXPECT_EQ(chosen({"odd.gguf", "README.md", "imatrix.gguf"}), "odd.gguf");
  EXPECT_EQ(chosen({"a-Q2_K.gguf", "a-Q3_K.gguf"}),
            "invalid_argument: name a file or quantisation behind a colon: a-Q2_K.gguf (1.0 MB), "
            "a-Q3_K.gguf (2.0 MB)");
  EXPECT_EQ(chosen({"config.json", "model.safetensors", "a.gguf"}), "a.gguf");
}

TEST(SelectFiles, TakesAQuantisationInAnyCase) {
  const std::vector<std::string> files = {"a-Q4_K_M.gguf", "a-Q4_K.gguf", "a-UD-Q4_K_XL.gguf",
                                          "b/x-Q5_0-00001-of-00002.gguf",
                                          "b/x-Q5_0-00002-of-00002.gguf"};
  EXPECT_EQ(chosen(files, "q4_k"), "a-Q4_K.gguf");
  EXPECT_EQ(chosen(files, "q4_k_m"), "a-Q4_K_M.gguf");
  EXPECT_EQ(chosen(files, "ud-q4_k_xl"), "a-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen(files, "Q4_K_XL"), "a-UD-Q4_K_XL.gguf");
  EXPECT_EQ(chosen(files, "q5_0"), "b/x-Q5_0-00001-of-00002.gguf,b/x-Q5_0-00002-of-00002.gguf");
  EXPECT_EQ(chosen(files, "b/x-Q5_0-00002-of-00002.gguf"),
            "b/x-Q5_0-00001-of-00002.gguf,b/x-Q5_0-00002-of-00002.gguf");
  EXPECT_EQ(chosen(files, "Q6_K").rfind("not_found: there are: a-Q4_K.gguf (2.0 MB)", 0), 0u);
  EXPECT_EQ(chosen(files, "a-Q4_K_N.gguf").rfind("not_found: the nearest: a-Q4_K_M.gguf", 0), 0u);
  EXPECT_EQ(chosen({"a-Q8_0.gguf", "b-Q8_0.gguf"}, "Q8_0").rfind("invalid_argument", 0), 0u);
  EXPECT_EQ(chosen({"b/x-Q5_0-00002-of-00002.gguf"}, "q5_0").rfind("not_found", 0), 0u);
}

TEST(SelectFiles, TakesADirectoryWithoutItsDuplicates) {
  EXPECT_EQ(chosen({"config.json", "model.safetensors", "model.bin", "onnx/model.onnx",
                    "original/model.safetensors", "consolidated.safetensors", "tokenizer.json",
                    "additional_chat_templates/a.jinja", "additional_chat_templates/b/c.jinja"}),
            "config.json,model.safetensors,tokenizer.json,additional_chat_templates/a.jinja");
  EXPECT_EQ(chosen({"model.safetensors"}), "unsupported: there are: model.safetensors");
  EXPECT_EQ(chosen({"config.json", "model-00001-of-00002.safetensors"}).rfind("unsupported", 0),
            0u);
  EXPECT_EQ(chosen({}), "unsupported: there are no files at all");
}

}  // namespace
}  // namespace headrace
