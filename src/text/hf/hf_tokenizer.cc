// Opens a Hugging Face directory; see tokenizer.h.
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>

#include "base/os/mapped_file.h"
#include "checkpoint/quote_name.h"
#include "text/hf/json_fields.h"
#include "text/hf/sentencepiece.h"
#include "text/hf/tokenizer_json.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The largest chat template.
constexpr size_t kMaxTemplateBytes = size_t{4} << 20;

// The files of a directory, each opened once and kept.
class HfDirectory {
 public:
  explicit HfDirectory(std::string path) : path_(std::move(path)) {}

  /// The text of a file; empty where there is none. Error: io_error, or a link that leads out of
  /// the directory. (A cache of Hugging Face has links from snapshots/X to ../../blobs.)
  Result<std::string_view> read(const std::string& name) {
    const std::string path = path_ + "/" + name;
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) return std::string_view();
    HEADRACE_TRY(check_inside(real, name));
    auto file = MappedFile::open(path);
    if (!file.ok()) {
      if (file.error().code == ErrorCode::io_error) return file.error();
      return std::string_view();
    }
    const std::span<const std::byte> bytes = file->bytes();
    files_.push_back(std::move(*file));
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  const std::string& path() const { return path_; }

 private:
  Result<void> check_inside(const fs::path& real, const std::string& name) const {
    std::error_code error;
    const fs::path root = fs::canonical(path_, error);
    const bool is_snapshot = root.parent_path().filename() == "snapshots";
    const fs::path blobs = root.parent_path().parent_path() / "blobs";
    for (fs::path folder = real.parent_path(); !error; folder = folder.parent_path()) {
      if (folder == root || (is_snapshot && folder == blobs)) return {};
      if (folder == folder.parent_path()) break;
    }
    return Error{ErrorCode::invalid_argument,
                 "expected a file inside of the directory, found a link that leads out of it",
                 path_ + "/" + name, ""};
  }

  std::string path_;
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
                 directory, ""};
  }
  HEADRACE_ASSIGN(text::SentencePieceModel model, text::read_sentencepiece(files.sentencepiece));
  return text::build_sentencepiece(std::move(model), files, "tokenizer.model");
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

}  // namespace

Result<std::shared_ptr<const Tokenizer>> open_hf_tokenizer(const std::string& directory,
                                                           const TokenizerOptions& options) {
  HfDirectory opened(directory);
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
  HfDirectory opened(directory);
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
