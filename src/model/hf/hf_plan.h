// How a model in GGUF's terms is said as a Hugging Face directory: the class, config.json, and the
// tensors that each of its tensors becomes. Must not know where it is written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "headrace/result.h"
#include "model/architecture.h"
#include "model/hf/hf_model.h"

namespace headrace {

/// A tensor of the directory.
struct HfTarget {
  std::string name;
  const CheckpointTensor* source = nullptr;
  HfChange change = HfChange::none;  ///< how the source came of it: written is what undoes this
  int64_t part = -1;                 ///< which of the source's outermost rows it is; -1: all are
  std::vector<int64_t> shape;        ///< of what is written
};

struct HfDirectoryPlan {
  const Architecture* architecture = nullptr;
  ModelConfig config;
  std::string config_json;
  std::vector<HfTarget> targets;  ///< in the checkpoint's order
};

/// `dtype`: what config.json says of most weights, "float16". The plan was proved: config.json,
/// read again, gives the model's config and the tensors that only GGUF has, and the names lead
/// back. Errors: unsupported (an architecture without a writer; a model that its config.json cannot
/// say; a tensor without a name there), and those of recognize.
Result<HfDirectoryPlan> plan_hf_directory(const Checkpoint& from, std::string_view dtype);

}  // namespace headrace
