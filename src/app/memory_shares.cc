// See memory_shares.h.
#include "app/memory_shares.h"

#include <algorithm>
#include <utility>

#include "app/memory_plan.h"
#include "base/saturating.h"

namespace headrace {
namespace {

std::string in_mib(uint64_t bytes) {
  constexpr uint64_t kMib = uint64_t{1} << 20;
  return std::to_string((bytes + kMib - 1) / kMib) + " MiB";
}

/// The two as texts that tell them apart.
std::pair<std::string, std::string> beside_each_other(uint64_t a, uint64_t b) {
  if (in_mib(a) != in_mib(b)) return {in_mib(a), in_mib(b)};
  return {std::to_string(a) + " bytes", std::to_string(b) + " bytes"};
}

/// What a model takes at the least.
uint64_t least_of(const MemoryClaim& claim) {
  return saturating_add(claim.fixed_bytes, std::max(claim.kv_bytes, claim.least_kv_bytes));
}

Error too_large_beside(std::span<const MemoryClaim> claims, size_t which, uint64_t budget) {
  const MemoryClaim& claim = claims[which];
  std::string message = "the model " + claim.name + " needs " + in_mib(least_of(claim)) +
                        " of memory (weights and activations " + in_mib(claim.fixed_bytes) +
                        (claim.kv_bytes > 0 ? ", KV cache " + in_mib(claim.kv_bytes) : "") + ")";
  if (which > 0) message += ", beside";
  for (size_t i = 0; i < which; ++i) {
    message += (i > 0 ? ", " : " ") + claims[i].name + " with " + in_mib(least_of(claims[i]));
  }
  message += "; all together may use " + in_mib(budget);
  return {ErrorCode::resource_exhausted, std::move(message), claim.name,
          "leave a model out, or use a smaller model or a smaller quantisation"};
}

}  // namespace

Result<std::vector<uint64_t>> divide_memory(std::span<const MemoryClaim> claims,
                                            uint64_t budget_bytes) {
  uint64_t taken = 0;  // by weights, activations and the caches that were asked for
  uint64_t least = 0;
  uint64_t num_sharing = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    least = saturating_add(least, least_of(claims[i]));
    if (least > budget_bytes) return too_large_beside(claims, i, budget_bytes);
    taken += claims[i].fixed_bytes + claims[i].kv_bytes;
    if (claims[i].kv_bytes == 0) ++num_sharing;
  }
  const uint64_t share = num_sharing > 0 ? (budget_bytes - taken) / num_sharing : 0;
  std::vector<uint64_t> out;
  for (const MemoryClaim& claim : claims) {
    out.push_back(claim.kv_bytes > 0 ? claim.kv_bytes : share);
    if (out.back() >= claim.least_kv_bytes) continue;
    const auto [given, needed] = beside_each_other(out.back(), claim.least_kv_bytes);
    return Error{ErrorCode::resource_exhausted,
                 "the model " + claim.name + " gets a KV cache of " + given + " and needs " +
                     needed + " at the least",
                 claim.name, "give each model the KV memory that it needs"};
  }
  return out;
}

uint64_t limit_of_budget(uint64_t budget) {
  return saturating_add(budget, budget / 9);
}

}  // namespace headrace
