// Broken GGUF files: every truncation of a small one, structured mutants, and large files that try
// to make larger structures. Each must open or give a typed error that says where, in time and
// within the memory bound, which the counting `operator new` below measures.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <new>

#include "base/random.h"
#include "checkpoint/checkpoint.h"
#include "tests/gguf_builder.h"

namespace {

std::atomic<size_t> live_bytes{0};
std::atomic<size_t> peak_bytes{0};

void* counted_new(size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  const size_t live = live_bytes += malloc_usable_size(memory);
  if (live > peak_bytes) peak_bytes = live;
  return memory;
}

void counted_delete(void* memory) {
  if (memory == nullptr) return;
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) {
  return counted_new(size);
}
void* operator new[](size_t size) {
  return counted_new(size);
}
void operator delete(void* memory) noexcept {
  counted_delete(memory);
}
void operator delete[](void* memory) noexcept {
  counted_delete(memory);
}
void operator delete(void* memory, size_t) noexcept {
  counted_delete(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  counted_delete(memory);
}

namespace headrace {
namespace {

using test::GgufBuilder;
using test::GgufField;
using test::GgufFieldPlace;

constexpr size_t kMostHeapBytes = size_t{64} << 20;
// Processor time, so that a busy machine does not fail the test. Sanitizers make allocation slow.
#ifdef HEADRACE_SANITIZED
constexpr double kLongestSeconds = 10;
#else
constexpr double kLongestSeconds = 1;
#endif

/// What became of one file.
struct Outcome {
  bool opened = false;
  ErrorCode code = ErrorCode::internal;
};

// Touches all that a loader would: every value, and the first and last block of every tensor.
void walk(const Checkpoint& checkpoint) {
  for (const auto& [key, value] : checkpoint.metadata().values()) {
    (void)checkpoint.metadata().get_ints(key);
    (void)checkpoint.metadata().get_floats(key);
    const auto strings = checkpoint.metadata().get_strings(key);
    size_t length = 0;
    if (strings.ok() && strings->has_value()) {
      for (const std::string_view text : **strings) length += std::string(text).size();
    }
    ASSERT_LE(length, checkpoint.file_bytes());
  }
  std::vector<float> block(256);
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const FormatTraits& traits = format_traits(tensor.format);
    ASSERT_GE(tensor.data.size(), traits.block_bytes);
    traits.decode(tensor.data.data(), block.data(), 1);
    traits.decode(tensor.data.data() + tensor.data.size() - traits.block_bytes, block.data(), 1);
    ASSERT_EQ(checkpoint.find(tensor.name), &tensor);
  }
}

class GgufMutant : public ::testing::Test {
 protected:
  std::string path_ = ::testing::TempDir() + "headrace_mutant_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".gguf";
  std::map<std::string, int> counts_;  ///< outcomes seen
  size_t most_heap_ = 0;
  double longest_seconds_ = 0;

  ~GgufMutant() override { std::filesystem::remove(path_); }

  Outcome open(const std::string& bytes) {
    // A new file each time: truncating an old one makes some file systems write it to the disk.
    std::filesystem::remove(path_);
    std::ofstream(path_, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    Outcome outcome;
    const size_t before = live_bytes;
    peak_bytes = before;
    const std::clock_t begin = std::clock();
    {
      const auto opened = open_checkpoint(path_);
      outcome.opened = opened.ok();
      if (opened.ok()) {
        walk(**opened);
      } else {
        outcome.code = opened.error().code;
        expect_good_error(opened.error(), bytes.size());
      }
    }
    const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    const size_t heap = peak_bytes - before;
    longest_seconds_ = std::max(longest_seconds_, took);
    most_heap_ = std::max(most_heap_, heap);
    EXPECT_LT(heap, kMostHeapBytes);
    EXPECT_LT(took, kLongestSeconds);
    ++counts_[outcome.opened ? "opened" : std::string(error_code_name(outcome.code))];
    return outcome;
  }

  void expect_good_error(const Error& error, size_t file_size) {
    const std::string text = error.to_string();
    EXPECT_TRUE(error.code == ErrorCode::corrupt_data || error.code == ErrorCode::unsupported ||
                error.code == ErrorCode::resource_exhausted || error.code == ErrorCode::mismatch)
        << text;
    EXPECT_EQ(text.rfind(path_, 0), 0u) << text;
    EXPECT_LT(text.size(), path_.size() + 700) << text;
    EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; }))
        << text;
    if (file_size < 4) return;  // no magic: a file of another kind
    EXPECT_NE(error.where.find("byte "), std::string::npos) << text;
  }

  void print_counts() const {
    for (const auto& [name, count] : counts_) std::cout << "  " << name << ": " << count;
    std::cout << "; heap at most " << most_heap_ / 1024 << " KiB, longest "
              << longest_seconds_ * 1e3 << " ms\n";
  }
};

// A small file with everything in it: all value types, nested arrays, an alignment, tensors of
// several formats and of one to four dimensions.
GgufBuilder everything() {
  GgufBuilder builder;
  builder.add("general.architecture", "test").set_alignment(64);
  builder.add("u8", uint8_t{1}).add("i8", int8_t{-1}).add("u16", uint16_t{2});
  builder.add("i16", int16_t{-2}).add("u32", uint32_t{3}).add("i32", int32_t{-3});
  builder.add("u64", uint64_t{4}).add("i64", int64_t{-4}).add("f32", 0.5f).add("f64", 0.25);
  builder.add("bool", true);
  builder.add("bools", std::vector<bool>{true, false});
  builder.add("tokens", std::vector<std::string>{"a", "", "token"});
  builder.add("scores", std::vector<float>{0, -1, -2}).add("types", std::vector<int32_t>{1, 2, 3});
  builder.add("bytes", std::vector<uint8_t>{1, 2, 3, 4, 5});
  builder.add("nested", std::vector<std::vector<int32_t>>{{1, 2}, {}, {3}});
  builder.add("split.no", uint16_t{0}).add("split.count", uint16_t{1});
  builder.add_f32("norm.weight", {4}, std::vector<float>{1, 2, 3, 4});
  builder.add_tensor("q8", 8, {3, 64}, std::string(3 * 2 * 34, 'q'));
  builder.add_tensor("q4_k", 12, {2, 1, 256}, std::string(2 * 144, 'k'));
  builder.add_tensor("f16", 1, {2, 2, 2, 5}, std::string(80, 'h'));
  builder.add_tensor("mxfp4", 39, {32}, std::string(17, 'm'));
  return builder;
}

TEST_F(GgufMutant, EveryTruncationIsAnErrorThatSaysWhere) {
  const std::string whole = everything().build();
  ASSERT_TRUE(open(whole).opened);
  counts_.clear();
  for (size_t length = 0; length < whole.size(); ++length) {
    const Outcome outcome = open(whole.substr(0, length));
    ASSERT_FALSE(outcome.opened) << "cut to " << length << " of " << whole.size();
    EXPECT_EQ(outcome.code, ErrorCode::corrupt_data);
  }
  std::cout << "truncations: " << whole.size() << "\n";
  print_counts();
}

/// Draws from a deterministic stream.
class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  uint64_t bits() { return counter_random(seed_, 0, 0, draw_++); }
  uint64_t below(uint64_t limit) { return bits() % limit; }

