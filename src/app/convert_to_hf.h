// A model written as a Hugging Face directory: config.json, weights, tokenizer. Must not know how
// progress is shown.
#pragma once

#include <string>

#include "app/convert.h"
#include "checkpoint/checkpoint.h"
#include "headrace/result.h"

namespace headrace {

/// Whether `out` of a conversion is meant as a directory: it does not end with ".gguf".
bool is_hf_target(const std::string& out);

/// Writes the GGUF model `from` as the directory `out`, which appears once it is whole: until then
/// it is beside, under the same name and ".part-" with a number. Where `out` is a link to a
/// directory, that one is written. Matrices get the type `options.to` (f32, f16 or
/// bf16); without one they stay, and those in blocks become F16. Vectors get it where that loses
/// nothing, else F32. Weights of more than `options.most_shard_bytes` are spread over several
/// files, with an index. What cannot be said in a tokenizer.json is left out, with a warning.
///
/// Errors: invalid_argument (something is there already and `options.overwrite` is not set, or it
/// is no directory with config.json and safetensors, or `from` lies in it; another type; `from` is
/// such a directory); those of
/// plan_hf_directory; corrupt_data (a weight beyond the type); resource_exhausted; io_error;
/// cancelled.
Result<ConvertSummary> convert_to_hf(const Checkpoint& from, const std::string& out,
                                     const ConvertOptions& options);

}  // namespace headrace
