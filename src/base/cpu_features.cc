// See cpu_features.h.
#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstring>

#include "base/os/amx_permission.h"
#include "base/os/arm_capabilities.h"

namespace headrace {
namespace {

CpuFeatures detect() {
  CpuFeatures f;
#if defined(__x86_64__)
  __builtin_cpu_init();
  // These builtins also ask whether the operating system saves the wide registers.
  f.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  f.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512cd");
  f.avx512_vnni = f.avx512 && __builtin_cpu_supports("avx512vnni");
  f.avx512_bf16 = f.avx512 && __builtin_cpu_supports("avx512bf16");
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) f.avx2 = f.avx2 && (c & bit_F16C) != 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) f.avx_vnni = f.avx2 && (a & (1U << 4)) != 0;
  f.avx512_vbmi = f.avx512 && __builtin_cpu_supports("avx512vbmi");
  if (f.avx512 && __get_cpuid_count(7, 0, &a, &b, &c, &d)) {
    constexpr unsigned kAmxBf16 = 1U << 22;
    constexpr unsigned kAmxTile = 1U << 24;
    f.amx_bf16 = (d & kAmxBf16) != 0 && (d & kAmxTile) != 0 && request_amx_permission();
  }
  char brand[49] = {};
  for (unsigned i = 0; i < 3; ++i) {
    if (!__get_cpuid(0x80000002U + i, &a, &b, &c, &d)) break;
    const unsigned words[4] = {a, b, c, d};
    std::memcpy(brand + 16 * i, words, sizeof(words));
  }
  f.model_name = brand;
  while (!f.model_name.empty() && f.model_name.back() == ' ') f.model_name.pop_back();
#elif defined(__aarch64__)
  const ArmCapabilities arm = arm_capabilities();
  f.neon = arm.neon;
  f.neon_dot = arm.neon && arm.dot_product;
  // The processor's own registers have numbers only.
  f.model_name = "AArch64";
#endif
  return f;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::reference:
      return "reference";
    case Isa::neon:
      return "neon";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::amx:
      return "amx";
  }
  return "unknown";
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

std::vector<std::string> isa_names() {
#if defined(__aarch64__)
  const std::vector<Isa> isas = {Isa::reference, Isa::neon};
#else
  const std::vector<Isa> isas = {Isa::reference, Isa::avx2, Isa::avx512, Isa::amx};
#endif
  std::vector<std::string> names;
  for (const Isa isa : isas) names.emplace_back(isa_name(isa));
  return names;
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas = {Isa::reference};
  if (cpu_features().neon) isas.push_back(Isa::neon);
  if (cpu_features().avx2) isas.push_back(Isa::avx2);
  if (cpu_features().avx2 && cpu_features().avx512_vnni) isas.push_back(Isa::avx512);
  const CpuFeatures& cpu = cpu_features();
  if (isas.back() == Isa::avx512 && cpu.avx512_bf16 && cpu.avx512_vbmi && cpu.amx_bf16) {
    isas.push_back(Isa::amx);
  }
  return isas;
}

Result<Isa> choose_isa(std::string_view choice, std::span<const Isa> available) {
  std::string names;
  Isa best = Isa::reference;
  for (const Isa isa : available) {
    if (isa != Isa::amx) best = isa;
    if (isa_name(isa) == choice) return isa;
    names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
  }
  if (choice.empty()) return best;
  const auto known_names = isa_names();
  const bool known = std::find(known_names.begin(), known_names.end(), choice) != known_names.end();
  return Error{known ? ErrorCode::unsupported : ErrorCode::invalid_argument,
               known ? "this machine has no " + std::string(choice) +
                           (choice == "amx" ? " with bf16, or its system does not grant it" : "")
                     : "unknown instruction set '" + std::string(choice) + "'",
               "", "choose one of " + names};
}

}  // namespace headrace
