// See adapter_loader.h.
#include "model/adapters/adapter_loader.h"

#include <utility>

#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

std::string shape_text(int64_t rows, int64_t cols) {
  return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

Error of_another_model(const Adapter& adapter, const std::string& weight, std::string message) {
  std::string hint = "it was made for another model";
  if (!adapter.base_model.empty()) hint += ": " + quote_name(adapter.base_model);
  return Error{ErrorCode::mismatch, std::move(message),
               adapter.path + ": weight " + quote_name(weight), std::move(hint)};
}

WeightView view_of(const CheckpointTensor& tensor) {
  WeightView view;
  view.format = tensor.format;
  view.rows = tensor.shape.front();
  view.cols = tensor.shape.back();
  view.data = tensor.data;
  view.name = tensor.name;
  view.is_exact = true;  // what is added is small beside the product, and both are small
  return view;
}

}  // namespace

AdapterLoader::AdapterLoader(std::span<const Adapter> adapters, Backend& backend)
    : adapters_(adapters), backend_(backend), packed_bytes_(adapters.size()) {
  if (!adapters.empty()) memory_ = std::make_shared<AdapterMemory>();
  for (const Adapter& adapter : adapters) was_used_.emplace_back(adapter.pairs.size());
}

Result<LowRank> AdapterLoader::pack(size_t adapter, const AdapterPair& pair,
                                    const AdaptedPart& part, Linear& linear) {
  WeightView up = view_of(pair.b);
  const size_t row_bytes = pair.b.data.size() / static_cast<size_t>(pair.rows());
  up.rows = part.rows;
  up.data = up.data.subspan(static_cast<size_t>(part.first_row) * row_bytes,
                            static_cast<size_t>(part.rows) * row_bytes);
  if (!adapters_[adapter].keeps_rope_halves) up.row_order = part.gguf_order;
  LowRank out;
  out.scale = pair.scale;
  for (const WeightView& view : {view_of(pair.a), up}) {
    HEADRACE_ASSIGN(auto packed, backend_.pack(view));
    packed_bytes_[adapter] += packed->bytes();
    (out.down == nullptr ? out.down : out.up) = packed.get();
    linear.adapter_weights.push_back(std::move(packed));
  }
  return out;
}

void AdapterLoader::attach(const std::string& name, const AdaptedPart& part, Linear& linear) {
  for (size_t i = 0; i < adapters_.size() && !error_; ++i) {
    const AdapterPair* pair = adapters_[i].find(name);
    if (pair == nullptr) continue;
    was_used_[i][static_cast<size_t>(pair - adapters_[i].pairs.data())] = true;
    if (pair->rows() != part.whole_rows || pair->cols() != part.cols) {
      error_ =
          of_another_model(adapters_[i], name,
                           "changes a weight of shape " + shape_text(pair->rows(), pair->cols()) +
                               ", here it is " + shape_text(part.whole_rows, part.cols));
      return;
    }
    auto packed = pack(i, *pair, part, linear);
    if (!packed.ok()) {
      error_ = std::move(packed).error().at(adapters_[i].path);
      return;
    }
    linear.adapters.resize(adapters_.size());
    linear.adapters[i] = *packed;
    linear.adapter_step = part.makes_logits ? memory_->of_logit_rows() : memory_->of_rows();
    memory_->expect(pair->rank(), part.rows, part.makes_logits);
  }
}

Result<void> AdapterLoader::finish() const {
  if (error_) return *error_;
  for (size_t i = 0; i < adapters_.size(); ++i) {
    for (size_t j = 0; j < was_used_[i].size(); ++j) {
      if (was_used_[i][j]) continue;
      return of_another_model(adapters_[i], adapters_[i].pairs[j].weight,
                              "changes a weight that this model does not have, or whose changes "
                              "are not built in (embeddings, experts)");
    }
  }
  return {};
}

}  // namespace headrace
