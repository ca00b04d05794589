// The measured limits of the machine are plausible on every instruction set, and reading reads.
#include "backend/cpu/limits.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/kernels/tables.h"
#include "backend/cpu/test_tensors.h"

namespace headrace {
namespace {

using namespace backend_test;

TEST(Limits, ArePlausibleOnEveryIsaAndNumberOfThreads) {
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 3}) {
      const auto backend = backend_of(isa, threads);
      SCOPED_TRACE(std::string(isa_name(isa)) + " on " + std::to_string(threads));
      EXPECT_FALSE(backend->peak_instruction().empty());
      const double peak = backend->measure_peak_macs();
      EXPECT_GT(peak, 1e8);
      EXPECT_LT(peak, 1e15);
      // Smaller than one grain a thread, and a size that no number of threads divides.
      for (const size_t bytes : {size_t{1}, size_t{7654321}}) {
        const double rate = backend->measure_read_rate(bytes, 0.15);
        EXPECT_GT(rate, 1e7) << bytes;
        EXPECT_LT(rate, 1e14) << bytes;
      }
    }
  }
}

TEST(Limits, PeakCountsWhatItDoes) {
  for (const Isa isa : available_isas()) {
    for (const KernelTable* table : kernel_tables(isa)) {
      float sink[16] = {};
      const int64_t one = table->peak(1, sink);
      EXPECT_GT(one, 0) << table->name;
      std::fill(std::begin(sink), std::end(sink), 0.0F);
      EXPECT_EQ(table->peak(7, sink), 7 * one) << table->name;
      EXPECT_TRUE(std::isfinite(sink[0])) << table->name;
    }
  }
}

TEST(Limits, EveryByteIsRead) {
  const size_t size = 1024;
  const Buffer buffer(DType::f32, 1, size / sizeof(float));
  auto* const bytes = reinterpret_cast<std::byte*>(buffer.view().f32());
  for (const Isa isa : available_isas()) {
    for (const KernelTable* table : kernel_tables(isa)) {
      for (const int64_t prefetch : {0, 1024}) {
        const uint64_t before = table->read_memory(bytes, size, prefetch);
        for (size_t i = 0; i < size; ++i) {
          bytes[i] ^= std::byte{4};
          EXPECT_NE(table->read_memory(bytes, size, prefetch), before) << table->name << " " << i;
          bytes[i] ^= std::byte{4};
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace
