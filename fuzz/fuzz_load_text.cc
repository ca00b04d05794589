// Lengths and bounds of a load as users write them: what is taken is written and read back as the
// same, and every length that is drawn is in range.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "app/load/length.h"
#include "app/load/slo.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto length = LoadLength::parse(text); length.ok()) {
    const auto again = LoadLength::parse(length->text());
    if (!again.ok() || again->text() != length->text()) std::abort();
    for (uint64_t i = 0; i < 8; ++i) {
      LoadRandom random(1, LoadPurpose::input_length, i);
      const int64_t drawn = length->draw(random);
      if (drawn < 1 || drawn > length->longest() || drawn > kMaxLoadLength) std::abort();
    }
  }
  if (const auto slo = parse_slo(text); slo.ok()) {
    if (slo->is_empty()) std::abort();
    const auto again = parse_slo(slo->text());
    if (!again.ok() || again->text() != slo->text()) std::abort();
  }
  return 0;
}
