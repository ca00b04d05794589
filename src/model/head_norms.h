// Puts the norm weights of a layer's queries and keys on one footing.
#pragma once

#include <cstdint>
#include <span>

namespace headrace {

/// The norms of queries and keys multiply each feature by a weight; only the product of the two
/// matters for attention. Where it is uneven (one large, the other small) a key rounded to 8 bits
/// loses more than it must: an error of a key counts by the query's feature that it meets. So each
/// feature of k is multiplied and that of q divided by the power of two that brings the two weights
/// nearest to each other; features i and i + rope_dims / 2, below rope_dims, which the rotation
/// mixes, by the same one. Powers of two change no float32 result.
/// Both spans have head_dim elements. A feature whose weight is zero or not finite is left alone.
void balance_head_norms(std::span<float> q, std::span<float> k, int64_t rope_dims);

}  // namespace headrace
