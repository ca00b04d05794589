// See loader.h.
#include "model/loader.h"

#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "model/head_norms.h"

namespace headrace {
namespace {

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + (shape[i] < 0 ? std::string("any") : std::to_string(shape[i]));
  }
  return text + "]";
}

// Trailing dimensions of 1 that a file leaves out or adds at the front do not matter.
bool same_shape(std::span<const int64_t> found, std::span<const int64_t> expected) {
  while (found.size() > expected.size() && found.front() == 1) found = found.subspan(1);
  while (expected.size() > found.size() && expected.front() == 1) expected = expected.subspan(1);
  if (found.size() != expected.size()) return false;
  for (size_t i = 0; i < found.size(); ++i) {
    if (expected[i] >= 0 && found[i] != expected[i]) return false;
  }
  return true;
}

// "a, b and 7 more".
std::string name_some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kShown; ++i) {
    text += (i == 0 ? "'" : ", '") + names[i] + "'";
  }
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

}  // namespace

std::vector<int32_t> deinterleave_rows(const HeadRows& heads) {
  std::vector<int32_t> order;
  order.reserve(static_cast<size_t>(heads.num_heads * heads.head_dim));
  for (int64_t head = 0; head < heads.num_heads; ++head) {
    const int64_t first = head * heads.head_dim;
    for (int64_t half = 0; half < 2; ++half) {
      for (int64_t pair = 0; pair < heads.rope_dims / 2; ++pair) {
        order.push_back(static_cast<int32_t>(first + 2 * pair + half));
      }
    }
    for (int64_t i = heads.rope_dims; i < heads.head_dim; ++i) {
      order.push_back(static_cast<int32_t>(first + i));
    }
  }
  return order;
}

Loader::Loader(const Checkpoint& checkpoint, Backend& backend, RopeRows gguf_rope_rows,
               const LoadModelOptions& options)
    : checkpoint_(checkpoint),
      backend_(backend),
      gguf_rope_rows_(gguf_rope_rows),
      options_(options),
      adapters_(options.adapters, backend) {
  was_read_.assign(checkpoint.tensors().size(), false);
  for (const CheckpointTensor& tensor : checkpoint.tensors()) total_bytes_ += tensor.num_bytes();
}

bool Loader::has(std::string_view name) const {
  return checkpoint_.find(std::string(name) + ".weight") != nullptr;
}

int64_t Loader::rows_of(std::string_view name) const {
  const CheckpointTensor* tensor = checkpoint_.find(std::string(name) + ".weight");
  if (tensor == nullptr) return 0;
  return tensor->shape.size() < 2 ? 1 : *(tensor->shape.end() - 2);
}

void Loader::fail(ErrorCode code, const std::string& tensor, std::string message) {
  if (!error_) error_ = Error{code, std::move(message), "tensor '" + tensor + "'", ""};
}

const CheckpointTensor* Loader::take(const std::string& name, std::span<const int64_t> shape) {
  if (error_) return nullptr;  // nothing more is packed in vain
  const CheckpointTensor* tensor = checkpoint_.find(name);
  if (tensor == nullptr) {
    missing_.push_back(name);
    return nullptr;
  }
  was_read_[static_cast<size_t>(tensor - checkpoint_.tensors().data())] = true;
  if (!same_shape(tensor->shape, shape)) {
    fail(ErrorCode::corrupt_data, name,
         "expected shape " + shape_text(shape) + ", found " + shape_text(tensor->shape));
    return nullptr;
  }
  return tensor;
}

void Loader::done_with(const CheckpointTensor& tensor) {
  num_parameters_ += tensor.num_elements();
  done_bytes_ += tensor.num_bytes();
  checkpoint_.release(tensor);
  if (options_.progress) options_.progress(done_bytes_, total_bytes_);
}

std::span<const std::byte> Loader::read(const CheckpointTensor& tensor) {
  auto bytes = checkpoint_.read(tensor);
  if (bytes.ok()) return *bytes;
  if (!error_) error_ = std::move(bytes).error();
  return {};
}

