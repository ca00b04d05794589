// See model_files.h.
#include "app/model_files.h"

#include "checkpoint/model_directory.h"

namespace headrace {
namespace {

/// Those of a GGUF file's keys.
Result<IdTokenizerOptions> special_ids(const Checkpoint& checkpoint) {
  IdTokenizerOptions options;
  const Metadata& metadata = checkpoint.metadata();
  HEADRACE_ASSIGN(const auto bos, metadata.get_int("tokenizer.ggml.bos_token_id"));
  HEADRACE_ASSIGN(const auto eos, metadata.get_int("tokenizer.ggml.eos_token_id"));
  HEADRACE_ASSIGN(const auto others, metadata.get_ints("tokenizer.ggml.eog_token_ids"));
  const int64_t rows = embedding_rows(checkpoint);
  const auto id_of = [&](int64_t id) {
    return id >= 0 && id < rows ? static_cast<TokenId>(id) : TokenId{-1};
  };
  options.bos = id_of(bos.value_or(-1));
  options.eos = id_of(eos.value_or(-1));
  if (others) {
    for (const int64_t id : *others) options.end_of_generation.push_back(id_of(id));
  }
  return options;
}

bool has_tokenizer(const ModelDirectory& directory) {
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    if (directory.has(name)) return true;
  }
  return false;
}

/// Whether a GGUF file says that it has no vocabulary.
bool has_ids_alone(const Metadata& metadata) {
  const auto model = metadata.get_string("tokenizer.ggml.model");
  return model.ok() && (*model == "none" || *model == "no_vocab");
}

Result<std::shared_ptr<const Tokenizer>> ids_of(const Checkpoint& checkpoint) {
  HEADRACE_ASSIGN(const IdTokenizerOptions ids, checkpoint.is_directory()
                                                    ? special_ids_of_directory(checkpoint.path())
                                                    : special_ids(checkpoint));
  return make_id_tokenizer(embedding_rows(checkpoint), ids);
}

}  // namespace

int64_t embedding_rows(const Checkpoint& checkpoint) {
  const CheckpointTensor* table = checkpoint.find("token_embd.weight");
  return table == nullptr || table->shape.empty() ? 0 : table->shape.front();
}

Result<std::shared_ptr<const Tokenizer>> tokenizer_of(const Checkpoint& checkpoint,
                                                      const TokenizerOptions& options) {
  if (!checkpoint.is_directory() && !has_ids_alone(checkpoint.metadata())) {
    return make_tokenizer(checkpoint.metadata(), options);
  }
  if (!checkpoint.is_directory()) return ids_of(checkpoint);
  HEADRACE_ASSIGN(const ModelDirectory directory, ModelDirectory::open(checkpoint.path()));
  if (has_tokenizer(directory)) {
    TokenizerOptions padded = options;
    padded.num_rows = embedding_rows(checkpoint);
    return open_hf_tokenizer(checkpoint.path(), padded);
  }
  return ids_of(checkpoint);
}

Result<std::optional<std::string>> chat_template_of(const Checkpoint& checkpoint) {
  if (checkpoint.is_directory()) return chat_template_of_directory(checkpoint.path());
  HEADRACE_ASSIGN(const auto source, checkpoint.metadata().get_string("tokenizer.chat_template"));
  return source ? std::optional<std::string>(*source) : std::nullopt;
}

}  // namespace headrace
