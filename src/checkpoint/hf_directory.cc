// See hf_directory.h.
#include "checkpoint/hf_directory.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "checkpoint/heap_budget.h"
#include "checkpoint/quote_name.h"
#include "checkpoint/shard_index.h"

namespace headrace {
namespace {

constexpr std::string_view kWeights = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
// Models with hundreds of experts a layer have a hundred thousand tensors.
constexpr uint64_t kTensorBudget = uint64_t{96} << 20;

Error no_weights(const ModelDirectory& directory) {
  Error error{ErrorCode::not_found, "the directory has no model.safetensors", directory.path(),
              "fetch the whole model"};
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin"}) {
    if (!directory.has(name)) continue;
    error.code = ErrorCode::unsupported;
    error.message += ", only " + std::string(name) + ", which can run code when it is read";
    error.hint = "get the model's safetensors files, or a GGUF file";
    break;
  }
  return error;
}

/// The file's own name for an error of what is in it.
template <class T>
Result<T> in_file(Result<T> result, const ModelDirectory& directory, std::string_view name) {
  if (result.ok()) return result;
  return std::move(result).error().at(directory.path_of(name));
}

}  // namespace

Result<void> HfDirectory::read_shard(const std::string& name, HeapBudget& budget) {
  HEADRACE_ASSIGN(MappedFile file, directory_.open_file(name));
  auto read = in_file(read_safetensors(file.bytes(), budget), directory_, name);
  HEADRACE_TRY(file.check_whole());
  if (!read.ok()) return std::move(read).error();
  shard_of_.insert(shard_of_.end(), read->size(), static_cast<uint32_t>(shards_.size()));
  std::move(read->begin(), read->end(), std::back_inserter(tensors_));
  shards_.push_back(std::move(file));
  return {};
}

Result<void> HfDirectory::read_shards() {
  HeapBudget budget(kTensorBudget);
  // The index decides, as with other readers: files that it does not name do not count.
  HEADRACE_ASSIGN(const auto index_file, directory_.open_optional(kIndex));
  if (!index_file) {
    if (!directory_.has(kWeights)) return no_weights(directory_);
    return read_shard(std::string(kWeights), budget);
  }
  HEADRACE_ASSIGN(const auto index,
                  in_file(read_shard_index(text_of(*index_file)), directory_, kIndex));
  std::set<std::string> names;
  for (const auto& [tensor, file] : index) names.insert(file);
  if (names.size() > kMaxShards) {
    return Error{ErrorCode::corrupt_data,
                 "names " + std::to_string(names.size()) + " files; at most " +
                     std::to_string(kMaxShards) + " are allowed",
                 directory_.path_of(kIndex), ""};
  }
  std::set<std::string_view> found;
  for (const std::string& name : names) {
    const size_t begin = tensors_.size();
    HEADRACE_TRY(read_shard(name, budget));
    for (size_t i = begin; i < tensors_.size(); ++i) {
      const auto at = index.find(tensors_[i].name);
      if (at != index.end() && at->second == name) continue;
      return Error{
          ErrorCode::mismatch,
          "holds tensor " + quote_name(tensors_[i].name) + ", which the index " +
              (at == index.end() ? "does not name" : "puts into " + quote_name(at->second)),
          directory_.path_of(name), "fetch the model again"};
    }
  }
  for (const StoredTensor& tensor : tensors_) found.insert(tensor.name);
  for (const auto& [tensor, file] : index) {
    if (found.contains(tensor)) continue;
    return Error{ErrorCode::mismatch,
                 "lacks tensor " + quote_name(tensor) + ", which the index puts there",
                 directory_.path_of(file), "fetch the model again"};
  }
  return {};
}

Result<HfDirectory> HfDirectory::open(const std::string& path) {
  HEADRACE_ASSIGN(ModelDirectory opened, ModelDirectory::open(path));
  HfDirectory out(std::move(opened));
  if (!out.directory_.has("config.json")) {
    return Error{ErrorCode::not_found, "the directory has no config.json", path,
                 "give a GGUF file, or a directory with a model's Hugging Face files"};
  }
  HEADRACE_ASSIGN(MappedFile config, out.directory_.open_file("config.json"));
  out.config_.emplace(std::move(config));
  HEADRACE_ASSIGN(out.generation_config_, out.directory_.open_optional("generation_config.json"));
  HEADRACE_TRY(out.read_shards());
  return out;
}

}  // namespace headrace
