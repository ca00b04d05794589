// Which instruction sets this machine has, and which one the kernels shall use.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"

namespace headrace {

/// Kernel families, from the plain judge to the widest.
enum class Isa { reference, neon, avx2, avx512, amx };

/// "reference", "neon", "avx2", "avx512", "amx".
std::string_view isa_name(Isa isa);

/// What the processor and the operating system both support.
struct CpuFeatures {
  bool avx2 = false;      ///< AVX2, FMA and F16C
  bool avx_vnni = false;  ///< VEX-encoded dpbusd
  bool avx512 = false;    ///< F, BW, DQ, VL and CD
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx512_vbmi = false;  ///< VBMI: byte permutations
  /// AMX tiles and their products of bf16. The system grants them on request: looking up the
  /// features asks for them.
  bool amx_bf16 = false;
  bool neon = false;
  bool neon_dot = false;   ///< sdot and udot
  std::string model_name;  ///< as the processor calls itself
};

/// Looked up once.
const CpuFeatures& cpu_features();

/// The names of every Isa that machines of this architecture may have, as in Isa.
std::vector<std::string> isa_names();

/// Every Isa this machine can run, widest last.
std::vector<Isa> available_isas();

/// The Isa named by `choice`, or the best one of `available` where it is empty: the widest but amx,
/// which is for many rows at a time (docs/decisions/bf16-tiles.md). Errors: an unknown name, or one
/// that is not available; `where` is left empty. The environment variable HEADRACE_ISA is read by
/// the caller.
Result<Isa> choose_isa(std::string_view choice, std::span<const Isa> available = available_isas());

}  // namespace headrace
