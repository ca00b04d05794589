// The ways to open models that a benchmark compares: from options to OpenOptions, and what is said
// of each beside its figures.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/open_model.h"
#include "cli/command.h"
#include "headrace/result.h"

namespace headrace::cli {

struct BenchModelArgs {
  std::vector<std::string> models;
  std::vector<int64_t> threads, chunks;
  bool pin = false;
  bool full_head = false;
  bool no_pack = false;
  std::string quantize;
  std::string kv_types;
  std::string isas;
};

/// -m, -t, --pin, --full-head, --no-pack, --kv-type, --isa and -ub, all but flags with several
/// values.
std::vector<Option> bench_model_options(BenchModelArgs& args);

/// One way to open a model.
struct BenchModel {
  std::string path;
  OpenOptions options;
};

/// Every combination of what was asked for, each opened for `context` tokens and checked by
/// `check_needs`.
Result<std::vector<BenchModel>> bench_models(const BenchModelArgs& args, int64_t context,
                                             const CheckNeeds& check_needs);

/// A model as it was opened: what some rows have in common.
struct BenchSetting {
  std::string model;  ///< what it is called
  std::string file;   ///< its path
  uint64_t weight_bytes = 0;
  std::string quantized;  ///< what the weights were brought to at load; empty: nothing
  bool is_packed = true;  ///< else weights stay in the file
  int64_t num_parameters = 0;
  int64_t num_active_parameters = 0;  ///< that a token uses
  std::string cpu;
  std::string isa;      ///< "avx512"
  std::string kernels;  ///< "cpu avx512 (VNNI)"
  int num_threads = 0;
  int num_processors = 0;
  std::string kv_type;
  int64_t chunk_tokens = 0;
  double peak_macs_per_second = 0;
  std::string peak_instruction;
};

std::shared_ptr<BenchSetting> describe(const OpenedModel& model);

/// One line for people.
std::string setting_text(const BenchSetting& setting);

/// The first of the keys that each row has of its setting, and the rest.
void add_setting(nlohmann::ordered_json& row, const BenchSetting& setting);
void add_setting_details(nlohmann::ordered_json& row, const BenchSetting& setting);

/// What may differ between settings: a heading, and its cell.
struct SettingColumn {
  std::string head;
  bool is_right = true;
  std::string (*cell)(const BenchSetting& setting);
};
/// Those that do differ.
std::vector<SettingColumn> setting_columns(
    const std::vector<std::shared_ptr<const BenchSetting>>& settings);

/// Each of the values once, in order; `otherwise` where there are none.
template <class T>
std::vector<T> given_or(const std::vector<T>& given, const T& otherwise) {
  std::vector<T> out;
  for (const T& value : given) {
    bool is_new = true;
    for (const T& other : out) is_new &= !(other == value);
    if (is_new) out.push_back(value);
  }
  if (out.empty()) out.push_back(otherwise);
  return out;
}

/// The parts of a list, each once; "" alone where nothing was given.
std::vector<std::string> parts_once(const std::string& list);

/// An option whose numbers may be lists and ranges.
Option numbers_option(std::string names, std::string help, std::vector<int64_t>* target,
                      std::string default_text, double least, double most);

}  // namespace headrace::cli
