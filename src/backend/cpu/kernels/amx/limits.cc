// What the AMX path can do at most: products of two tiles of bf16 added to a tile of float32.
#include "backend/cpu/kernels/amx/tiles.inl"
#include "backend/cpu/kernels/body/read_memory.inl"
#include "backend/cpu/kernels/kernel_names.inl"

namespace headrace::HEADRACE_ISA_NAMESPACE {

int64_t peak(int64_t rounds, float* sink) {
  // Ones: with zeros the processor would need less power and run at a higher frequency than with
  // numbers.
  alignas(64) uint16_t ones[kTileElements];
  for (uint16_t& one : ones) one = 0x3f80;
  configure_tiles(16);
  tile_zero<0>();
  tile_zero<1>();
  tile_zero<2>();
  tile_zero<3>();
  tile_load<4>(ones, 64);
  tile_load<6>(ones, 64);
  for (int64_t r = 0; r < rounds; ++r) {
    tile_multiply<0, 4, 6>();
    tile_multiply<1, 4, 6>();
    tile_multiply<2, 4, 6>();
    tile_multiply<3, 4, 6>();
  }
  alignas(64) float sums[16 * 16];
  tile_store<0>(sums, 64);
  release_tiles();
  sink[0] += sums[0];
  constexpr int64_t kMultiplyAdds = 16 * 16 * kTileCols;
  return rounds * 4 * kMultiplyAdds;
}

}  // namespace headrace::HEADRACE_ISA_NAMESPACE
