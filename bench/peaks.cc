// See peaks.h.
#include "bench/peaks.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/cpu_features.h"
#include "base/function_ref.h"

namespace headrace {
namespace {

double best_seconds(int tries, FunctionRef<void()> run) {
  double best = 1e9;
  for (int i = 0; i < tries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count());
  }
  return best;
}

#if defined(__x86_64__)
constexpr int kIterations = 20000;
constexpr int kTries = 300;

// Ten independent chains hide the latency of every instruction here. Registers are zero first:
// denormal numbers would be slow.
#define HEADRACE_TEN(instruction)                                                     \
  instruction "0\n" instruction "1\n" instruction "2\n" instruction "3\n" instruction \
              "4\n" instruction "5\n" instruction "6\n" instruction "7\n" instruction \
              "8\n" instruction "9\n"
#define HEADRACE_CLOBBERS \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm14", "xmm15"
#define HEADRACE_PEAK(function, instruction)                                            \
  void function() {                                                                     \
    asm volatile("vzeroall" ::: HEADRACE_CLOBBERS, "xmm10", "xmm11", "xmm12", "xmm13"); \
    for (int i = 0; i < kIterations; ++i) {                                             \
      asm volatile(HEADRACE_TEN(instruction)::: HEADRACE_CLOBBERS);                     \
    }                                                                                   \
    asm volatile("vzeroupper");                                                         \
  }
HEADRACE_PEAK(fma_ymm, "vfmadd231ps %%ymm14, %%ymm15, %%ymm")
HEADRACE_PEAK(maddubs_ymm, "vpmaddubsw %%ymm14, %%ymm15, %%ymm")
HEADRACE_PEAK(dpbusd_ymm, "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm")
HEADRACE_PEAK(fma_zmm, "vfmadd231ps %%zmm14, %%zmm15, %%zmm")
HEADRACE_PEAK(dpbusd_zmm, "vpdpbusd %%zmm14, %%zmm15, %%zmm")

// Four independent products of tiles of ones: with zeros the processor would need less power and
// run at a higher frequency than with numbers.
void tdpbf16ps() {
  struct Config {
    uint8_t palette = 1;
    uint8_t unused[15] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } config;
  alignas(64) uint16_t ones[16 * 32];
  std::fill(std::begin(ones), std::end(ones), uint16_t{0x3f80});
  asm volatile("ldtilecfg %0" ::"m"(config));
  asm volatile(
      "tileloadd (%0,%1,1), %%tmm4\n tileloadd (%0,%1,1), %%tmm5\n"
      "tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3" ::"r"(ones),
      "r"(int64_t{64})
      : "memory");
  for (int i = 0; i < kIterations; ++i) {
    asm volatile(
        "tdpbf16ps %tmm5, %tmm4, %tmm0\n tdpbf16ps %tmm5, %tmm4, %tmm1\n"
        "tdpbf16ps %tmm5, %tmm4, %tmm2\n tdpbf16ps %tmm5, %tmm4, %tmm3");
  }
  asm volatile("tilerelease");
}
#undef HEADRACE_TEN
#undef HEADRACE_CLOBBERS
#undef HEADRACE_PEAK
#endif

}  // namespace

double cycles_per_second() {
#if defined(__x86_64__)
  // A multiplication takes three cycles on every processor that has AVX2.
  const double seconds = best_seconds(kTries, [] {
    uint64_t x = 3;
    for (int i = 0; i < kIterations; ++i) {
      asm volatile("imul %0, %0\n imul %0, %0\n imul %0, %0\n imul %0, %0" : "+r"(x));
    }
  });
  return 4 * 3.0 * kIterations / seconds;
#else
  return 0;
#endif
}

std::vector<Peak> arithmetic_peaks() {
  std::vector<Peak> peaks;
#if defined(__x86_64__)
  const auto measure = [&](bool has, const char* name, void (*run)(), int macs) {
    if (!has) return;
    peaks.push_back({name, 10.0 * kIterations * macs / best_seconds(kTries, run)});
  };
  const CpuFeatures& cpu = cpu_features();
  measure(cpu.avx2, "fma ymm", fma_ymm, 8);
  measure(cpu.avx2, "maddubs ymm", maddubs_ymm, 32);
  measure(cpu.avx_vnni, "dpbusd ymm", dpbusd_ymm, 32);
  measure(cpu.avx512, "fma zmm", fma_zmm, 16);
  measure(cpu.avx512_vnni, "dpbusd zmm", dpbusd_zmm, 64);
  // Four instructions an iteration, where the others have ten.
  measure(cpu.amx_bf16, "tdpbf16ps", tdpbf16ps, 4 * 16 * 16 * 32 / 10);
#endif
  return peaks;
}

double read_bandwidth() {
  constexpr size_t kBytes = size_t{1} << 30;
  constexpr size_t kPart = size_t{4} << 20;
  const std::unique_ptr<std::byte[]> area(new std::byte[kBytes]);
  std::memset(area.get(), 1, kBytes);
  double best = 0;
  uint64_t total = 0;
  // Parts one after the other: the best part was disturbed least.
  for (size_t begin = 0; begin < 2 * kBytes; begin += kPart) {
    const auto* words = reinterpret_cast<const uint64_t*>(area.get() + begin % kBytes);
    const double seconds = best_seconds(1, [&] {
      using Words = uint64_t __attribute__((vector_size(32)));
      Words sums[4] = {};
      for (size_t i = 0; i < kPart / 8; i += 16) {
        for (int j = 0; j < 4; ++j) {
          Words part;
          std::memcpy(&part, words + i + 4 * j, sizeof(part));
          sums[j] += part;
        }
        // As the kernels do: without, one thread reads less than it could.
        __builtin_prefetch(words + i + 512);
        __builtin_prefetch(words + i + 520);
      }
      total += (sums[0] + sums[1] + sums[2] + sums[3])[0];
    });
    best = std::max(best, static_cast<double>(kPart) / seconds);
  }
  asm volatile("" ::"r"(total));
  return best;
}

}  // namespace headrace
