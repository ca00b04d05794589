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
#include "model/hf/hf_files.h"
#include "model/hf/hf_model.h"
#include "model/hf/hf_names.h"
#include "model/hf/hf_tensor.h"
#include "model/registry.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

/// What a tensor is made of.
struct Made {
  HfChange change = HfChange::none;
  std::vector<uint32_t> parts;  ///< indices of stored tensors; none: `bytes` is all there is
  mutable std::vector<std::byte> bytes;  ///< empty until it is read, and again once released
};

/// A tensor and what it is made of, if it is.
struct Entry {
  CheckpointTensor tensor;
  std::optional<Made> made;
};

class HfCheckpoint final : public Checkpoint {
 public:
  HfCheckpoint(HfDirectory directory, std::vector<Entry> entries, Metadata metadata,
               std::deque<std::string> texts)
      : directory_(std::move(directory)), metadata_(std::move(metadata)), texts_(std::move(texts)) {
    for (Entry& entry : entries) {
      by_name_.emplace(entry.tensor.name, tensors_.size());
      tensors_.push_back(std::move(entry.tensor));
      made_.push_back(std::move(entry.made));
    }
  }

  const std::string& path() const override { return directory_.directory().path(); }
  std::string format_name() const override {
    const size_t files = directory_.shards().size();
    return "safetensors" + (files > 1 ? ", " + std::to_string(files) + " files" : std::string());
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
    const Made& made = *made_[by_name_.find(tensor.name)->second];
    if (made.bytes.empty()) {
      std::vector<const StoredTensor*> parts;
      for (const uint32_t part : made.parts) parts.push_back(&directory_.tensors()[part]);
      HEADRACE_ASSIGN(made.bytes, make_tensor(parts, made.change));
      for (const StoredTensor* part : parts) release_pages(part->data);
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
    const Made& made = *made_[by_name_.find(tensor.name)->second];
    if (!made.parts.empty()) made.bytes = {};
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

  HfDirectory directory_;
  Metadata metadata_;
  std::deque<std::string> texts_;  ///< what strings of metadata_ point to
  std::vector<CheckpointTensor> tensors_;
  std::vector<std::optional<Made>> made_;  ///< beside tensors_
  std::map<std::string, size_t, std::less<>> by_name_;
};

/// Tensors that belong to what this engine does not run: the eyes of a model that also sees.
bool is_of_other_parts(std::string_view name) {
  if (name.starts_with("model.")) name.remove_prefix(6);
  for (const std::string_view part :
       {"vision_tower.", "vision_model.", "multi_modal_projector.", "visual.", "audio_tower."}) {
    if (name.starts_with(part)) return true;
  }
  return false;
}

/// The names that a tensor may have as part of a causal language model: its own, without the
/// wrapping of a model that also sees, or with the prefix that a bare base model lacks.
std::vector<std::string> spellings(const std::string& name) {
  constexpr std::string_view kInner = "model.language_model.";
  constexpr std::string_view kOuter = "language_model.";
  std::vector<std::string> out = {name};
  if (name.starts_with(kInner)) out.push_back("model." + name.substr(kInner.size()));
  if (name.starts_with(kOuter)) {
    out.push_back(name.substr(kOuter.size()));
    out.push_back("model." + name.substr(kOuter.size()));
  }
  constexpr std::string_view kBert = "bert.";  // around it where it has a head
  if (name.starts_with(kBert)) out.push_back(name.substr(kBert.size()));
  out.push_back("model." + name);
  out.push_back("transformer." + name);
  return out;
}

std::optional<HfPlace> find_place(std::span<const HfName> rules, const std::string& name) {
  for (const std::string& spelling : spellings(name)) {
    if (auto place = place_hf_tensor(rules, spelling)) return place;
  }
  return std::nullopt;
}

/// Gathers the tensors under their GGUF names.
class Entries {
 public:
  Entries(const HfDirectory& directory, const HfModel& model, bool is_wrapped)
      : directory_(directory), model_(model), is_wrapped_(is_wrapped) {}

  Result<std::vector<Entry>> build() {
    const auto stored = directory_.tensors();
    for (uint32_t i = 0; i < stored.size(); ++i) HEADRACE_TRY(add(i));
    for (auto& [name, rows] : stacks_) HEADRACE_TRY(add_stack(name, rows));
    HEADRACE_TRY(check_head());
    return std::move(entries_);
  }

 private:
  /// A head of its own that the config promises.
  Result<void> check_head() const {
    const HfConfig& config = model_.config();
    const bool is_own = !config.boolean("tie_word_embeddings").value_or(true);
    const auto rules = model_.names();
    const auto rule = std::ranges::find(rules, "output", &HfName::gguf);
    if (!is_own || rule == rules.end() || placed_.contains("output.weight")) return {};
    return Error{ErrorCode::corrupt_data,
                 "says that the output head is not tied, but there is no tensor " +
                     quote_name(std::string(rule->hf) + ".weight"),
                 config.place("tie_word_embeddings"), "fetch the whole model"};
  }

  Error at_tensor(uint32_t index, std::string message) const {
    return Error{ErrorCode::corrupt_data, std::move(message),
                 "tensor " + quote_name(directory_.tensors()[index].name), ""};
  }

  Result<void> add(uint32_t index) {
    const StoredTensor& stored = directory_.tensors()[index];
    if (is_wrapped_ && is_of_other_parts(stored.name)) return {};
    // Without a rule a tensor keeps its name: the loader says that nothing reads it.
    const HfPlace place =
        find_place(model_.names(), stored.name).value_or(HfPlace{.gguf = stored.name});
    if (place.gguf.empty()) return {};
    const bool is_tied = model_.config().boolean("tie_word_embeddings").value_or(false);
    if (is_tied && place.gguf == "output.weight") return {};
    if (place.change == HfChange::stack) {
      if (stacks_[place.gguf].emplace(place.row, index).second) return {};
      return at_tensor(index, "is there twice, under different names");
    }
    const auto [other, is_new] = placed_.emplace(place.gguf, index);
    if (!is_new) {
      return at_tensor(index, "has the place of " +
                                  quote_name(directory_.tensors()[other->second].name) + " too");
    }
    return add_entry(place.gguf, place.change, {index});
  }

  Result<void> add_stack(const std::string& name, const std::map<int64_t, uint32_t>& rows) {
    std::vector<uint32_t> parts;
    for (const auto& [row, index] : rows) {
      if (row != static_cast<int64_t>(parts.size())) {
        return at_tensor(
            index, "expected number " + std::to_string(parts.size()) + " after those before it");
      }
      parts.push_back(index);
    }
    return add_entry(name, HfChange::stack, std::move(parts));
  }

  Result<void> add_entry(const std::string& name, HfChange change, std::vector<uint32_t> parts) {
    const StoredTensor& first = directory_.tensors()[parts.front()];
    Entry& entry = entries_.emplace_back();
    entry.tensor.name = name;
    entry.tensor.data = first.data;
    if (lies_as_it_is(first, change)) {
      entry.tensor.format = *format_of(first.type);
      entry.tensor.shape = first.shape;
      return {};
    }
    std::vector<const StoredTensor*> stored;
    for (const uint32_t part : parts) stored.push_back(&directory_.tensors()[part]);
    HEADRACE_ASSIGN(MadeShape made, made_shape(stored, change));
    entry.tensor.format = made.format;
    entry.tensor.shape = std::move(made.shape);
    entry.tensor.is_made = true;
    entry.made.emplace(Made{change, std::move(parts), {}});
    return {};
  }

  const HfDirectory& directory_;
  const HfModel& model_;
  bool is_wrapped_;
  std::vector<Entry> entries_;
  std::map<std::string, uint32_t> placed_;
  std::map<std::string, std::map<int64_t, uint32_t>> stacks_;
};

Entry extra_entry(const HfExtraTensor& extra) {
  Entry entry;
  entry.tensor.name = extra.name;
  entry.tensor.shape = {static_cast<int64_t>(extra.values.size())};
  entry.tensor.is_made = true;
  const auto bytes = std::as_bytes(std::span(extra.values));
  entry.made.emplace(Made{HfChange::none, {}, {bytes.begin(), bytes.end()}});
  return entry;
}

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
  add_hf_special_ids(directory.generation_config(), directory.config(), metadata);
  add_hf_pooling(directory.directory(), architecture.gguf_name, metadata);
  if (auto source = hf_chat_template(directory.directory())) {
    set_text("tokenizer.chat_template", std::move(*source));
  }
  return metadata;
}

Error unknown_architecture(const HfConfig& config, const std::vector<std::string>& names) {
  std::string found = names.empty() ? config.text("model_type").value_or("") : names.front();
  return Error{ErrorCode::unsupported,
               found.empty() ? "names no architecture"
                             : "the architecture " + quote_name(found) + " is not built in",
               config.place("architectures"), "this build runs " + known_architectures()};
}

/// Quantised checkpoints say so; their tensors have names and types of their own.
Result<void> check_quantization(const HfConfig& config) {
  if (!config.is_object("quantization_config")) return {};
  const auto method = config.object("quantization_config").text("quant_method");
  return Error{ErrorCode::unsupported,
               "weights quantised by " + quote_name(method.value_or("an unnamed method")) +
                   " are not built in",
               config.place("quantization_config"), "use the model's own weights, or a GGUF file"};
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
  HEADRACE_TRY(check_quantization(config));

  HfModel model(config, architecture->gguf_name);
  architecture->read_hf(model);
  if (config.error()) return *config.error();
  HEADRACE_ASSIGN(std::vector<Entry> entries, Entries(directory, model, is_wrapped).build());
  if (config.error()) return *config.error();
  for (const HfExtraTensor& extra : model.extra_tensors()) entries.push_back(extra_entry(extra));

  std::deque<std::string> texts;
  Metadata metadata = make_metadata(model, *architecture, directory, texts);
  return std::unique_ptr<Checkpoint>(std::make_unique<HfCheckpoint>(
      std::move(directory), std::move(entries), std::move(metadata), std::move(texts)));
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

/// The directory that is meant by a path for which is_hf_path holds.
std::string directory_of(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_hf_checkpoint(const std::string& path) {
  HEADRACE_ASSIGN(HfDirectory directory, HfDirectory::open(directory_of(path)));
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
  if (!fs::exists(fs::path(directory_of(path)) / "config.json", error)) {
    if (const std::string gguf = only_gguf(directory_of(path)); !gguf.empty()) {
      return open_checkpoint(gguf);
    }
  }
  return open_hf_checkpoint(path);
}

}  // namespace headrace
