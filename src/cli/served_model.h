// An opened model as api/ wants to know it.
#pragma once

#include "api/served_model.h"
#include "app/open_model.h"

namespace headrace::cli {

/// `opened` must outlive the result. `sampling` and `stop` hold where a request says nothing.
api::ServedModel served_model(const OpenedModel& opened, SamplingParams sampling, StopParams stop);

}  // namespace headrace::cli
