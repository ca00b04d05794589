// What is known of a loaded model. Part of the public C++ API.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/params.h"
#include "headrace/pooling.h"

namespace headrace {

/// A LoRA adapter that a model was opened with.
struct AdapterInfo {
  std::string name;
  std::string path;
  std::string digest;  ///< equal for equal adapters
  int64_t num_parameters = 0;
  uint64_t weight_bytes = 0;  ///< packed; not among those of the model
};

struct ModelInfo {
  std::string name;
  std::string architecture;    ///< "llama", "gemma3"
  int64_t context_length = 0;  ///< tokens the model was made for
  int64_t vocab_size = 0;
  int64_t num_layers = 0;
  int64_t embedding_length = 0;
  int64_t num_parameters = 0;
  int64_t num_active_parameters = 0;  ///< that a token uses: with experts fewer
  uint64_t weight_bytes = 0;          ///< packed weights, or where they stay in the file, those
  std::vector<TokenId> end_tokens;    ///< ids that end a generation
  /// Reads all of a text at once, in both directions, and generates nothing.
  bool is_encoder = false;
  Pooling pooling = Pooling::last;      ///< that its embeddings were trained with
  bool normalizes = true;               ///< its embeddings are brought to length 1
  int64_t num_classes = 0;              ///< of its classification head; 0: it has none
  std::vector<AdapterInfo> adapters{};  ///< by their index in Request::adapters
};

}  // namespace headrace
