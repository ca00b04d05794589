// For the tests of reports.
#pragma once

#include <memory>
#include <string>

#include "cli/bench/bench_setting.h"

namespace headrace::cli {

/// Of a model in the file `model`.gguf.
inline std::shared_ptr<BenchSetting> setting(const std::string& model) {
  auto out = std::make_shared<BenchSetting>();
  out->model = model;
  out->file = model + ".gguf";
  out->isa = "avx2";
  out->num_threads = 2;
  out->kv_type = "f16";
  out->peak_macs_per_second = 500e9;
  out->peak_instruction = "vpmaddubsw";
  return out;
}

}  // namespace headrace::cli
