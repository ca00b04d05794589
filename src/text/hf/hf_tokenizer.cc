// Opens a Hugging Face directory; see tokenizer.h.
#include <cstdint>
#include <new>
#include <nlohmann/json.hpp>

#include "checkpoint/model_directory.h"
#include "text/hf/json_fields.h"
#include "text/hf/sentencepiece.h"
#include "text/hf/tokenizer_json.h"

namespace headrace {
namespace {

using nlohmann::json;

// The largest chat template.
constexpr size_t kMaxTemplateBytes = size_t{4} << 20;

// The files of a directory, each opened once and kept.
class HfDirectory {
 public:
  static Result<HfDirectory> open(const std::string& path) {
    HEADRACE_ASSIGN(ModelDirectory directory, ModelDirectory::open(path));
    return HfDirectory(std::move(directory));
  }

  /// The text of a file; empty where there is none. Errors: io_error, invalid_argument (a link that
  /// leads out of the directory).
  Result<std::string_view> read(std::string_view name) {
    HEADRACE_ASSIGN(auto file, directory_.open_optional(name));
    if (!file) return std::string_view();
    files_.push_back(std::move(*file));
    return text_of(files_.back());
  }

 private:
  explicit HfDirectory(ModelDirectory directory) : directory_(std::move(directory)) {}

  ModelDirectory directory_;
  std::vector<MappedFile> files_;
};

Result<text::HfFiles> read_files(HfDirectory& directory) {
  text::HfFiles files;
  HEADRACE_ASSIGN(files.tokenizer, directory.read("tokenizer.json"));
  HEADRACE_ASSIGN(files.tokenizer_config, directory.read("tokenizer_config.json"));
  HEADRACE_ASSIGN(files.generation_config, directory.read("generation_config.json"));
  HEADRACE_ASSIGN(files.special_tokens_map, directory.read("special_tokens_map.json"));
  if (!files.tokenizer.empty()) return files;
  HEADRACE_ASSIGN(files.sentencepiece, directory.read("tokenizer.model"));
  HEADRACE_ASSIGN(files.added_tokens, directory.read("added_tokens.json"));
  return files;
}

Result<std::shared_ptr<const Tokenizer>> build(const text::HfFiles& files,
                                               const TokenizerOptions& options,
                                               const std::string& directory) {
  if (!files.tokenizer.empty()) {
    return text::read_tokenizer_json(files, options, "tokenizer.json");
  }
  if (files.sentencepiece.empty()) {
    return Error{ErrorCode::not_found, "expected a tokenizer.json or tokenizer.model, found none",
                 directory, "give a model's directory, its tokenizer.json, or a GGUF file"};
  }
  HEADRACE_ASSIGN(text::SentencePieceModel model, text::read_sentencepiece(files.sentencepiece));
  return text::build_sentencepiece(std::move(model), files, "tokenizer.model", options);
}

// The template of tokenizer_config.json: a text, or a list of which one is called "default".
std::optional<std::string> configured_template(const json& config) {
  const json& value = text::member(config, "chat_template");
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return std::nullopt;
  std::optional<std::string> first;
  for (const json& entry : value) {
    const json& body = text::member(entry, "template");
    if (!body.is_string()) continue;
    if (text::member(entry, "name") == "default") return body.get<std::string>();
    if (!first) first = body.get<std::string>();
  }
  return first;
}

// The first of a list of ids; -1: none that is one.
TokenId first_id(const std::vector<int64_t>& ids) {
  const bool is_id = !ids.empty() && ids.front() >= 0 && ids.front() <= INT32_MAX;
  return is_id ? static_cast<TokenId>(ids.front()) : -1;
}

}  // namespace

Result<IdTokenizerOptions> special_ids_of_directory(const std::string& directory) {
  HEADRACE_ASSIGN(HfDirectory opened, HfDirectory::open(directory));
  IdTokenizerOptions out;
  for (const char* name : {"config.json", "generation_config.json"}) {
    HEADRACE_ASSIGN(const std::string_view body, opened.read(name));
    const auto config = text::parse_object(body, name);
    if (!config.ok()) continue;
    const auto bos = text::listed_ids(text::member(*config, "bos_token_id"));
    const auto eos = text::listed_ids(text::member(*config, "eos_token_id"));
    if (!bos.empty()) out.bos = first_id(bos);
    if (eos.empty()) continue;
    out.eos = first_id(eos);
    out.end_of_generation.clear();
    for (const int64_t id : eos) out.end_of_generation.push_back(first_id({id}));
  }
  return out;
}

Result<std::shared_ptr<const Tokenizer>> open_hf_tokenizer(const std::string& directory,
                                                           const TokenizerOptions& options) {
  HEADRACE_ASSIGN(HfDirectory opened, HfDirectory::open(directory));
  try {
    HEADRACE_ASSIGN(const text::HfFiles files, read_files(opened));
    auto made = build(files, options, directory);
    if (made.ok() || made.error().where == directory) return made;
    return std::move(made).error().at(directory);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "not enough memory for the vocabulary", directory,
                 ""};
  }
}

Result<std::optional<std::string>> chat_template_of_directory(const std::string& directory) {
  HEADRACE_ASSIGN(HfDirectory opened, HfDirectory::open(directory));
  for (const char* name : {"chat_template.jinja", "additional_chat_templates/default.jinja"}) {
    HEADRACE_ASSIGN(const std::string_view body, opened.read(name));
    if (body.size() > kMaxTemplateBytes) {
      return Error{ErrorCode::resource_exhausted, "expected a chat template of at most 4 MiB",
                   directory + "/" + name, ""};
    }
    if (!body.empty()) return std::optional<std::string>(body);
  }
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    HEADRACE_ASSIGN(const std::string_view body, opened.read(name));
    if (body.empty()) continue;
    auto config = text::parse_object(body, name);
    if (!config.ok()) return std::move(config).error().at(directory);
    if (auto found = configured_template(*config)) return found;
  }
  return std::optional<std::string>();
}

}  // namespace headrace