 private:
  uint64_t seed_;
  uint64_t draw_ = 0;
};

// A value to put into a field that now holds `old`: off by a little, by a lot, or at a limit.
uint64_t mutate_value(uint64_t old, size_t file_size, Dice& dice) {
  switch (dice.below(10)) {
    case 0:
      return old + 1 + dice.below(3);
    case 1:
      return old - 1 - dice.below(3);
    case 2:
      return old * (2 + dice.below(7));
    case 3:
      return dice.below(48);
    case 4:
      return uint64_t{1} << dice.below(64);
    case 5:
      return (uint64_t{1} << dice.below(64)) - 1;
    case 6:
      return ~uint64_t{0} - dice.below(64);
    case 7:
      return file_size + dice.below(128) - 64;
    case 8:
      return old + (uint64_t{1} << (32 + dice.below(32)));
    default:
      return dice.bits();
  }
}

std::string mutate(const std::string& whole, const std::vector<GgufFieldPlace>& fields,
                   Dice& dice) {
  std::string bytes = whole;
  const uint64_t num_changes = 1 + dice.below(4) / 2;
  for (uint64_t i = 0; i < num_changes; ++i) {
    const GgufFieldPlace& place = fields[dice.below(fields.size())];
    uint64_t old = 0;
    std::memcpy(&old, bytes.data() + place.offset, place.size);
    const uint64_t value = mutate_value(old, bytes.size(), dice);
    std::memcpy(bytes.data() + place.offset, &value, place.size);
  }
  switch (dice.below(16)) {
    case 0:  // cut
      bytes.resize(4 + dice.below(bytes.size() - 4));
      break;
    case 1:  // garbage behind
      for (uint64_t i = dice.below(64); i > 0; --i) bytes += static_cast<char>(dice.bits());
      break;
    case 2:  // any byte
      bytes[4 + dice.below(bytes.size() - 4)] = static_cast<char>(dice.bits());
      break;
    case 3: {  // a stretch copied over another
      const uint64_t length = 1 + dice.below(40);
      const uint64_t from = dice.below(bytes.size() - length);
      const uint64_t to = 4 + dice.below(bytes.size() - length - 4);
      std::memmove(bytes.data() + to, whole.data() + from, length);
      break;
    }
    default:
      break;
  }
  return bytes;
}

