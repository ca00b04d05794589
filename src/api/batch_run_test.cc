// Whole runs over files, with answers made up on the spot: what is lost, repeated or mixed up
// shows.
#include "api/batch_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "api/test_model.h"
#include "base/check.h"

namespace headrace::api {
namespace {

std::string read_all(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string good_line(const std::string& id) {
  return R"({"custom_id":")" + id +
         R"(","method":"POST","url":"/v1/completions","body":{"prompt":"hello )" + id + "\"}}";
}

/// Two files in a folder of their own.
class BatchRun : public ::testing::Test {
 protected:
  BatchRun() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::string folder = ::testing::TempDir() + "batch_" + test->name();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    in_ = folder + "/in.jsonl";
    out_ = folder + "/out.jsonl";
  }

  void write_in(const std::vector<std::string>& lines) {
    std::ofstream file(in_, std::ios::binary);
    for (const std::string& line : lines) file << line << '\n';
  }

  /// The answer to "hello X" is "hello X".
  Result<Answer> answer(const PreparedRequest& request) {
    Answer out(request, model_->model.tokenizer);
    const auto& ids = request.requests[0].prompt;
    for (const TokenId id : ids)
      out.take(0, TokenEvent{.id = id, .logprob = 0, .top = {}, .choice = 0});
    FinishEvent finish;
    finish.stats.prompt_tokens = static_cast<int64_t>(ids.size());
    out.take(0, finish);
    return out;
  }

  Result<BatchOutcome> run(BatchRunOptions options = {.num_workers = 4, .in_input_order = false}) {
    AnsweredLines answered;
    if (std::filesystem::exists(out_)) {
      HEADRACE_ASSIGN(InputStream file, InputStream::open(out_));
      HEADRACE_ASSIGN(answered, AnsweredLines::read(file, model_->model));
      HEADRACE_ASSIGN(InputStream in, InputStream::open(in_));
      HEADRACE_TRY(check_answers_of(std::move(in), model_->model.limits, answered));
    }
    HEADRACE_ASSIGN(AppendFile out, AppendFile::open(out_));
    HEADRACE_TRY(out.truncate(answered.whole_bytes()));
    HEADRACE_ASSIGN(InputStream in, InputStream::open(in_));
    BatchReader reader(std::move(in), model_->model.limits, answered);
    const BatchRunHooks hooks{.answer = hook_,
                              .progress = [](const BatchCounts&) {},
                              .is_interrupted = [this] { return interrupted_.load(); }};
    return run_batch(reader, out, model_->model, options, hooks, clock_);
  }

  /// By custom_id; each must be there once.
  std::map<std::string, Json> answers() {
    std::map<std::string, Json> out;
    for (const std::string& line : lines_of(read_all(out_))) {
      Json json = Json::parse(line);
      const std::string id = json["custom_id"].is_null() ? "null" : json["custom_id"];
      EXPECT_TRUE(out.emplace(id, std::move(json)).second) << id;
    }
    return out;
  }

  std::unique_ptr<TestModel> model_ = make_test_model();
  SystemClock clock_;
  std::string in_;
  std::string out_;
  std::atomic<bool> interrupted_{false};
  std::function<Result<Answer>(const PreparedRequest&, const std::function<bool()>&)> hook_ =
      [this](const PreparedRequest& request, const std::function<bool()>&) {
        return answer(request);
      };
};

TEST_F(BatchRun, EachLineGetsItsAnswer) {
  std::vector<std::string> lines;
  for (int i = 0; i < 200; ++i) lines.push_back(good_line(std::to_string(i)));
  lines.push_back("");
  lines.push_back("   ");
  lines.push_back("{broken");
  lines.push_back(R"({"custom_id":"deep","url":"/v1/completions","body":{"prompt":"a","n":0}})");
  lines.push_back(R"({"custom_id":"where","url":"/v1/nowhere","body":{}})");
  write_in(lines);
  const auto outcome = run();
  ASSERT_TRUE(outcome.ok());
  EXPECT_FALSE(outcome->error);
  EXPECT_EQ(outcome->counts.num_answered, 203);
  EXPECT_EQ(outcome->counts.num_failed, 3);
  EXPECT_EQ(outcome->counts.input_bytes, std::filesystem::file_size(in_));
  const auto found = answers();
  ASSERT_EQ(found.size(), 203u);
  for (int i = 0; i < 200; ++i) {
    const Json& body = found.at(std::to_string(i))["response"]["body"];
    EXPECT_EQ(body["choices"][0]["text"], "hello " + std::to_string(i));
  }
  EXPECT_NE(found.at("null")["error"]["message"].get<std::string>().find("line 203"),
            std::string::npos);
  EXPECT_EQ(found.at("deep")["response"]["body"]["error"]["param"], "n");
  EXPECT_EQ(found.at("where")["response"]["status_code"], 404);
}

TEST_F(BatchRun, AgainDoesNothing) {
  write_in({good_line("a"), "{", "{", good_line("b")});
  ASSERT_TRUE(run().ok());
  const std::string before = read_all(out_);
  const auto again = run();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->counts.num_answered, 0);
  EXPECT_EQ(again->counts.num_skipped, 4);
  EXPECT_EQ(read_all(out_), before);
}

TEST_F(BatchRun, InInputOrder) {
  std::vector<std::string> lines;
  for (int i = 0; i < 300; ++i) lines.push_back(good_line(std::to_string(i)));
  write_in(lines);
  std::atomic<int> calls{0};
  hook_ = [&](const PreparedRequest& request, const std::function<bool()>&) {
    if (calls++ % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return answer(request);
  };
  ASSERT_TRUE(run({.num_workers = 8, .in_input_order = true}).ok());
  const auto written = lines_of(read_all(out_));
  ASSERT_EQ(written.size(), 300u);
  for (size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ(Json::parse(written[i])["custom_id"], std::to_string(i));
  }
}

TEST_F(BatchRun, NothingIsLostOrRepeatedWhereverItEnds) {
  std::mt19937 random(11);
  std::vector<std::string> lines;
  for (int i = 0; i < 400; ++i) {
    lines.push_back(good_line("id" + std::to_string(i)));
    if (i % 50 == 7) lines.push_back("{broken " + std::to_string(i / 100));  // some twice
    if (i % 90 == 8) lines.push_back(lines[static_cast<size_t>(i) / 2]);     // a custom_id again
  }
  write_in(lines);
  ASSERT_TRUE(run().ok());
  std::multiset<std::string> expected;
  const auto ids_of = [](const std::string& text) {
    std::multiset<std::string> ids;
    for (const std::string& line : lines_of(text)) ids.insert(Json::parse(line)["id"]);
    return ids;
  };
  expected = ids_of(read_all(out_));
  ASSERT_EQ(expected.size(), lines.size());
  std::filesystem::remove(out_);

  int num_runs = 0;
  for (bool is_done = false; !is_done; ++num_runs) {
    std::atomic<int> left{static_cast<int>(random() % 40)};
    interrupted_ = false;
    hook_ = [&](const PreparedRequest& request, const std::function<bool()>&) -> Result<Answer> {
      if (left-- <= 0) interrupted_ = true;
      if (interrupted_) return Error{ErrorCode::cancelled, "", "", ""};
      return answer(request);
    };
    const auto outcome = run(
        {.num_workers = 1 + static_cast<int>(random() % 8), .in_input_order = random() % 2 == 0});
    ASSERT_TRUE(outcome.ok()) << outcome.error().to_string();
    ASSERT_FALSE(outcome->error);
    is_done = !outcome->was_interrupted;
    // As a kill does that comes within a write.
    const auto size = std::filesystem::file_size(out_);
    if (!is_done && size > 0)
      std::filesystem::resize_file(out_, size - random() % std::min<uint64_t>(size, 300));
  }
  EXPECT_GT(num_runs, 5);
  EXPECT_EQ(ids_of(read_all(out_)), expected);
}

TEST_F(BatchRun, ACustomIdGivenTwice) {
  write_in({good_line("a"), good_line("b"), good_line("a"), good_line("a")});
  const auto outcome = run();
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->counts.num_answered, 4);
  EXPECT_EQ(outcome->counts.num_failed, 2);
  // The error was written, the answer was not: the next run still gives it.
  std::string kept;
  for (const std::string& line : lines_of(read_all(out_))) {
    if (Json::parse(line)["error"].is_object()) kept += line + '\n';
  }
  std::ofstream(out_, std::ios::binary) << kept;
  EXPECT_EQ(run()->counts.num_answered, 2);
}

TEST_F(BatchRun, AnotherInputIsRefused) {
  write_in({good_line("a"), good_line("b")});
  ASSERT_TRUE(run().ok());
  const std::string before = read_all(out_);
  write_in({good_line("a"), R"({"custom_id":"b","url":"/v1/completions","body":{"prompt":"x"}})"});
  const auto changed = run();
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().code, ErrorCode::mismatch);
  EXPECT_NE(changed.error().message.find("1 of its 2 answers"), std::string::npos);
  EXPECT_EQ(read_all(out_), before);
  // More lines are no other input.
  write_in({good_line("0"), good_line("a"), good_line("b"), good_line("c")});
  EXPECT_EQ(run()->counts.num_answered, 2);
}

