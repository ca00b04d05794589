// Opens a Hugging Face directory; see tokenizer.h.
#include <new>

#include "base/os/mapped_file.h"
#include "text/base_tokenizer.h"
#include "text/hf_vocabulary.h"

namespace headrace {
namespace {

std::string_view text_of(const Result<MappedFile>& file) {
  if (!file.ok()) return {};
  const std::span<const std::byte> bytes = file->bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> open_hf_tokenizer(const std::string& directory,
                                                           const TokenizerOptions& options) {
  const auto open = [&](const char* name) { return MappedFile::open(directory + "/" + name); };
  const auto tokenizer = open("tokenizer.json");
  if (!tokenizer.ok()) return tokenizer.error();
  const auto config = open("tokenizer_config.json");
  if (!config.ok() && config.error().code == ErrorCode::io_error) return config.error();
  const auto generation = open("generation_config.json");
  const text::HfFiles files{text_of(tokenizer), text_of(config), text_of(generation)};
  try {
    auto vocabulary = text::read_hf_vocabulary(files, options);
    if (!vocabulary.ok()) return std::move(vocabulary).error().at(directory);
    return text::build_tokenizer(std::move(*vocabulary), directory + "/tokenizer.json");
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "not enough memory for the vocabulary",
                 directory + "/tokenizer.json", ""};
  }
}

}  // namespace headrace
