// A load as JSON. Apart from load_report.cc, which makes tables of it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cli/bench/load_report.h"

namespace headrace::cli {

/// The figures under fixed keys, none of which is a list of numbers. What was not measured is null.
nlohmann::ordered_json load_figures(const LoadEntry& entry);

/// Percentiles, the course of time and the rates of the ideal, for plots.
void add_load_plots(nlohmann::ordered_json& row, const LoadEntry& entry);

/// Every request.
void add_load_requests(nlohmann::ordered_json& row, const LoadEntry& entry);

}  // namespace headrace::cli
