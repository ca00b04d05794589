// What is known of a model file without running it: metadata, tensors by format, memory. Must not
// know how it is shown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "headrace/result.h"
#include "kv/cache_group.h"
#include "model/model.h"

namespace headrace {

/// The tensors of one format, together.
struct FormatShare {
  Format format = Format::f32;
  int64_t num_tensors = 0;
  int64_t num_parameters = 0;
  uint64_t bytes = 0;
};

/// Memory for running the model: derived from the config, not measured.
struct InspectedMemory {
  uint64_t weight_bytes = 0;   ///< in memory
  uint64_t file_bytes = 0;     ///< of weights that stay in the file
  uint64_t scratch_bytes = 0;  ///< what these are made in when they are used, at the most
  KvType kv_type = kDefaultKvType;
  uint64_t kv_bytes_per_token = 0;  ///< before any window is full
  int64_t context = 0;              ///< the model's, or what was asked
  uint64_t kv_bytes = 0;            ///< for one sequence of `context` tokens
  uint64_t activation_bytes = 0;    ///< an estimate
  uint64_t limit_bytes = 0;         ///< what this process may use
  int64_t largest_context = 0;      ///< that fits, at most the model's; 0: not even a block
};

struct Inspection {
  std::unique_ptr<Checkpoint> checkpoint;
  std::string architecture;  ///< empty: the file does not say
  std::string name;
  bool is_supported = false;  ///< this build can run it
  int64_t num_parameters = 0;
  int64_t num_active_parameters = 0;  ///< that a token uses: with experts fewer
  int64_t context_length = 0;         ///< 0: unknown
  int64_t vocab_size = 0;             ///< 0: no vocabulary
  bool has_chat_template = false;
  std::string tokenizer;  ///< description; empty: none that this build can use
  std::string tokenizer_digest;
  std::vector<FormatShare> formats;  ///< largest first
  std::optional<InspectedMemory> memory;
  std::vector<std::string> warnings;
};

struct InspectOptions {
  int64_t context = 0;  ///< 0: the model's
  KvType kv_type = kDefaultKvType;
  bool pack = true;                        ///< else weights stay in the file
  const Quantization* quantize = nullptr;  ///< what matrices are brought to when they are loaded
  bool with_tokenizer = true;              ///< indexing a vocabulary takes a moment
};

/// Opens and looks at a file. What cannot be used (an unknown architecture, a broken tokenizer) is
/// a warning. Errors: those of open_checkpoint.
Result<Inspection> inspect_model(const std::string& path, const InspectOptions& options);

}  // namespace headrace
