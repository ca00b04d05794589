// headrace embed: vectors of texts.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/embedding_vector.h"
#include "base/os/terminal.h"
#include "cli/commands.h"
#include "cli/embed_texts.h"
#include "cli/input.h"
#include "cli/make_option.h"
#include "cli/model_options.h"
#include "cli/report.h"
#include "cli/served_model.h"

namespace headrace::cli {
namespace {

/// Texts that share a step, as far as its rows go.
constexpr int64_t kEmbeddedAtOnce = 32;

struct EmbedArgs {
  ModelArgs model;
  std::vector<std::string> texts;
  std::string file;
  std::string pooling;
  bool no_normalize = false;
  std::optional<int64_t> dimensions;
  std::string if_longer = "refuse";
  bool similarity = false;
  bool json = false;
};

/// One text a line; an empty line is an empty text, which has a vector where the model puts tokens
/// around texts.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    out.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Result<std::vector<std::string>> texts_of(const EmbedArgs& args) {
  if (!args.texts.empty()) return args.texts;
  const std::string file = args.file.empty() ? "-" : args.file;
  HEADRACE_ASSIGN(const std::string text, read_text(file));
  auto lines = lines_of(text);
  if (!lines.empty()) return lines;
  return Error{ErrorCode::invalid_argument, "there is no text",
               file == "-" ? "standard input" : file, "give texts as arguments, or one a line"};
}

Result<EmbedSettings> settings_of(const EmbedArgs& args, const ModelInfo& model) {
  EmbedSettings out;
  out.vectors.normalizes = !args.no_normalize && model.normalizes;
  if (!args.pooling.empty()) out.vectors.pooling = pooling_named(args.pooling);
  out.vectors.dimensions = args.dimensions.value_or(0);
  if (out.vectors.dimensions > model.embedding_length) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("expected at most {}, found {}", model.embedding_length,
                             out.vectors.dimensions),
                 "--dimensions", "the model's vectors have no more"};
  }
  if (args.if_longer == "truncate") out.if_longer = api::LongTexts::truncate;
  if (args.if_longer == "chunk") out.if_longer = api::LongTexts::split;
  return out;
}

/// Of a text alone; one line.
void print_vector(const EmbedArgs& args, size_t index, const EmbeddedText& text) {
  std::string line;
  if (args.json) {
    line = fmt::format("{{\"index\":{},\"tokens\":{},\"embedding\":", index, text.num_tokens);
    api::append_numbers(line, text.vector);
    line += "}\n";
  } else {
    for (const float value : text.vector)
      fmt::format_to(std::back_inserter(line), "{:.6g} ", value);
    line.back() = '\n';
  }
  print(line);
}

void print_similarity(const EmbedArgs& args, const std::vector<std::vector<float>>& vectors) {
  auto rows = nlohmann::json::array();
  std::string table;
  for (const auto& a : vectors) {
    auto row = nlohmann::json::array();
    for (const auto& b : vectors) {
      const double value = api::cosine(a, b);
      row.push_back(value);
      fmt::format_to(std::back_inserter(table), "{:8.4f}", value);
    }
    table += '\n';
    rows.push_back(std::move(row));
  }
  if (args.json) {
    print_json({{"similarity", rows}});
  } else {
    print(table);
  }
}

Result<int> run_checked(const EmbedArgs& args) {
  constexpr size_t kMostCompared = 4096;
  if (!args.texts.empty() && !args.file.empty()) {
    return fail_usage("embed",
                      {ErrorCode::invalid_argument, "texts and a file of texts are given", "--file",
                       "give one of them"},
                      args.json);
  }
  HEADRACE_ASSIGN(const auto texts, texts_of(args));
  if (args.similarity && texts.size() > kMostCompared) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("at most {} texts are compared with each other, found {}",
                             kMostCompared, texts.size()),
                 "--similarity", ""};
  }
  HEADRACE_ASSIGN(const auto opened, open_model_of(args.model, true, args.json, true));
  HEADRACE_ASSIGN(const EmbedSettings settings, settings_of(args, opened->model->info()));
  api::ServedModel model = served_model(*opened, {}, {});
  EngineOptions options;
  options.max_sequences = kEmbeddedAtOnce;
  HEADRACE_ASSIGN(const auto engine, opened->start_engine(options));
  model.max_context = engine->max_context();
  std::vector<std::vector<float>> kept;
  HEADRACE_TRY(
      embed_texts(*engine, model, texts, settings, [&](size_t index, const EmbeddedText& text) {
        if (args.similarity) {
          kept.push_back(text.vector);
        } else {
          print_vector(args, index, text);
        }
        return flush_output();
      }));
  if (args.similarity) print_similarity(args, kept);
  return kDone;
}

}  // namespace

Command embed_command() {
  auto args = std::make_shared<EmbedArgs>();
  Command command;
  command.name = "embed";
  command.summary = "Turn texts into vectors";
  command.description =
      "Prints one line a text: its vector's numbers with spaces between, or with --json an object "
      "{\"index\", \"tokens\", \"embedding\"}. Texts are arguments, lines of a file, or lines of "
      "standard input. Vectors are pooled as the model was trained (--pooling overrides that) and "
      "brought to length 1.\n"
      "Models that generate have vectors too, of the last token unless told otherwise; for search "
      "a model trained for embeddings is better.\n"
      "A text longer than the context is refused. With --long truncate its begin is kept; with "
      "--long chunk it is cut into windows, and its vector is the mean of theirs, weighted by "
      "their "
      "tokens and brought to length 1 again.";
  auto& options = command.options;
  Option texts = make_option("text", "", "Texts; without any, lines of --file", &args->texts);
  options.push_back(std::move(texts));
  options.push_back(path_option("-f,--file", "FILE", "Read one text a line; - is standard input",
                                &args->file, "standard input"));
  Option pooling = make_option("--pooling", "KIND", "How the tokens' vectors become one",
                               &args->pooling, "as the model was trained");
  pooling.choices = {"mean", "cls", "last"};
  options.push_back(std::move(pooling));
  options.push_back(
      make_option("--no-normalize", "", "Leave vectors as long as they are", &args->no_normalize));
  options.push_back(make_option("--dimensions", "N",
                                "Keep the first N numbers (models trained for it), then normalise",
                                &args->dimensions, "all"));
  options.back().min_value = 1;
  Option longer = make_option("--long", "WHAT", "What becomes of a text longer than the context",
                              &args->if_longer, "refuse");
  longer.choices = {"refuse", "truncate", "chunk"};
  options.push_back(std::move(longer));
  options.push_back(make_option(
      "--similarity", "", "Print the cosines of all pairs of texts instead", &args->similarity));
  add_model_options(options, args->model);
  options.push_back(json_option(&args->json));
  command.examples = {
      {"headrace embed -m minilm.gguf \"A cat sat down\" \"The dog ran off\" --similarity",
       "how close two texts are"},
      {"headrace embed -m minilm.gguf -f texts.txt --json > vectors.jsonl",
       "a vector for each line of a file"},
      {"headrace embed -m minilm.gguf -f book.txt --long chunk --dimensions 256",
       "long texts, short vectors"},
  };
  command.run = [args = args.get()] {
    auto result = run_checked(*args);
    return result.ok() ? *result : fail(result.error(), args->json);
  };
  command.state = args;
  return command;
}

}  // namespace headrace::cli
