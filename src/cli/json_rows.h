// Results with the same keys in every row, as JSON, CSV and the data of a page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace headrace::cli {

/// Bytes that are not UTF-8 become U+FFFD. `indent` -1: one line.
std::string json_text(const nlohmann::ordered_json& value, int indent);

/// The keys of the first row as the head line, then a line a row; quoted as RFC 4180 says. Arrays
/// are joined with "; ", null is an empty field.
std::string csv_text(const nlohmann::ordered_json& rows);

/// The page with Chart.js where it says "/*CHART_JS*/" and `rows` where it says "@ROWS@", both
/// inside script elements.
std::string page_text(std::string_view page, std::string_view chart_js,
                      const nlohmann::ordered_json& rows);

}  // namespace headrace::cli