std::unique_ptr<Matrix> Loader::pack_rows(const CheckpointTensor& tensor, int64_t rows,
                                          std::span<const std::byte> data,
                                          const PackOptions& options) {
  // The embedding may be most of the file: its pages go back while it is packed.
  std::function<void(std::span<const std::byte>)> release;
  if (!tensor.is_made) {
    release = [&](std::span<const std::byte> part) {
      CheckpointTensor done = tensor;
      done.data = part;
      checkpoint_.release(done);
    };
  }
  CheckpointTensor source = tensor;
  source.data = data;
  WeightView view{.format = tensor.format,
                  .rows = rows,
                  .cols = tensor.shape.back(),
                  .data = data,
                  .row_order = options.row_order,
                  .name = tensor.name,
                  .data_stays = !options_.pack && !tensor.is_made,
                  .release = release,
                  .finds_top = options.finds_top,
                  .is_exact = options.is_exact};
  if (options_.quantize != nullptr && !options.is_exact) {
    view.format = chosen_format(*options_.quantize, source);
    if (view.format != tensor.format) {
      view.make_row = [&](int64_t row, std::byte* out) {
        return encode_row(source, view.format, row, out);
      };
    }
  }
  auto packed = backend_.pack(view);
  if (!packed.ok()) {
    if (!error_) error_ = std::move(packed).error();
    return nullptr;
  }
  packed_bytes_ += (*packed)->bytes();
  loaded_.matrix_elements += (*packed)->rows() * (*packed)->cols();
  return std::move(packed).value();
}

Buffer Loader::vector(const std::string& name, int64_t size) {
  const std::array shape = {size};
  const CheckpointTensor* tensor = take(name, shape);
  if (tensor == nullptr) return {};
  Buffer out = backend_.upload(decode(*tensor));
  packed_bytes_ += out.bytes();
  return out;
}

std::unique_ptr<Matrix> Loader::pack(const std::string& name, int64_t rows, int64_t cols,
                                     const PackOptions& options) {
  const std::array shape = {rows, cols};
  const CheckpointTensor* tensor = take(name, shape);
  if (tensor == nullptr) return nullptr;
  const std::span<const std::byte> data = read(*tensor);
  if (error_) return nullptr;
  const int64_t found_rows = tensor->shape.size() < 2 ? 1 : *(tensor->shape.end() - 2);
  auto packed = pack_rows(*tensor, found_rows, data, options);
  if (packed) done_with(*tensor);
  return packed;
}

std::vector<Linear> Loader::stacked_experts(const std::string& name, const MoeConfig& config,
                                            int64_t rows, int64_t cols) {
  const std::array shape = {config.num_experts, rows, cols};
  const CheckpointTensor* tensor = take(name + "_exps.weight", shape);
  if (tensor == nullptr) return {};
  const std::span<const std::byte> data = read(*tensor);
  if (error_) return {};
  const size_t bytes = data.size() / static_cast<size_t>(config.num_experts);
  std::vector<Linear> out(static_cast<size_t>(config.num_experts));
  for (size_t e = 0; e < out.size(); ++e) {
    out[e].weight = pack_rows(*tensor, rows, data.subspan(e * bytes, bytes), {});
    if (error_) return {};
  }
  done_with(*tensor);
  return out;
}

std::vector<Linear> Loader::experts(const std::string& name, const MoeConfig& config, int64_t rows,
                                    int64_t cols) {
  const uint64_t bytes_before = packed_bytes_;
  const int64_t elements_before = loaded_.matrix_elements;
  std::vector<Linear> out;
  if (has(name + ".0")) {
    for (int64_t e = 0; e < config.num_experts; ++e) {
      out.push_back(expert_linear(name + "." + std::to_string(e), rows, cols));
    }
  } else {
    out = stacked_experts(name, config, rows, cols);
  }
  loaded_.expert_bytes += packed_bytes_ - bytes_before;
  loaded_.expert_elements += loaded_.matrix_elements - elements_before;
  return out;
}

std::vector<float> Loader::decode(const CheckpointTensor& tensor) {
  const FormatTraits& traits = format_traits(tensor.format);
  const std::span<const std::byte> data = read(tensor);
  const size_t num_blocks = data.size() / traits.block_bytes;
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  if (error_) return values;
  traits.decode(data.data(), values.data(), num_blocks);
  done_with(tensor);
  return values;
}