TEST_F(GgufMutant, TenThousandStructuredMutantsOpenOrSayWhere) {
  std::vector<GgufFieldPlace> fields;
  const std::string whole = everything().build(&fields);
  Dice dice(1);
  for (int i = 0; i < 10000; ++i) {
    std::string mutant = mutate(whole, fields, dice);
    while (mutant == whole) mutant = mutate(whole, fields, dice);
    open(mutant);
    ASSERT_FALSE(HasFailure()) << "mutant " << i;
  }
  std::cout << "mutants: 10000 of " << fields.size() << " fields\n";
  print_counts();
  EXPECT_GT(counts_["corrupt_data"], 5000);
  EXPECT_GT(counts_["unsupported"], 100);
  EXPECT_GT(counts_["opened"], 100);
}

TEST_F(GgufMutant, EachFieldAtEachLimitOpensOrSaysWhere) {
  std::vector<GgufFieldPlace> fields;
  const std::string whole = everything().build(&fields);
  for (const GgufFieldPlace& place : fields) {
    for (int shift = 0; shift < 64; ++shift) {
      for (const uint64_t less : {0, 1}) {
        const uint64_t value = (uint64_t{1} << shift) - less;
        std::string mutant = whole;
        std::memcpy(mutant.data() + place.offset, &value, place.size);
        open(mutant);
      }
    }
    ASSERT_FALSE(HasFailure()) << "field at byte " << place.offset;
  }
  print_counts();
}

// Large files made of the smallest things there are, each of which costs more in memory than in
// the file.
constexpr size_t kLargeBytes = size_t{32} << 20;

TEST_F(GgufMutant, ArraysOfTheSmallestElementsStayWithinTheMemoryBound) {
  open(GgufBuilder().add("k", std::vector<uint8_t>(kLargeBytes)).build());
  open(GgufBuilder().add("k", std::vector<int8_t>(kLargeBytes / 8)).build());
  open(GgufBuilder().add("k", std::vector<bool>(kLargeBytes)).build());
  open(GgufBuilder().add("k", std::vector<std::string>(kLargeBytes / 8)).build());
  open(GgufBuilder().add("k", std::vector<std::string>(kLargeBytes / 32)).build());
  open(GgufBuilder().add("k", std::vector<std::vector<bool>>(kLargeBytes / 12)).build());
  print_counts();
}

TEST_F(GgufMutant, ManyKeysStayWithinTheMemoryBound) {
  for (const size_t num_keys : {100000u, 1000000u}) {
    GgufBuilder builder;
    for (size_t i = 0; i < num_keys; ++i) builder.add(std::to_string(i), true);
    open(builder.build());
  }
  GgufBuilder nested;
  const std::vector<std::vector<uint8_t>> long_text(1, std::vector<uint8_t>(500, 255));
  for (size_t i = 0; i < 50000; ++i) nested.add(std::to_string(i), long_text);
  open(nested.build());
  print_counts();
}

TEST_F(GgufMutant, ManyTensorsStayWithinTheMemoryBound) {
  for (const size_t num_tensors : {50000u, 800000u}) {
    GgufBuilder builder;
    for (size_t i = 0; i < num_tensors; ++i) {
      builder.add_tensor_record(std::to_string(i), 0, {1}, i * 32);
    }
    builder.add_data(std::string(num_tensors * 32, 'x'));
    open(builder.build());
  }
  print_counts();
}

}  // namespace
}  // namespace headrace
