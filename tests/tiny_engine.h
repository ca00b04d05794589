// What tests of session and engine on tiny real models share: a loaded model, requests, and what
// came of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/checkpoint.h"
#include "headrace/engine.h"
#include "model/model.h"
#include "tests/tiny_models.h"

namespace headrace::tiny {

struct Loaded {
  /// `pool`: see CpuBackendOptions.
  explicit Loaded(const test::TinyModel& tiny, std::shared_ptr<ThreadPool> pool = nullptr) {
    const std::string path = testing::TempDir() + "tiny_engine.gguf";
    tiny.file.write(path);
    checkpoint = std::move(open_checkpoint(path).value());
    CpuBackendOptions backend_options;
    backend_options.isa = available_isas().back();
    backend_options.num_threads = 2;
    backend_options.pool = std::move(pool);
    backend = make_cpu_backend(backend_options);
    LoadModelOptions options;
    options.end_tokens = {7};
    model = std::move(load_model(*checkpoint, *backend, options).value());
    std::filesystem::remove(path);
  }

  std::unique_ptr<Checkpoint> checkpoint;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

inline Loaded tiny_gemma3() {
  return Loaded(test::tiny_model(test::tiny_gemma3_options()));
}

inline std::vector<TokenId> some_tokens(size_t count, size_t salt) {
  std::vector<TokenId> tokens(count);
  for (size_t i = 0; i < count; ++i) {
    tokens[i] = static_cast<TokenId>((7 * i * i + 13 * i + salt * 29 + 3) % 50);
  }
  return tokens;
}

struct Answer {
  std::vector<TokenId> ids;
  std::vector<float> logprobs;  ///< of the chosen and of the top, in order
  FinishReason reason = FinishReason::cancelled;
  int64_t cached_tokens = 0;    ///< no part of the answer
  int64_t num_preemptions = 0;  ///< nor is this

  bool operator==(const Answer& other) const {
    return ids == other.ids && logprobs == other.logprobs && reason == other.reason;
  }
};

inline Answer read(Stream stream) {
  Answer out;
  while (const auto event = stream.next()) {
    if (const auto* token = std::get_if<TokenEvent>(&*event)) {
      out.ids.push_back(token->id);
      out.logprobs.push_back(token->logprob);
      for (const TokenLogprob& one : token->top) out.logprobs.push_back(one.logprob);
    } else if (const auto* finish = std::get_if<FinishEvent>(&*event)) {
      out.reason = finish->reason;
      out.cached_tokens = finish->stats.cached_tokens;
      out.num_preemptions = finish->stats.num_preemptions;
    } else {
      ADD_FAILURE() << std::get<ErrorEvent>(*event).error.to_string();
    }
  }
  return out;
}

inline Request request_of(size_t salt) {
  Request request;
  request.prompt = some_tokens(1 + salt * 11 % 70, salt);
  request.sampling.temperature = salt % 3 == 0 ? 0.0F : 0.9F;
  request.sampling.top_k = salt % 2 == 0 ? 20 : 0;
  request.sampling.repetition_penalty = salt % 4 == 0 ? 1.2F : 1.0F;
  request.sampling.seed = 17 + salt;
  request.stop.max_tokens = 25;
  request.stop.min_tokens = static_cast<int64_t>(salt % 5);
  request.num_logprobs = salt % 6 == 0 ? -1 : 3;
  return request;
}

}  // namespace headrace::tiny
