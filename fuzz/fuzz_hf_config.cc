// config.json of any content, through every architecture's translation: a config, or an error of
// one line. The first byte chooses the architecture.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>

#include "model/hf/hf_names.h"
#include "model/hf/hf_quantization.h"
#include "model/registry.h"

namespace headrace {
namespace {

void check_line(const Error& error) {
  if (error.to_string().find('\n') != std::string::npos) std::abort();
}

void translate(const Architecture& architecture, std::string_view text) {
  auto config = HfConfig::parse(text, "config.json");
  if (!config.ok()) return check_line(config.error());
  if (const auto quantization = read_hf_quantization(*config); !quantization.ok()) {
    return check_line(quantization.error());
  }
  HfModel model(*config, architecture.gguf_name);
  architecture.read_hf(model);
  if (config->error()) return check_line(*config->error());
  Metadata metadata;
  std::deque<std::string> texts;
  model.write_keys(metadata, texts);
  ConfigReader reader(metadata, architecture.gguf_name);
  (void)architecture.read_config(reader);
  if (reader.error()) check_line(*reader.error());
  (void)place_hf_tensor(model.names(), text);
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto all = headrace::architectures();
  headrace::translate(*all[data[0] % all.size()],
                      {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
