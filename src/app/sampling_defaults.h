// What sampling does where the user says nothing: the model file's own wishes, else documented
// numbers. Must not know flags.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/metadata.h"
#include "headrace/params.h"

namespace headrace {

/// The documented defaults: temperature 0.8, top-k 40, top-p 0.95, min-p 0.05, no penalties.
SamplingParams documented_sampling();

/// The documented defaults with the file's `general.sampling.*` keys (temp, top_k, top_p, min_p,
/// penalty_repeat, penalty_last_n) put over them. A key of the wrong type or out of range is left
/// out and named in `warnings`.
SamplingParams sampling_defaults(const Metadata& metadata, std::vector<std::string>& warnings);

}  // namespace headrace
