// See embed_texts.h.
#include "cli/embed_texts.h"

#include <chrono>
#include <deque>
#include <utility>

#include "api/embedding_request.h"
#include "api/embedding_vector.h"
#include "base/os/signals.h"

namespace headrace::cli {
namespace {

constexpr std::chrono::milliseconds kLookForInterrupt{20};
/// Windows under way: more than a step takes, so that tokenising is never waited for.
constexpr size_t kMostUnderWay = 512;

/// A text whose windows are with the engine.
struct OpenText {
  std::vector<Stream> streams;
  std::vector<double> weights;
};

Error at_text(Error error, size_t index) {
  if (error.where.empty() || error.where == "prompt") {
    error.where = "text " + std::to_string(index + 1);
  }
  return error;
}

Result<OpenText> submit_text(Engine& engine, const api::ServedModel& model, const std::string& text,
                             const EmbedSettings& settings) {
  const api::TextLimits limits{model.max_context, settings.if_longer};
  HEADRACE_ASSIGN(auto windows,
                  api::text_windows(api::Prompt{.text = text}, true, model, limits, ""));
  OpenText out;
  for (api::TextWindow& window : windows) {
    Request request;
    request.kind = RequestKind::embed;
    request.prompt = std::move(window.ids);
    request.pooling = settings.vectors.pooling;
    HEADRACE_ASSIGN(Stream stream, engine.submit(std::move(request)));
    out.streams.push_back(std::move(stream));
    out.weights.push_back(window.weight);
  }
  return out;
}

/// Waits for the end of one window.
Result<EmbeddedText> read_window(Stream& stream, const api::EmbeddingOptions& options) {
  EmbeddedText out;
  for (;;) {
    while (!stream.wait_for(kLookForInterrupt)) {
      if (InterruptGuard::interrupted()) return Error{ErrorCode::cancelled, "interrupted", "", ""};
    }
    auto event = stream.next();
    if (!event) break;
    if (auto* embedding = std::get_if<EmbeddingEvent>(&*event)) {
      out.vector = std::move(embedding->values);
    } else if (const auto* finish = std::get_if<FinishEvent>(&*event)) {
      out.num_tokens = finish->stats.prompt_tokens;
    } else if (auto* failed = std::get_if<ErrorEvent>(&*event)) {
      return std::move(failed->error);
    }
  }
  if (out.vector.empty()) return Error{ErrorCode::cancelled, "the engine ended it", "", ""};
  HEADRACE_TRY(api::shape_embedding(out.vector, options));
  return out;
}

Result<EmbeddedText> read_embedded(OpenText& open, const api::EmbeddingOptions& options) {
  if (open.streams.size() == 1) return read_window(open.streams.front(), options);
  EmbeddedText out;
  std::vector<std::vector<float>> vectors;
  for (Stream& stream : open.streams) {
    HEADRACE_ASSIGN(EmbeddedText window, read_window(stream, options));
    vectors.push_back(std::move(window.vector));
    out.num_tokens += window.num_tokens;
  }
  out.vector = api::weighted_mean(vectors, open.weights);
  HEADRACE_TRY(api::shape_embedding(out.vector, options));
  return out;
}

}  // namespace

Result<void> embed_texts(Engine& engine, const api::ServedModel& model,
                         std::span<const std::string> texts, const EmbedSettings& settings,
                         const VectorSink& on_vector) {
  const InterruptGuard guard({.second_ends = true});
  std::deque<OpenText> under_way;  // dropping it cancels what is left
  size_t num_windows = 0;
  size_t next = 0;
  for (size_t done = 0; done < texts.size(); ++done) {
    for (; next < texts.size() && (num_windows < kMostUnderWay || under_way.empty()); ++next) {
      auto open = submit_text(engine, model, texts[next], settings);
      if (!open.ok()) return at_text(std::move(open).error(), next);
      num_windows += open->streams.size();
      under_way.push_back(std::move(open).value());
    }
    auto text = read_embedded(under_way.front(), settings.vectors);
    if (!text.ok()) return at_text(std::move(text).error(), done);
    num_windows -= under_way.front().streams.size();
    under_way.pop_front();
    if (!on_vector(done, *text)) return {};
  }
  return {};
}

}  // namespace headrace::cli
