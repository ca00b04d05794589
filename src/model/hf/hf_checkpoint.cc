// See hf_checkpoint.h.
#include "model/hf/hf_checkpoint.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "checkpoint/hf_directory.h"
#include "checkpoint/quote_name.h"
#include "model/hf/hf_entries.h"
#include "model/hf/hf_files.h"
#include "model/hf/hf_model.h"
#include "model/hf/hf_quantization.h"
#include "model/registry.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

class HfCheckpoint final : public Checkpoint {
 public:
  HfCheckpoint(HfDirectory directory, HfQuantization quantization, std::vector<HfEntry> entries,
               Metadata metadata, std::deque<std::string> texts)
      : directory_(std::move(directory)),
        quantization_(std::move(quantization)),
        metadata_(std::move(metadata)),
        texts_(std::move(texts)) {
    for (HfEntry& entry : entries) {
      by_name_.emplace(entry.tensor.name, tensors_.size());
      tensors_.push_back(std::move(entry.tensor));
      made_.push_back(std::move(entry.made));
    }
  }

  const std::string& path() const override { return directory_.directory().path(); }
  std::string format_name() const override {
    const size_t files = directory_.shards().size();
    return "safetensors" + (files > 1 ? ", " + std::to_string(files) + " files" : std::string()) +
           (quantization_.name.empty() ? "" : ", " + quantization_.name);
  }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const CheckpointTensor> tensors() const override { return tensors_; }
  bool is_directory() const override { return true; }
  bool keeps_rope_halves() const override { return true; }

  const CheckpointTensor* find(std::string_view name) const override {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &tensors_[found->second];
  }

  Result<std::span<const std::byte>> read(const CheckpointTensor& tensor) const override {
    if (!tensor.is_made) return tensor.data;
    const HfMade& made = *made_[by_name_.find(tensor.name)->second];
    if (made.bytes.empty()) {
      HEADRACE_ASSIGN(made.bytes, make_hf_tensor(directory_, quantization_, made));
      release_parts(made);
    }
    return std::span<const std::byte>(made.bytes);
  }

  uint64_t file_bytes() const override {
    uint64_t sum = 0;
    for (const MappedFile& shard : directory_.shards()) sum += shard.bytes().size();
    return sum;
  }

  void release(const CheckpointTensor& tensor) const override {
    release_pages(tensor.data);
    if (!tensor.is_made) return;
    const HfMade& made = *made_[by_name_.find(tensor.name)->second];
    if (!made.parts.empty() || made.quantized) made.bytes = {};
  }

  void release_all() const override {
    for (const MappedFile& shard : directory_.shards()) {
      shard.release(shard.bytes().data(), shard.bytes().size());
    }
  }

  Result<void> check_whole() const override {
    for (const MappedFile& shard : directory_.shards()) HEADRACE_TRY(shard.check_whole());
    return {};
  }

  Result<void> check_unchanged() const override {
    for (const MappedFile& shard : directory_.shards()) HEADRACE_TRY(shard.check_unchanged());
    return {};
  }

 private:
  void release_pages(std::span<const std::byte> data) const {
    // The mapping of any file will do: it only passes the address range on.
    directory_.shards().front().release(data.data(), data.size());
  }

  void release_parts(const HfMade& made) const {
    for (const uint32_t part : made.parts) release_pages(directory_.tensors()[part].data);
    if (!made.quantized) return;
    for (const auto& part : *made.quantized) {
      if (part) release_pages(directory_.tensors()[*part].data);
    }
  }

  HfDirectory directory_;
  HfQuantization quantization_;
  Metadata metadata_;
  std::deque<std::string> texts_;  ///< what strings of metadata_ point to
  std::vector<CheckpointTensor> tensors_;
  std::vector<std::optional<HfMade>> made_;  ///< beside tensors_
  std::map<std::string, size_t, std::less<>> by_name_;
};

