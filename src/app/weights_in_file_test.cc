// Models whose weights stay in their file: the same logits as packed ones, and clear errors where
// the file is cut or written while it is in use.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/test_tensors.h"
#include "checkpoint/checkpoint.h"
#include "engine/engine_impl.h"
#include "engine/scheduler/sequence_group.h"
#include "engine/session/session.h"
#include "model/model.h"
#include "tests/format_models.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

struct Loaded {
  Loaded(const std::string& path, Isa isa, int num_threads, bool pack) {
    checkpoint = std::move(open_checkpoint(path).value());
    backend = make_cpu_backend({.isa = isa, .num_threads = num_threads});
    LoadModelOptions options;
    options.pack = pack;
    model = std::move(load_model(*checkpoint, *backend, options).value());
  }
  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

std::vector<TokenId> some_tokens(size_t count) {
  std::vector<TokenId> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<TokenId>((7 * i * i + 3) % 50);
  return tokens;
}

/// All logits of the tokens, fed in chunks.
std::vector<float> all_logits(const Loaded& loaded, size_t count, int64_t chunk) {
  const auto session = make_session(
      *loaded.model, {.max_tokens = static_cast<int64_t>(count), .chunk_tokens = chunk});
  std::vector<float> out;
  const auto fed = session->feed(some_tokens(count), LogitsFor::all,
                                 [&](int64_t, std::span<const float> logits) {
                                   out.insert(out.end(), logits.begin(), logits.end());
                                 });
  EXPECT_TRUE(fed.ok());
  return out;
}

class WeightsInFile : public testing::Test {
 protected:
  ~WeightsInFile() override { fs::remove(path_); }

  void write(const std::vector<Format>& formats) {
    test::model_of_formats(formats).file.write(path_);
  }

  const std::string path_ = testing::TempDir() + "weights_in_file_test.gguf";
};

void expect_logits_of_packed(const std::string& path) {
  for (const Isa isa : available_isas()) {
    const auto expected = all_logits(Loaded(path, isa, 2, true), 40, 40);
    for (const float logit : expected) ASSERT_TRUE(std::isfinite(logit));
    for (const int num_threads : {1, 3}) {
      const Loaded loaded(path, isa, num_threads, false);
      for (const int64_t chunk : {1, 7, 40}) {
        EXPECT_TRUE(backend_test::same_bits(all_logits(loaded, 40, chunk), expected))
            << isa_name(isa) << ", " << num_threads << " threads, chunks of " << chunk;
      }
    }
  }
}

TEST_F(WeightsInFile, GiveTheLogitsOfPackedOnes) {
  write(test::every_format());
  expect_logits_of_packed(path_);
}

TEST_F(WeightsInFile, GiveTheLogitsOfPackedExperts) {
  test::TinyOptions options = test::tiny_moe_options();
  for (const bool is_stacked : {true, false}) {
    options.has_stacked_experts = is_stacked;
    test::tiny_model(options).file.write(path_);
    expect_logits_of_packed(path_);
  }
}

testing::AssertionResult names_file(const Result<void>& result, const std::string& path) {
  if (result.ok()) return testing::AssertionFailure() << "no error";
  const Error& error = result.error();
  if (error.code != ErrorCode::corrupt_data || error.where != path || error.hint.empty()) {
    return testing::AssertionFailure() << error.to_string();
  }
  return testing::AssertionSuccess();
}

TEST_F(WeightsInFile, AFileThatIsCutEndsTheStep) {
  const auto ignore = [](int64_t, std::span<const float>) {};
  const auto not_called = [](int64_t, std::span<const float>) { ADD_FAILURE(); };
  const auto tokens = some_tokens(20);
  // To nothing, within a page, and by a byte: in the last case every page is still there.
  for (const uint64_t left : {uint64_t{0}, uint64_t{5000}, uint64_t{0} - 1}) {
    write({Format::q4_1, Format::q6_k});
    const uint64_t size = left + 1 == 0 ? fs::file_size(path_) - 1 : left;
    const Loaded loaded(path_, available_isas().back(), 2, false);
    const auto session = make_session(*loaded.model, {.max_tokens = 100, .chunk_tokens = 16});
    ASSERT_TRUE(session->feed(tokens, LogitsFor::last, ignore).ok());
    fs::resize_file(path_, size);
    // Whether logits are wanted or not, and each time.
    EXPECT_TRUE(names_file(session->feed(tokens, LogitsFor::none, not_called), path_));
    EXPECT_TRUE(names_file(session->feed(tokens, LogitsFor::all, not_called), path_));
    EXPECT_EQ(session->num_tokens(), 20);
    const auto group = make_sequence_group(*loaded.model, {.max_tokens = {100}});
    EXPECT_FALSE(group->feed(0, tokens).ok());
    EXPECT_TRUE(names_file(loaded.model->check_weights(), path_));
  }
}

TEST_F(WeightsInFile, AFileThatIsCutInAStepEndsIt) {
  for (int round = 0; round < 4; ++round) {
    write({Format::q4_1, Format::q6_k});
    const Loaded loaded(path_, available_isas().back(), 2, false);
    const auto session = make_session(*loaded.model, {.max_tokens = 64, .chunk_tokens = 64});
    const auto tokens = some_tokens(64);
    std::atomic<int> num_steps{0};
    std::thread cutter([&] {
      while (num_steps.load() < 3) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
      fs::resize_file(path_, static_cast<uint64_t>(round) << 14);
    });
    Result<void> result;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (result.ok() && std::chrono::steady_clock::now() < deadline) {
      session->reset();
      result = session->feed(tokens, LogitsFor::last, [](int64_t, std::span<const float>) {});
      ++num_steps;
    }
    cutter.join();
    EXPECT_TRUE(names_file(result, path_)) << "round " << round;
  }
}

TEST_F(WeightsInFile, AFileThatIsWrittenOverEndsTheStepAndOneBesideItDoesNot) {
  const auto ignore = [](int64_t, std::span<const float>) {};
  write({Format::q8_0});
  const Loaded loaded(path_, available_isas().back(), 1, false);
  const auto session = make_session(*loaded.model, {.max_tokens = 100, .chunk_tokens = 16});
  const auto tokens = some_tokens(10);
  // The way to replace a file: what is open stays.
  const std::string other = path_ + ".new";
  fs::copy_file(path_, other);
  fs::rename(other, path_);
  EXPECT_TRUE(session->feed(tokens, LogitsFor::last, ignore).ok());
  const Loaded replaced(path_, available_isas().back(), 1, false);
  const auto second = make_session(*replaced.model, {.max_tokens = 100, .chunk_tokens = 16});
  EXPECT_TRUE(second->feed(tokens, LogitsFor::last, ignore).ok());
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end)
      << 'x';
  fs::last_write_time(path_, fs::last_write_time(path_) + std::chrono::seconds(1));
  EXPECT_TRUE(names_file(second->feed(tokens, LogitsFor::last, ignore), path_));
  EXPECT_TRUE(session->feed(tokens, LogitsFor::last, ignore).ok());
}

