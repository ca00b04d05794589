// The two functions of each architecture that registry.cc refers to.
#pragma once

#include <memory>

#include "model/config.h"
#include "model/decoder.h"
#include "model/loader.h"

namespace headrace {

ModelConfig llama_config(ConfigReader& reader);
std::unique_ptr<Decoder> load_llama(ModelConfig config, Loader& load);

ModelConfig gemma3_config(ConfigReader& reader);
std::unique_ptr<Decoder> load_gemma3(ModelConfig config, Loader& load);

}  // namespace headrace
