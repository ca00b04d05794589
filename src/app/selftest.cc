// See selftest.h.
#include "app/selftest.h"

#include <exception>

namespace headrace {

std::vector<SelftestCheck> run_selftest(const SelftestOptions& options, const OnCheck& on_check) {
  std::vector<SelftestCheck> checks;
  const OnCheck keep = [&](const SelftestCheck& check) {
    checks.push_back(check);
    if (on_check) on_check(check);
  };
  const std::vector<Isa> isas = options.isas.empty() ? available_isas() : options.isas;
  for (const Isa isa : isas) {
    // A kernel that throws is a finding like any other.
    try {
      check_kernels(isa, keep);
      if (!options.model_path.empty()) check_model(options.model_path, isa, keep);
    } catch (const std::exception& fault) {
      keep({std::string(isa_name(isa)), false, false, fault.what()});
    }
  }
  if (options.model_path.empty()) {
    keep({"model", true, true, "no model in the store; fetch one with: headrace pull"});
  }
  return checks;
}

}  // namespace headrace
