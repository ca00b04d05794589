// See open_adapter.h.
#include "model/adapters/open_adapter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "checkpoint/quote_name.h"
#include "model/hf/hf_checkpoint.h"

namespace headrace {
namespace {

Result<void> check_matrix(const CheckpointTensor& tensor) {
  const auto& shape = tensor.shape;
  if (shape.size() == 2 && shape[0] > 0 && shape[1] > 0) return {};
  return Error{ErrorCode::corrupt_data, "expected a matrix with rows and columns",
               "tensor " + quote_name(tensor.name), ""};
}

}  // namespace

Result<float> scale_of(double alpha, double by) {
  const double scale = alpha / by;
  if (std::abs(scale) <= std::numeric_limits<float>::max()) return static_cast<float>(scale);
  return Error{ErrorCode::corrupt_data,
               "the scale, " + std::to_string(scale) + ", is no number that can be used", "alpha",
               ""};
}

Result<void> check_pair(const AdapterPair& pair) {
  HEADRACE_TRY(check_matrix(pair.a));
  HEADRACE_TRY(check_matrix(pair.b));
  if (pair.b.shape[1] != pair.a.shape[0]) {
    return Error{ErrorCode::corrupt_data,
                 "expected " + std::to_string(pair.a.shape[0]) + " columns, as many as " +
                     quote_name(pair.a.name) + " has rows, found " +
                     std::to_string(pair.b.shape[1]),
                 "tensor " + quote_name(pair.b.name), ""};
  }
  return {};
}

Result<void> add_pair(Adapter& adapter, AdapterPair pair) {
  const auto place = std::ranges::lower_bound(adapter.pairs, pair.weight, {}, &AdapterPair::weight);
  if (place != adapter.pairs.end() && place->weight == pair.weight) {
    return Error{ErrorCode::corrupt_data, "changes a weight that another tensor changes too",
                 "tensor " + quote_name(pair.a.name), ""};
  }
  adapter.pairs.insert(place, std::move(pair));
  return {};
}

Result<Adapter> open_adapter(const std::string& path, std::string name, const Checkpoint& base) {
  HEADRACE_ASSIGN(const auto found, base.metadata().get_string("general.architecture"));
  const std::string architecture(found.value_or(""));
  auto opened = is_hf_path(path) || path.ends_with("adapter_config.json")
                    ? open_peft_adapter(path, architecture)
                    : open_gguf_adapter(path, architecture);
  if (!opened.ok()) {
    if (opened.error().where.starts_with(path)) return opened;
    return std::move(opened).error().at(path);
  }
  opened->name = std::move(name);
  opened->path = path;
  if (opened->pairs.empty()) {
    return Error{ErrorCode::corrupt_data, "the adapter changes no weight", path, ""};
  }
  return opened;
}

}  // namespace headrace
