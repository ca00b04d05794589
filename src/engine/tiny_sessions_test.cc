// Sessions of tiny real models: an answer that begins with keys and values from a file is the one
// that computing them gives, to the last bit.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/os/mapped_file.h"
#include "engine/engine_impl.h"
#include "tests/tiny_engine.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using namespace tiny;

class TinySessions : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  static std::unique_ptr<Engine> start(const Loaded& loaded, const EngineOptions& options) {
    auto engine = make_engine(*loaded.model, options);
    EXPECT_TRUE(engine.ok()) << engine.error().to_string();
    return std::move(engine).value();
  }
  static Answer ask(Engine& engine, const Request& request) {
    return read(std::move(*engine.submit(request)));
  }
  static Request request_with(std::vector<TokenId> prompt, size_t salt) {
    Request request = request_of(salt);
    request.prompt = std::move(prompt);
    request.num_logprobs = 5;
    request.stop.ignore_eos = true;
    return request;
  }

  const fs::path folder_ = fs::path(::testing::TempDir()) / "headrace_tiny_sessions";
  const std::string path_ = (folder_ / "talk").string();
};

TEST_F(TinySessions, AnswersAreThoseWithoutOne) {
  for (const bool is_gemma : {false, true}) {
    const Loaded loaded(
        test::tiny_model(is_gemma ? test::tiny_gemma3_options() : test::TinyOptions()));
    for (const KvType type : kKvTypes) {
      SCOPED_TRACE(std::string(kv_type_name(type)) + (is_gemma ? ", windows" : ""));
      const Request first = request_with(some_tokens(61, 1), 1);
      Request second;
      Answer without;
      {
        EngineOptions options{.kv_type = type};
        options.prefix_cache = false;
        const auto engine = start(loaded, options);
        second = request_with(first.prompt, 2);
        for (const TokenId id : ask(*engine, first).ids) second.prompt.push_back(id);
        for (const TokenId id : some_tokens(9, 5)) second.prompt.push_back(id);
        without = ask(*engine, second);
        ASSERT_EQ(without.ids.size(), 25U);
      }
      int64_t saved = 0;
      {
        const auto engine = start(loaded, {.kv_type = type});
        ask(*engine, first);
        const auto done = engine->save_session(second.prompt, "", path_, "");
        ASSERT_TRUE(done.ok()) << done.error().to_string();
        saved = *done;
        EXPECT_EQ(saved, 61 + 25 - 1);
      }
      // Other sizes of pool and step, and other blocks.
      for (const int64_t max_sequences : {1, 3}) {
        EngineOptions options{.kv_type = type, .chunk_tokens = max_sequences == 1 ? 24 : 256};
        options.max_sequences = max_sequences;
        const auto engine = start(loaded, options);
        if (max_sequences > 1) ask(*engine, request_of(4));
        const auto done = engine->load_session(path_, "");
        ASSERT_TRUE(done.ok()) << done.error().to_string();
        EXPECT_EQ(static_cast<int64_t>(done->tokens.size()), saved);
        const Answer with = ask(*engine, second);
        EXPECT_EQ(with, without);
        EXPECT_EQ(with.cached_tokens, saved);
        // And again, into the cache that has it.
        ASSERT_TRUE(engine->load_session(path_, "").ok());
        EXPECT_EQ(ask(*engine, second), without);
      }
    }
  }
}

TEST_F(TinySessions, AnotherInstructionSetIsRefused) {
  if (available_isas().size() < 2) GTEST_SKIP() << "there is one instruction set only";
  const Loaded loaded = tiny_gemma3();
  {
    const auto engine = start(loaded, {});
    ask(*engine, request_of(3));
    ASSERT_TRUE(engine->save_session(request_of(3).prompt, "", path_, "").ok());
  }
  const auto backend = make_cpu_backend({.isa = Isa::reference, .num_threads = 1});
  const auto model = std::move(load_model(*loaded.checkpoint, *backend, {}).value());
  const auto engine = std::move(make_engine(*model, {}).value());
  const auto refused = engine->load_session(path_, "");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::mismatch);
  EXPECT_NE(refused.error().message.find("'cpu reference'"), std::string::npos);
}

// What a block held before is not in the file of who has its beginning only.
TEST_F(TinySessions, TheFileHoldsNothingOfOthers) {
  const Loaded loaded = tiny_gemma3();
  std::vector<std::vector<std::byte>> files;
  for (const bool has_others : {false, true}) {
    const auto engine = start(loaded, {.context = 64, .chunk_tokens = 8});
    if (has_others) {
      Request other = request_with(some_tokens(40, 9), 9);
      other.cache_scope = "another user";
      other.stop.max_tokens = 5;
      ask(*engine, other);
      engine->clear_prefix_cache();
    }
    Request request = request_with(some_tokens(19, 1), 1);
    request.stop.max_tokens = 2;
    ask(*engine, request);
    ASSERT_EQ(*engine->save_session(request.prompt, "", path_, ""), 19);
    const auto file = std::move(MappedFile::open(path_).value());
    files.emplace_back(file.bytes().begin(), file.bytes().end());
  }
  EXPECT_TRUE(files[0] == files[1]);
}

}  // namespace
}  // namespace headrace
