// See embedding_vector.h.
#include "api/embedding_vector.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/check.h"

namespace headrace::api {
namespace {

double length_of(std::span<const float> vector) {
  double sum = 0;
  for (const float value : vector) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

}  // namespace

Result<void> shape_embedding(std::vector<float>& vector, const EmbeddingOptions& options) {
  const auto dimensions = static_cast<size_t>(options.dimensions);
  if (dimensions > 0 && dimensions < vector.size()) vector.resize(dimensions);
  const double length = length_of(vector);
  if (!(length > 0)) {
    return Error{ErrorCode::internal, "the first dimensions of the embedding are all zeros", "",
                 "ask for more of them"};
  }
  if (!options.normalizes) return {};
  for (float& value : vector) value = static_cast<float>(static_cast<double>(value) / length);
  return {};
}

std::vector<float> weighted_mean(std::span<const std::vector<float>> vectors,
                                 std::span<const double> weights) {
  HEADRACE_CHECK(!vectors.empty());
  HEADRACE_CHECK_EQ(vectors.size(), weights.size());
  std::vector<double> sum(vectors.front().size());
  double total = 0;
  for (size_t i = 0; i < vectors.size(); ++i) {
    HEADRACE_CHECK_EQ(vectors[i].size(), sum.size());
    total += weights[i];
    for (size_t j = 0; j < sum.size(); ++j) {
      sum[j] += weights[i] * static_cast<double>(vectors[i][j]);
    }
  }
  std::vector<float> out(sum.size());
  for (size_t j = 0; j < sum.size(); ++j) out[j] = static_cast<float>(sum[j] / total);
  return out;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  HEADRACE_CHECK_EQ(a.size(), b.size());
  double product = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return product / (length_of(a) * length_of(b));
}

void append_numbers(std::string& out, std::span<const float> vector) {
  std::array<char, 32> text;  // the longest float has 15 characters
  out += '[';
  for (size_t i = 0; i < vector.size(); ++i) {
    if (i > 0) out += ',';
    const auto end = std::to_chars(text.data(), text.data() + text.size(), vector[i]).ptr;
    out.append(text.data(), end);
  }
  out += ']';
}

void append_base64(std::string& out, std::span<const float> vector) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const size_t num_bytes = vector.size() * sizeof(float);
  const auto byte_at = [&](size_t i) -> uint32_t {
    if (i >= num_bytes) return 0;
    return (std::bit_cast<uint32_t>(vector[i / 4]) >> (8 * (i % 4))) & 0xFF;
  };
  out += '"';
  for (size_t i = 0; i < num_bytes; i += 3) {
    const uint32_t bits = byte_at(i) << 16 | byte_at(i + 1) << 8 | byte_at(i + 2);
    out += kDigits[bits >> 18];
    out += kDigits[(bits >> 12) & 63];
    out += i + 1 < num_bytes ? kDigits[(bits >> 6) & 63] : '=';
    out += i + 2 < num_bytes ? kDigits[bits & 63] : '=';
  }
  out += '"';
}

}  // namespace headrace::api