TEST_F(WeightsInFile, AnEngineEndsItsRequestsWithTheErrorAndLives) {
  write({Format::q5_1, Format::q5_k});
  const Loaded loaded(path_, available_isas().back(), 2, false);
  auto engine = make_engine(*loaded.model, {.context = 200});
  ASSERT_TRUE(engine.ok());
  const auto request = [&](int64_t max_tokens) {
    Request out;
    out.prompt = some_tokens(30);
    out.stop.max_tokens = max_tokens;
    out.stop.ignore_eos = true;
    return std::move((*engine)->submit(std::move(out)).value());
  };
  /// The last event.
  const auto last = [](Stream& stream) {
    std::optional<Event> final_event;
    while (auto event = stream.next()) final_event = std::move(event);
    return final_event;
  };
  Stream whole = request(5);
  EXPECT_TRUE(std::holds_alternative<FinishEvent>(*last(whole)));
  Stream under_way = request(150);
  ASSERT_TRUE(std::holds_alternative<TokenEvent>(*under_way.next()));
  fs::resize_file(path_, 100);
  for (int i = 0; i < 3; ++i) {
    Stream after = request(5);
    for (Stream* stream : {&under_way, &after}) {
      if (stream == &under_way && i > 0) continue;
      const auto event = last(*stream);
      ASSERT_TRUE(event && std::holds_alternative<ErrorEvent>(*event));
      EXPECT_TRUE(names_file(std::get<ErrorEvent>(*event).error, path_));
    }
  }
}

TEST_F(WeightsInFile, PackedWeightsDoNotNeedTheFileAnyMore) {
  write({Format::q4_0});
  const Loaded loaded(path_, available_isas().back(), 1, true);
  fs::resize_file(path_, 0);
  EXPECT_EQ(all_logits(loaded, 10, 10).size(), 500U);
  EXPECT_TRUE(loaded.model->check_weights().ok());
}

}  // namespace
}  // namespace headrace
