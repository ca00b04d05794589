// What an architecture of this build is: its names, how its config is read, how it is loaded.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "model/config.h"
#include "model/decoder.h"
#include "model/hf/hf_model.h"
#include "model/hf/hf_writer.h"
#include "model/loader.h"

namespace headrace {

struct Architecture {
  std::string_view gguf_name;                ///< `general.architecture`
  std::array<std::string_view, 3> hf_names;  ///< of `architectures` in Hugging Face configs
  RopeRows gguf_rope_rows;                   ///< order of query and key rows in GGUF files
  ModelConfig (*read_config)(ConfigReader& reader);
  std::unique_ptr<LoadedModel> (*load)(ModelConfig config, Loader& load);
  /// Translates a Hugging Face config to the keys that read_config reads, and names the tensors.
  void (*read_hf)(HfModel& model);
  /// The other way: the keys of config.json that are the architecture's own. Null: models of it are
  /// not written as Hugging Face directories.
  void (*write_hf)(HfWriter& out) = nullptr;
};

}  // namespace headrace