Metadata make_metadata(const HfModel& model, const Architecture& architecture,
                       const HfDirectory& directory, std::deque<std::string>& texts) {
  Metadata metadata;
  const auto set_text = [&](const std::string& key, std::string text) {
    texts.push_back(std::move(text));
    metadata.set(key, std::string_view(texts.back()));
  };
  set_text("general.architecture", std::string(architecture.gguf_name));
  set_text("general.name", name_of_hf_directory(directory.directory()));
  model.write_keys(metadata, texts);
  add_hf_sampling(directory.generation_config(), metadata);
  add_hf_pooling(directory.directory(), architecture.gguf_name, metadata);
  return metadata;
}

Error unknown_architecture(const HfConfig& config, const std::vector<std::string>& names) {
  std::string found = names.empty() ? config.text("model_type").value_or("") : names.front();
  return Error{ErrorCode::unsupported,
               found.empty() ? "names no architecture"
                             : "the architecture " + quote_name(found) + " is not built in",
               config.place("architectures"), "this build runs " + known_architectures()};
}

Result<std::unique_ptr<Checkpoint>> open_translated(HfDirectory directory) {
  HEADRACE_ASSIGN(HfConfig root, HfConfig::parse(directory.config(), "config.json"));
  const std::vector<std::string> names = root.texts("architectures");
  const bool is_wrapped = root.is_object("text_config");
  const HfConfig config = is_wrapped ? root.object("text_config").over(root) : root;
  const Architecture* architecture = nullptr;
  for (const std::string& name : names) {
    if (architecture == nullptr) architecture = find_hf_architecture(name);
  }
  if (root.error()) return *root.error();
  if (architecture == nullptr) return unknown_architecture(root, names);
  HEADRACE_ASSIGN(HfQuantization quantization, read_hf_quantization(config));

  HfModel model(config, architecture->gguf_name);
  architecture->read_hf(model);
  if (config.error()) return *config.error();
  auto entries = place_hf_tensors(directory, model, quantization, is_wrapped);
  // Of a file that was cut meanwhile scales are read as zeros.
  for (const MappedFile& shard : directory.shards()) HEADRACE_TRY(shard.check_whole());
  if (!entries.ok()) return std::move(entries).error();
  if (config.error()) return *config.error();

  std::deque<std::string> texts;
  Metadata metadata = make_metadata(model, *architecture, directory, texts);
  return std::unique_ptr<Checkpoint>(std::make_unique<HfCheckpoint>(
      std::move(directory), std::move(quantization), std::move(entries).value(),
      std::move(metadata), std::move(texts)));
}

/// The only GGUF file of a directory, or the first part of the only set; else empty.
std::string only_gguf(const std::string& directory) {
  std::string found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".gguf")) continue;
    if (name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos) {
      continue;
    }
    if (!found.empty()) return {};
    found = entry.path().string();
  }
  return found;
}

}  // namespace

std::string directory_of_hf_path(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Result<std::unique_ptr<Checkpoint>> open_hf_checkpoint(const std::string& path) {
  HEADRACE_ASSIGN(HfDirectory directory, HfDirectory::open(directory_of_hf_path(path)));
  auto opened = open_translated(std::move(directory));
  if (!opened.ok() && opened.error().where.find(path) == std::string::npos) {
    return std::move(opened).error().at(path);
  }
  return opened;
}

bool is_hf_path(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return true;
  return path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json") ||
         fs::path(path).filename() == "config.json";
}

Result<std::unique_ptr<Checkpoint>> open_model_files(const std::string& path) {
  if (!is_hf_path(path)) return open_checkpoint(path);
  std::error_code error;
  if (!fs::exists(fs::path(directory_of_hf_path(path)) / "config.json", error)) {
    if (const std::string gguf = only_gguf(directory_of_hf_path(path)); !gguf.empty()) {
      return open_checkpoint(gguf);
    }
  }
  return open_hf_checkpoint(path);
}

}  // namespace headrace
