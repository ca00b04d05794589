// Proves on this machine that Headrace computes right: kernels against plain double arithmetic,
// batch invariance bit for bit, a model against the reference path and one known answer. Must not
// know how results are shown.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "headrace/result.h"

namespace headrace {

struct SelftestCheck {
  std::string name;
  bool ok = false;
  bool skipped = false;  ///< then ok is true, and `detail` says why
  std::string detail;
};

struct SelftestOptions {
  std::string model_path;  ///< empty: the checks that need a model are skipped
  std::vector<Isa> isas;   ///< empty: all of this machine
};

/// Called with each check as soon as it is known.
using OnCheck = std::function<void(const SelftestCheck&)>;

/// Runs everything. A check that cannot run at all has failed.
std::vector<SelftestCheck> run_selftest(const SelftestOptions& options, const OnCheck& on_check);

/// Kernels of one instruction set against double arithmetic, for one row and many, whole and in
/// pieces, with one thread and three.
void check_kernels(Isa isa, const OnCheck& on_check);

/// The model on one instruction set: against the reference path, in chunks, with 1 to 4 threads,
/// and its known answer if it has one.
void check_model(const std::string& path, Isa isa, const OnCheck& on_check);

}  // namespace headrace