std::vector<Linear> Loader::fused_linear(const std::string& name,
                                         std::span<const int64_t> part_rows, int64_t cols) {
  std::vector<Linear> parts(part_rows.size());
  const int64_t rows = std::accumulate(part_rows.begin(), part_rows.end(), int64_t{0});
  const std::array shape = {rows, cols};
  const CheckpointTensor* tensor = take(name + ".weight", shape);
  if (tensor == nullptr) return parts;
  const std::span<const std::byte> data = read(*tensor);
  if (error_) return parts;
  const size_t row_bytes = data.size() / static_cast<size_t>(rows);
  size_t begin = 0;
  for (size_t i = 0; i < parts.size() && !error_; ++i) {
    const size_t bytes = static_cast<size_t>(part_rows[i]) * row_bytes;
    parts[i].weight = pack_rows(*tensor, part_rows[i], data.subspan(begin, bytes), {});
    begin += bytes;
  }
  if (error_) return parts;
  done_with(*tensor);
  AdaptedPart part{.whole_rows = rows, .cols = cols};
  for (size_t i = 0; i < parts.size(); ++i) {
    part.first_row += part.rows;
    part.rows = part_rows[i];
    adapters_.attach(name, part, parts[i]);
  }

  const std::string bias_name = name + ".bias";
  if (checkpoint_.find(bias_name) == nullptr) return parts;
  const std::array bias_shape = {rows};
  const CheckpointTensor* bias_tensor = take(bias_name, bias_shape);
  if (bias_tensor == nullptr) return parts;
  const std::vector<float> bias = decode(*bias_tensor);
  const float* from = bias.data();
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].bias = backend_.upload({from, static_cast<size_t>(part_rows[i])});
    packed_bytes_ += parts[i].bias.bytes();
    from += part_rows[i];
  }
  return parts;
}

Linear Loader::linear_in_order(const std::string& name, int64_t rows, int64_t cols,
                               const PackOptions& options) {
  Linear out;
  out.weight = pack(name + ".weight", rows, cols, options);
  if (options.takes_adapters) {
    adapters_.attach(name,
                     {.rows = rows,
                      .whole_rows = rows,
                      .cols = cols,
                      .gguf_order = options.gguf_order,
                      .makes_logits = options.makes_logits},
                     out);
  }
  const std::string bias_name = name + ".bias";
  if (checkpoint_.find(bias_name) == nullptr) return out;
  const std::array shape = {rows};
  const CheckpointTensor* tensor = take(bias_name, shape);
  if (tensor == nullptr) return out;
  const std::vector<float> bias = decode(*tensor);
  std::vector<float> ordered(bias);
  for (size_t i = 0; i < options.row_order.size(); ++i) {
    ordered[i] = bias[static_cast<size_t>(options.row_order[i])];
  }
  out.bias = backend_.upload(ordered);
  packed_bytes_ += out.bias.bytes();
  return out;
}

Linear Loader::linear(const std::string& name, int64_t rows, int64_t cols) {
  return linear_in_order(name, rows, cols, {});
}

Linear Loader::expert_linear(const std::string& name, int64_t rows, int64_t cols) {
  return linear_in_order(name, rows, cols, {.takes_adapters = false});
}

Linear Loader::exact_linear(const std::string& name, int64_t rows, int64_t cols) {
  return linear_in_order(name, rows, cols, {.is_exact = true});
}

Linear Loader::rope_linear(const std::string& name, const HeadRows& heads, int64_t cols) {
  std::vector<int32_t> order;
  if (gguf_rope_rows_ == RopeRows::interleaved) order = deinterleave_rows(heads);
  const bool is_ordered = checkpoint_.keeps_rope_halves();
  return linear_in_order(
      name, heads.num_heads * heads.head_dim, cols,
      {.row_order = is_ordered ? std::span<const int32_t>() : order, .gguf_order = order});
}

Linear Loader::head(const std::string& name, int64_t rows, int64_t cols, bool finds_top) {
  return linear_in_order(name, rows, cols, {.finds_top = finds_top, .makes_logits = true});
}

std::unique_ptr<Matrix> Loader::table(const std::string& name, int64_t cols, bool finds_top) {
  return pack(name + ".weight", -1, cols, {.finds_top = finds_top});
}

