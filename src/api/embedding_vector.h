// What is done with a vector after a model has made it. Must not know models or bodies.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/embedding_options.h"
#include "headrace/result.h"

namespace headrace::api {

/// Cuts the vector to options.dimensions, then brings it to length 1, as the options say. Error
/// (internal): what is left is all zeros, which has no direction.
Result<void> shape_embedding(std::vector<float>& vector, const EmbeddingOptions& options);

/// The mean of vectors of equal size, each as often as its weight says (the tokens that it stands
/// for). Not empty; the weights' sum is above 0.
std::vector<float> weighted_mean(std::span<const std::vector<float>> vectors,
                                 std::span<const double> weights);

/// The cosine of the angle between two vectors of equal size that are not all zeros.
double cosine(std::span<const float> a, std::span<const float> b);

/// "[0.25,-1e-05]": with as few digits as tell each number from all other floats.
void append_numbers(std::string& out, std::span<const float> vector);

/// The bytes of the floats, little-endian, in base64 with padding (RFC 4648, section 4), quoted.
void append_base64(std::string& out, std::span<const float> vector);

}  // namespace headrace::api
