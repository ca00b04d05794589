// Vectors of many texts through an engine, in order. Must not know options or how they are shown.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "api/embedding_options.h"
#include "api/embedding_text.h"
#include "api/served_model.h"
#include "headrace/engine.h"
#include "headrace/result.h"

namespace headrace::cli {

struct EmbedSettings {
  api::EmbeddingOptions vectors;
  api::LongTexts if_longer = api::LongTexts::refuse;
};

struct EmbeddedText {
  std::vector<float> vector;
  int64_t num_tokens = 0;  ///< of all windows, what the model puts around them included
};

/// Called with each text's vector, in order; false: no more is wanted.
using VectorSink = std::function<bool(size_t index, const EmbeddedText& text)>;

/// A text that is split has the mean of its windows' vectors, as each would be told alone, weighted
/// by the tokens of the text in them, and brought to length 1 again where that is asked for. So
/// many texts are under way at once that steps are full. Ctrl-C ends it: `cancelled`. Errors: those
/// of api::text_windows, Engine::submit and the engine, with "text N" (from 1) in `where`.
Result<void> embed_texts(Engine& engine, const api::ServedModel& model,
                         std::span<const std::string> texts, const EmbedSettings& settings,
                         const VectorSink& on_vector);

}  // namespace headrace::cli
