// From an opened checkpoint to a model: architecture, config, tensors.
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "model/model.h"
#include "model/registry.h"

namespace headrace {
namespace {

Result<std::unique_ptr<Model>> load(const Checkpoint& checkpoint, Backend& backend,
                                    const LoadModelOptions& options) {
  auto recognized = recognize(checkpoint);
  if (!recognized.ok()) return std::move(recognized).error().at(checkpoint.path());
  const Architecture& architecture = *recognized->architecture;
  ModelConfig config = std::move(recognized->config);
  ModelInfo info{
      .name = options.name,
      .architecture = config.architecture,
      .context_length = config.context_length,
      .num_layers = config.num_layers,
      .embedding_length = config.embedding_length,
      .end_tokens = options.end_tokens,
      .is_encoder = config.is_encoder,
      .pooling = config.pooling.value_or(config.is_encoder ? Pooling::mean : Pooling::last),
      .normalizes = config.normalizes};

  if (config.is_encoder && !options.adapters.empty()) {
    return Error{ErrorCode::unsupported, "adapters of an embedding model are not built in",
                 options.adapters.front().path, ""};
  }
  Loader loader(checkpoint, backend, architecture.gguf_rope_rows, options);
  const std::optional<MoeConfig> experts = config.moe;
  std::unique_ptr<LoadedModel> model = architecture.load(std::move(config), loader);
  HEADRACE_TRY(loader.finish());
  // Of the experts, a token uses some.
  const int64_t unused_elements = experts ? loader.loaded().expert_elements / experts->num_experts *
                                                (experts->num_experts - experts->num_active)
                                          : 0;
  info.vocab_size = model->vocab_size();
  info.num_classes = model->num_classes();
  info.num_parameters = loader.num_parameters();
  info.num_active_parameters = loader.num_parameters() - unused_elements;
  info.weight_bytes = loader.packed_bytes();
  for (size_t i = 0; i < options.adapters.size(); ++i) {
    const Adapter& adapter = options.adapters[i];
    info.adapters.push_back({.name = adapter.name,
                             .path = adapter.path,
                             .digest = adapter.digest(),
                             .num_parameters = adapter.num_parameters(),
                             .weight_bytes = loader.adapters().packed_bytes(i)});
  }
  model->set_loaded(std::move(info), loader.loaded(), options.pack ? nullptr : &checkpoint);
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace

Result<std::unique_ptr<Model>> load_model(const Checkpoint& checkpoint, Backend& backend,
                                          const LoadModelOptions& options) {
  try {
    return load(checkpoint, backend, options);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "there is not enough memory for the weights",
                 checkpoint.path(), "use a smaller model or a smaller quantisation"};
  } catch (const std::system_error& fault) {
    return Error{ErrorCode::resource_exhausted,
                 std::string("the system refused what loading needs: ") + fault.what(),
                 checkpoint.path(), "ask for fewer threads with -t"};
  }
}

}  // namespace headrace
