// See system_fingerprint.h.
#include "app/system_fingerprint.h"

#include <algorithm>
#include <span>

#include "store/sha256.h"

namespace headrace {
namespace {

void add(Sha256& sum, std::string_view text) {
  const std::string counted = std::to_string(text.size()) + ':' + std::string(text);
  sum.update(std::as_bytes(std::span(counted)));
}

/// Reading all of a model would take as long as loading it.
void add_sample(Sha256& sum, std::span<const std::byte> data) {
  constexpr size_t kBytes = 64;
  const size_t middle = data.size() / 2;
  sum.update(data.subspan(middle, std::min(kBytes, data.size() - middle)));
}

}  // namespace

std::string system_fingerprint(const OpenedModel& model, std::string_view version) {
  Sha256 sum;
  add(sum, model.model->info().architecture);
  add(sum, model.tokenizer->fingerprint().digest);
  for (const CheckpointTensor& tensor : model.checkpoint->tensors()) {
    add(sum, tensor.name);
    add(sum, format_traits(tensor.format).name);
    for (const int64_t dim : tensor.shape) add(sum, std::to_string(dim));
    add_sample(sum, tensor.data);
  }
  for (const AdapterUse& use : model.adapters) {
    add(sum, model.model->info().adapters[static_cast<size_t>(use.adapter)].digest);
    add(sum, std::to_string(use.strength));
  }
  return "hr-" + std::string(version) + "-" + std::string(isa_name(model.isa)) + "-" +
         std::string(kv_type_name(model.kv_type)) + "-" + sum.finish().substr(0, 12);
}

}  // namespace headrace