TEST_F(BatchRun, AnotherModelOrAFileOfAnotherKindIsRefused) {
  write_in({good_line("a")});
  ASSERT_TRUE(run().ok());
  const auto read = [&](const std::string& model, const std::string& fingerprint) {
    auto file = InputStream::open(out_);
    ServedModel served;
    served.name = model;
    served.fingerprint = fingerprint;
    served.adapters = {{.name = "its adapter", .path = "", .digest = ""}};
    return AnsweredLines::read(*file, served);
  };
  EXPECT_TRUE(read("tiny", "other-1").ok());
  EXPECT_EQ(read("tiny", "other-1")->other_fingerprint(), "test-1");
  EXPECT_NE(read("tiny", "test-2").error().message.find("another file"), std::string::npos);
  EXPECT_NE(read("huge", "test-1").error().message.find("not by \"huge\""), std::string::npos);
  std::ofstream(out_, std::ios::app) << "precious notes\n";
  EXPECT_EQ(read("tiny", "test-1").error().where, "line 2");
}

TEST_F(BatchRun, FaultsOfTheServerInARowEndIt) {
  std::vector<std::string> lines;
  for (int i = 0; i < 500; ++i) lines.push_back(good_line(std::to_string(i)));
  write_in(lines);
  std::atomic<int> calls{0};
  hook_ = [&](const PreparedRequest& request, const std::function<bool()>&) -> Result<Answer> {
    // Single ones end nothing.
    if (calls++ % 3 == 0 || calls > 300)
      return Error{ErrorCode::io_error, "the disk is gone", "", ""};
    return answer(request);
  };
  const auto outcome = run();
  ASSERT_TRUE(outcome.ok());
  ASSERT_TRUE(outcome->error);
  EXPECT_EQ(outcome->error->message, "the disk is gone");
  EXPECT_GT(outcome->counts.num_answered, 250);
  EXPECT_LT(outcome->counts.num_answered, 340);
}