std::unique_ptr<Matrix> Loader::matrix(const std::string& name, int64_t rows, int64_t cols) {
  return pack(name + ".weight", rows, cols, {});
}

std::unique_ptr<Matrix> Loader::made_matrix(const std::string& name, std::span<const float> values,
                                            int64_t cols) {
  auto packed = backend_.pack({.format = Format::f32,
                               .rows = static_cast<int64_t>(values.size()) / cols,
                               .cols = cols,
                               .data = std::as_bytes(values),
                               .row_order = {},
                               .name = name});
  if (packed.ok()) {
    packed_bytes_ += (*packed)->bytes();
    return std::move(packed).value();
  }
  if (!error_) error_ = std::move(packed).error();
  return nullptr;
}

RmsNorm Loader::norm(const std::string& name, int64_t features, float eps) {
  RmsNorm out;
  out.eps = eps;
  out.weight = vector(name + ".weight", features);
  return out;
}

LayerNorm Loader::layer_norm(const std::string& name, int64_t features, float eps) {
  LayerNorm out;
  out.eps = eps;
  out.weight = vector(name + ".weight", features);
  if (checkpoint_.find(name + ".bias") != nullptr) out.bias = vector(name + ".bias", features);
  return out;
}

HeadLayerNorm Loader::head_layer_norm(const std::string& name, int64_t heads, int64_t head_dim,
                                      float eps) {
  HeadLayerNorm out;
  out.eps = eps;
  const std::array shape = {heads, head_dim};
  if (const CheckpointTensor* tensor = take(name + ".weight", shape)) {
    out.weight = backend_.upload(decode(*tensor));
    packed_bytes_ += out.weight.bytes();
  }
  return out;
}

std::pair<RmsNorm, RmsNorm> Loader::head_norms(const std::string& q_name, const std::string& k_name,
                                               const HeadRows& shape, float eps) {
  std::pair<RmsNorm, RmsNorm> out;
  out.first.eps = out.second.eps = eps;
  const std::array sizes = {shape.head_dim};
  const CheckpointTensor* q_tensor = take(q_name + ".weight", sizes);
  const CheckpointTensor* k_tensor = take(k_name + ".weight", sizes);
  if (q_tensor == nullptr || k_tensor == nullptr) return out;
  std::vector<float> q = decode(*q_tensor);
  std::vector<float> k = decode(*k_tensor);
  balance_head_norms(q, k, shape.rope_dims);
  out.first.weight = backend_.upload(q);
  out.second.weight = backend_.upload(k);
  packed_bytes_ += out.first.weight.bytes() + out.second.weight.bytes();
  return out;
}

std::vector<float> Loader::optional_divisors(const std::string& name, int64_t size) {
  return has(name) ? divisors(name, size) : std::vector<float>();
}

std::vector<float> Loader::divisors(const std::string& name, int64_t size) {
  const std::string full_name = name + ".weight";
  const std::array shape = {size};
  const CheckpointTensor* tensor = take(full_name, shape);
  if (tensor == nullptr) return {};
  std::vector<float> values = decode(*tensor);
  for (const float value : values) {
    if (!(std::isfinite(value) && value > 0)) {
      fail(ErrorCode::corrupt_data, full_name,
           "expected positive numbers, found " + std::to_string(value));
      return {};
    }
  }
  return values;
}

Result<void> Loader::finish() {
  HEADRACE_TRY(checkpoint_.check_whole());
  if (!missing_.empty()) {
    return Error{ErrorCode::corrupt_data, "the file lacks the tensors " + name_some(missing_),
                 checkpoint_.path(), "the file is incomplete or of a variant not built in"};
  }
  if (error_) return *error_;
  HEADRACE_TRY(adapters_.finish());
  std::vector<std::string> unread;
  for (size_t i = 0; i < was_read_.size(); ++i) {
    if (!was_read_[i]) unread.push_back(checkpoint_.tensors()[i].name);
  }
  if (!unread.empty()) {
    return Error{ErrorCode::unsupported,
                 "the file has tensors that this architecture does not use: " + name_some(unread),
                 checkpoint_.path(), "its results would be wrong without them"};
  }
  return {};
}

}  // namespace headrace
