// See gguf_checkpoint.h.
#include "checkpoint/gguf_checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/gguf_file.h"
#include "checkpoint/gguf_split.h"
#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

/// One file with its mapping. Moving keeps what `file` points to.
struct Part {
  MappedFile mapping;
  GgufFile file;
};

class GgufCheckpoint final : public Checkpoint {
 public:
  /// Parts in order; metadata is the first one's. Error: a tensor in two parts.
  static Result<std::unique_ptr<Checkpoint>> create(std::vector<Part> parts) {
    auto checkpoint = std::unique_ptr<GgufCheckpoint>(new GgufCheckpoint(std::move(parts)));
    const auto& sorted = checkpoint->by_name_;
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end(), [&](auto a, auto b) {
      return checkpoint->tensors_[a].name == checkpoint->tensors_[b].name;
    });
    if (twice != sorted.end()) {
      return Error{ErrorCode::corrupt_data,
                   "tensor " + quote_name(checkpoint->tensors_[*twice].name) + " is in two parts",
                   checkpoint->path(), ""};
    }
    return std::unique_ptr<Checkpoint>(std::move(checkpoint));
  }

  const std::string& path() const override { return parts_.front().mapping.path(); }
  std::string format_name() const override {
    return "GGUF v" + std::to_string(parts_.front().file.version);
  }
  const Metadata& metadata() const override { return parts_.front().file.metadata; }
  std::span<const CheckpointTensor> tensors() const override { return tensors_; }

  const CheckpointTensor* find(std::string_view name) const override {
    const auto found = std::lower_bound(
        by_name_.begin(), by_name_.end(), name,
        [&](uint32_t index, std::string_view n) { return tensors_[index].name < n; });
    if (found == by_name_.end() || tensors_[*found].name != name) return nullptr;
    return &tensors_[*found];
  }

  uint64_t file_bytes() const override {
    uint64_t sum = 0;
    for (const Part& part : parts_) sum += part.mapping.bytes().size();
    return sum;
  }

  void release(const CheckpointTensor& tensor) const override {
    // The mapping of any part will do: it only passes the address range on.
    parts_.front().mapping.release(tensor.data.data(), tensor.data.size());
  }

  void release_all() const override {
    for (const Part& part : parts_) {
      part.mapping.release(part.mapping.bytes().data(), part.mapping.bytes().size());
    }
  }

  Result<void> check_whole() const override {
    for (const Part& part : parts_) HEADRACE_TRY(part.mapping.check_whole());
    return {};
  }

  Result<void> check_unchanged() const override {
    for (const Part& part : parts_) HEADRACE_TRY(part.mapping.check_unchanged());
    return {};
  }

 private:
  explicit GgufCheckpoint(std::vector<Part> parts) : parts_(std::move(parts)) {
    for (Part& part : parts_) {
      std::move(part.file.tensors.begin(), part.file.tensors.end(), std::back_inserter(tensors_));
      part.file.tensors = {};
    }
    by_name_.resize(tensors_.size());
    for (size_t i = 0; i < by_name_.size(); ++i) by_name_[i] = static_cast<uint32_t>(i);
    std::sort(by_name_.begin(), by_name_.end(),
              [&](uint32_t a, uint32_t b) { return tensors_[a].name < tensors_[b].name; });
  }

  std::vector<Part> parts_;
  std::vector<CheckpointTensor> tensors_;
  std::vector<uint32_t> by_name_;  ///< indices of tensors_, sorted by name
};

Result<Part> read_part(MappedFile mapping, HeapBudget& budget) {
  auto file = read_gguf(mapping.bytes(), budget);
  HEADRACE_TRY(mapping.check_whole());
  if (!file.ok()) return std::move(file).error().at(mapping.path());
  return Part{std::move(mapping), std::move(file).value()};
}

/// The name of the set whose first part this is.
Result<SplitName> split_name(const std::string& path, const SplitKeys& keys) {
  const std::string which = "part " + std::to_string(keys.part) + " of " +
                            std::to_string(keys.num_parts) + " of a split model";
  const auto name = parse_split_name(path);
  if (!name || name->num_parts != keys.num_parts || name->part != keys.part) {
    const SplitName wanted{"NAME", keys.part, keys.num_parts};
    return Error{ErrorCode::mismatch, "the file is " + which + ", but its name does not say so",
                 path, "give all parts back their names: " + wanted.path(keys.part)};
  }
  if (keys.part != 1) {
    return Error{ErrorCode::invalid_argument, "this is " + which + ", expected the first", path,
                 "use " + name->path(1)};
  }
  return *name;
}

Result<Part> open_other_part(const SplitName& name, int64_t number, HeapBudget& budget) {
  const std::string path = name.path(number);
  auto mapping = MappedFile::open(path);
  if (!mapping.ok()) {
    Error error = std::move(mapping).error();
    error.message = "part " + std::to_string(number) + " of " + std::to_string(name.num_parts) +
                    " of a split model: " + error.message;
    error.hint = "all parts must lie in one folder";
    return error;
  }
  HEADRACE_ASSIGN(Part part, read_part(std::move(mapping).value(), budget));
  auto keys = read_split_keys(part.file.metadata);
  if (!keys.ok()) return std::move(keys).error().at(path);
  const SplitKeys found = keys->value_or(SplitKeys{});
  if (found.part != number || found.num_parts != name.num_parts) {
    return Error{ErrorCode::mismatch,
                 "expected part " + std::to_string(number) + " of " +
                     std::to_string(name.num_parts) + ", but the file says part " +
                     std::to_string(found.part) + " of " + std::to_string(found.num_parts),
                 path, "fetch the parts again"};
  }
  return part;
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_gguf(MappedFile first) {
  const std::string path = first.path();
  HeapBudget budget;
  std::vector<Part> parts;
  HEADRACE_ASSIGN(Part part, read_part(std::move(first), budget));
  parts.push_back(std::move(part));
  auto keys = read_split_keys(parts.front().file.metadata);
  if (!keys.ok()) return std::move(keys).error().at(path);
  if (!keys->has_value()) return GgufCheckpoint::create(std::move(parts));

  HEADRACE_ASSIGN(const SplitName name, split_name(path, **keys));
  uint64_t num_tensors = parts.front().file.tensors.size();
  for (int64_t number = 2; number <= name.num_parts; ++number) {
    HEADRACE_ASSIGN(Part other, open_other_part(name, number, budget));
    num_tensors += other.file.tensors.size();
    parts.push_back(std::move(other));
  }
  const auto expected = (*keys)->num_tensors;
  if (expected && static_cast<uint64_t>(*expected) != num_tensors) {
    return Error{ErrorCode::mismatch,
                 "key 'split.tensors.count' says " + std::to_string(*expected) +
                     " tensors, but the parts hold " + std::to_string(num_tensors),
                 path, "fetch the parts again"};
  }
  return GgufCheckpoint::create(std::move(parts));
}

}  // namespace headrace
