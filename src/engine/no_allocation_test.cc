// Steps after the first ones allocate nothing, on any thread: no lock of the heap in the middle of
// decoding, and memory that does not creep. Replaces operator new of this program, so it is one of
// its own.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <new>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/checkpoint.h"
#include "engine/session/session.h"
#include "model/model.h"
#include "tests/format_models.h"
#include "tests/replaced_new.h"

namespace {

std::atomic<int64_t> num_allocations{0};

}  // namespace

void* allocate_for_test(size_t size, size_t alignment) {
  num_allocations.fetch_add(1);
  return allocate_plainly(size, alignment);
}

namespace headrace {
namespace {

constexpr int64_t kChunk = 40;
constexpr int64_t kContext = 1400;  // three segments of attention

void feed(Session& session, int64_t count) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>((11 * i + 3) % 50);
  const auto ignore = [](int64_t, std::span<const float>) {};
  ASSERT_TRUE(session.feed(tokens, LogitsFor::last, ignore).ok());
}

/// Allocations of feeding `count` tokens, but for this function's own.
int64_t allocations_of(Session& session, int64_t count) {
  const std::vector<TokenId> tokens(static_cast<size_t>(count), 7);
  const auto ignore = [](int64_t, std::span<const float>) {};
  const int64_t before = num_allocations.load();
  const bool is_fed = session.feed(tokens, LogitsFor::last, ignore).ok();
  const int64_t after = num_allocations.load();
  EXPECT_TRUE(is_fed);
  return after - before;
}

class Steps : public testing::TestWithParam<std::tuple<Isa, bool>> {};

TEST_P(Steps, AllocateNothingOnceOneOfEachSizeWasSeen) {
  const auto [isa, pack] = GetParam();
  const std::string path = testing::TempDir() + "no_allocation_test.gguf";
  test::model_of_formats(test::every_format()).file.write(path);
  const auto checkpoint = std::move(open_checkpoint(path).value());
  const auto backend = make_cpu_backend({.isa = isa, .num_threads = 2});
  LoadModelOptions options;
  options.pack = pack;
  const auto model = std::move(load_model(*checkpoint, *backend, options).value());
  const KvType kv_type = isa == Isa::reference ? KvType::f32 : kDefaultKvType;
  const auto session =
      make_session(*model, {.kv_type = kv_type, .max_tokens = kContext, .chunk_tokens = kChunk});
  ASSERT_GT(num_allocations.load(), 0);  // they are counted
  feed(*session, kChunk);
  feed(*session, 1);
  while (session->num_tokens() + kChunk + 12 < kContext) {
    ASSERT_EQ(allocations_of(*session, kChunk), 0) << "at " << session->num_tokens();
    for (const int64_t rows : {1, 3, 8}) {
      ASSERT_EQ(allocations_of(*session, rows), 0) << "at " << session->num_tokens();
    }
  }
  std::filesystem::remove(path);
}

std::string name_of(const testing::TestParamInfo<std::tuple<Isa, bool>>& test) {
  return std::string(isa_name(std::get<0>(test.param))) +
         (std::get<1>(test.param) ? "" : "_weights_in_file");
}

INSTANTIATE_TEST_SUITE_P(Cpu, Steps,
                         testing::Combine(testing::ValuesIn(available_isas()), testing::Bool()),
                         name_of);

}  // namespace
}  // namespace headrace
