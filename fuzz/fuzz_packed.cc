// Packed weights of every layout, of any types, shapes and bytes: an error or a matrix of the size
// that it says, never more.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "quant/packed/packed_weights.h"

namespace {

using namespace headrace;

/// Takes the input apart.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}

  int next() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }

  /// A tensor of small or wild dimensions, most often with data of the right size.
  PackedTensor tensor(const char* name) {
    PackedTensor out;
    out.name = name;
    out.type = static_cast<PackedType>(next() % 8);
    const int num_dims = next() % 4;
    size_t bytes = 1;
    for (int i = 0; i < num_dims; ++i) {
      const int dim = next();
      const int64_t wild[] = {-1, INT64_MAX, INT64_MIN, int64_t{1} << 32};
      out.shape.push_back(dim >= 252 ? wild[dim - 252] : dim % 65);
      bytes *= static_cast<size_t>(dim % 65);
    }
    constexpr size_t kBytes[] = {1, 1, 4, 8, 1, 2, 2, 4};
    bytes = bytes * kBytes[static_cast<size_t>(out.type)] + (next() % 16 == 1 ? 1 : 0);
    storage_.emplace_back(bytes);
    for (std::byte& byte : storage_.back()) byte = static_cast<std::byte>(next());
    out.data = storage_.back();
    return out;
  }

 private:
  const uint8_t* data_;
  size_t left_;
  std::vector<std::vector<std::byte>> storage_;
};

/// `plan` is of the same module.
void check(const Result<UnpackedPlan>& plan, const Result<UnpackedMatrix>& matrix) {
  if (!matrix.ok()) {
    if (matrix.error().message.empty() || matrix.error().where.empty()) std::abort();
    return;
  }
  const auto row_bytes = format_row_bytes(matrix->format, static_cast<uint64_t>(matrix->cols));
  if (!row_bytes || *row_bytes * static_cast<uint64_t>(matrix->rows) != matrix->bytes.size()) {
    std::abort();
  }
  if (!plan.ok() || plan->format != matrix->format || plan->rows != matrix->rows ||
      plan->cols != matrix->cols) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const int kind = input.next() % 5;
  const int options = input.next();
  const int64_t group_size = input.next() - 1;
  const int bits = 1 << (options & 3);
  const PackedTensor first = input.tensor("first");
  const PackedTensor second = input.tensor("second");
  const PackedTensor third = input.tensor("third");
  const PackedTensor fourth = input.tensor("fourth");
  const PackedTensor* maybe = (options & 4) != 0 ? &fourth : nullptr;
  const GptqZeros form = (options & 8) != 0 ? GptqZeros::as_is : GptqZeros::minus_one;
  const GptqModule gptq = {bits, group_size, form, first, second, third, maybe};
  const AwqModule awq = {group_size, first, maybe, second};
  const PackQuantizedModule packed = {bits, group_size, first, second, third, maybe, nullptr};
  const ScaledIntModule ints = {first, second, maybe};
  const ScaledFp8Module floats = {first, second, group_size, options};
  switch (kind) {
    case 0:
      check(plan_gptq(gptq), unpack_gptq(gptq));
      break;
    case 1:
      check(plan_awq(awq), unpack_awq(awq));
      break;
    case 2:
      check(plan_pack_quantized(packed), unpack_pack_quantized(packed));
      break;
    case 3:
      check(plan_scaled_int(ints), unpack_scaled_int(ints));
      break;
    default:
      check(plan_scaled_fp8(floats), unpack_scaled_fp8(floats));
  }
  return 0;
}