TEST_F(BatchRun, ThrownFaultsAreTheirLinesOwn) {
  write_in({good_line("a"), good_line("b"), good_line("c")});
  std::atomic<int> calls{0};
  hook_ = [&](const PreparedRequest& request, const std::function<bool()>&) -> Result<Answer> {
    if (calls++ == 0) throw std::bad_alloc();
    if (calls == 2) throw InternalError("x.cc:5: a == b");
    return answer(request);
  };
  const auto outcome = run({.num_workers = 1, .in_input_order = false});
  EXPECT_FALSE(outcome->error);
  EXPECT_EQ(outcome->counts.num_failed, 2);
  EXPECT_EQ(outcome->first_fault->code, ErrorCode::resource_exhausted);
  EXPECT_EQ(answers().at("a")["response"]["status_code"], 503);
  EXPECT_EQ(answers().at("b")["response"]["body"]["error"]["message"], "the answer failed");
}

TEST_F(BatchRun, AFullQueueIsWaitedFor) {
  write_in({good_line("a"), good_line("b")});
  std::atomic<int> calls{0};
  hook_ = [&](const PreparedRequest& request, const std::function<bool()>&) -> Result<Answer> {
    if (calls++ < 4) return Error{ErrorCode::overloaded, "full", "", ""};
    return answer(request);
  };
  EXPECT_EQ(run()->counts.num_failed, 0);
}

TEST_F(BatchRun, AFullDiskEndsIt) {
  write_in({good_line("a"), good_line("b")});
  AnsweredLines answered;
  BatchReader reader(std::move(*InputStream::open(in_)), {}, answered);
  auto full = AppendFile::open("/dev/full");
  const BatchRunHooks hooks{.answer = hook_,
                            .progress = [](const BatchCounts&) {},
                            .is_interrupted = [] { return false; }};
  const auto outcome = run_batch(reader, *full, model_->model, {2, false}, hooks, clock_);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, ErrorCode::resource_exhausted);
  EXPECT_EQ(outcome.counts.num_answered, 0);
}

TEST_F(BatchRun, LinesTooLongToKeepAreErrors) {
  model_->model.limits.max_body_bytes = 1000;
  const std::string longer(5000, 'x');
  write_in({good_line("a"), R"({"custom_id":"long","body":{"prompt":")" + longer + "\"}}", longer,
            good_line("b")});
  const auto outcome = run();
  EXPECT_EQ(outcome->counts.num_answered, 4);
  EXPECT_EQ(answers().at("long")["response"]["status_code"], 413);
  EXPECT_EQ(answers().at("null")["response"]["status_code"], 413);
  EXPECT_EQ(run()->counts.num_answered, 0);
}

}  // namespace
}  // namespace headrace::api
