// A config.json of any content, through an architecture's translation to the model's config: what a
// fuzz target and a test of mutants both ask.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "model/hf/hf_names.h"
#include "model/hf/hf_quantization.h"
#include "model/registry.h"

namespace headrace::test {

/// What is wrong with the config, or an empty text.
inline std::string config_fault(const Architecture& architecture, std::string_view text) {
  auto config = HfConfig::parse(text, "config.json");
  if (!config.ok()) return config.error().to_string();
  if (const auto quantization = read_hf_quantization(*config); !quantization.ok()) {
    return quantization.error().to_string();
  }
  HfModel model(*config, architecture.gguf_name);
  architecture.read_hf(model);
  if (config->error()) return config->error()->to_string();
  Metadata metadata;
  std::deque<std::string> texts;
  model.write_keys(metadata, texts);
  ConfigReader reader(metadata, architecture.gguf_name);
  (void)architecture.read_config(reader);
  if (reader.error()) return reader.error()->to_string();
  (void)place_hf_tensor(model.names(), text);
  return "";
}

}  // namespace headrace::test
