// Which files of a repository, a snapshot or a package make up the model that is meant. Must not
// know where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"

namespace headrace {

struct RepoFile {
  std::string path;         ///< inside of the repository, checked (file_names.h)
  uint64_t size_bytes = 0;  ///< as listed; 0 may be unknown
  std::string sha256;       ///< of large files; else ""
  std::string blob_id;      ///< git's sha1 of small files; else ""
};

enum class ModelFormat { gguf, safetensors };

/// "gguf", "safetensors".
std::string_view model_format_name(ModelFormat format);

/// One model of GGUF format among files: one file, or all parts of a split one.
struct GgufModel {
  std::string path;           ///< of the file, or of a split file's first part
  std::string quantization;   ///< by its name; may be ""
  std::vector<size_t> files;  ///< indices, parts in order
  uint64_t size_bytes = 0;
  bool is_whole = true;  ///< no part is missing
};

/// The models in GGUF format among `files`, by path. Projectors and the like are left out.
std::vector<GgufModel> gguf_models_of(const std::vector<RepoFile>& files);

/// The files of a Hugging Face directory at the top of `files` that loading needs: configuration,
/// tokenizer, templates, weights in safetensors. Empty where there is no config.json or no such
/// weights, or not all parts of them.
std::vector<size_t> safetensors_files_of(const std::vector<RepoFile>& files);

struct Selection {
  ModelFormat format = ModelFormat::gguf;
  std::string quantization;   ///< may be ""
  std::string label;          ///< short, and selects the same again: "Q4_K_M", a path, or ""
  std::vector<size_t> files;  ///< indices; of GGUF the first is the one to open
};

/// `selector`: a file's path or a quantisation in any case. Empty: Q4_K_M, else Q8_0, else the only
/// GGUF model, else the directory's safetensors. Errors, which list what there is with sizes:
/// not_found (no such), invalid_argument (several fit), unsupported (no model that can be used).
Result<Selection> select_files(const std::vector<RepoFile>& files, const std::string& selector);

}  // namespace headrace
