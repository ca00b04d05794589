// See convert_to_hf.h.
#include "app/convert_to_hf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "base/os/atomic_file.h"
#include "checkpoint/safetensors_writer.h"
#include "model/hf/hf_plan.h"
#include "model/hf/hf_writer.h"
#include "model/loader.h"
#include "quant/encode.h"
#include "text/hf/tokenizer_json_writer.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

/// Numbers that are decoded, encoded and written at a time, about.
constexpr int64_t kNumbersAtATime = int64_t{1} << 20;

bool is_plain_format(Format format) {
  return format == Format::f32 || format == Format::f16 || format == Format::bf16;
}

std::string_view dtype_name(Format format) {
  return format == Format::f32 ? "float32" : format == Format::f16 ? "float16" : "bfloat16";
}

/// What matrices become.
Format matrix_format(const CheckpointTensor& tensor, const Quantization* to) {
  if (to != nullptr) return to->layers;
  return is_plain_format(tensor.format) ? tensor.format : Format::f16;
}

/// The type of most weights.
Format main_format(const Checkpoint& from, const Quantization* to) {
  uint64_t counts[3] = {};
  constexpr Format kFormats[3] = {Format::f32, Format::f16, Format::bf16};
  for (const CheckpointTensor& tensor : from.tensors()) {
    if (tensor.shape.size() < 2) continue;
    const auto at = std::ranges::find(kFormats, matrix_format(tensor, to)) - std::begin(kFormats);
    counts[at] += static_cast<uint64_t>(tensor.num_elements());
  }
  return kFormats[std::ranges::max_element(counts) - std::begin(counts)];
}

/// Whether a directory is of the kind that is written here, so that it may be replaced.
bool holds_model(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::exists(directory / "config.json", ignored)) return false;
  for (fs::directory_iterator it(directory, ignored), end; it != end; it.increment(ignored)) {
    if (it->path().extension() == ".safetensors") return true;
  }
  return false;
}

/// Whether the file or directory `path` is `directory`, or anywhere in it; true as well where that
/// cannot be told, since what is in it may be deleted.
bool lies_in(const std::string& path, const std::string& directory) {
  std::error_code error;
  const fs::path inner = fs::canonical(path, error);
  const fs::path outer = error ? fs::path() : fs::canonical(directory, error);
  if (error) return true;
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

Result<void> check_hf_target(const Checkpoint& from, const std::string& out,
                             const ConvertOptions& options) {
  const auto bad = [](std::string message, const std::string& where, std::string hint) {
    return Error{ErrorCode::invalid_argument, std::move(message), where, std::move(hint)};
  };
  if (from.is_directory()) {
    return bad("is a Hugging Face directory already", from.path(), "name the result FILE.gguf");
  }
  if (options.to != nullptr && !is_plain_format(options.to->layers)) {
    return bad("a Hugging Face directory is written in f32, f16 or bf16, not in " +
                   std::string(options.to->name),
               out, "name the result FILE.gguf to quantise");
  }
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(out, ignored))) return {};
  if (!fs::is_directory(out, ignored)) {
    return bad("there is something that is no directory", out, "give the result another name");
  }
  if (fs::is_empty(out, ignored)) return {};
  if (!options.overwrite) {
    return bad("there is a directory of this name already", out,
               "give the result another name, or --force");
  }
  if (!holds_model(out)) {
    return bad("the directory holds something else than a model (config.json and safetensors)", out,
               "give the result another name");
  }
  if (lies_in(from.path(), out)) {
    return bad("the directory holds the model that is converted", out,
               "give the result another name");
  }
  return {};
}

Error io_fault(std::string message, const std::string& where, std::error_code error) {
  return Error{ErrorCode::io_error, std::move(message) + ": " + error.message(), where, ""};
}

/// A directory that was not there, "<prefix>N": nobody else's is touched.
Result<std::string> make_new_directory(const std::string& prefix) {
  constexpr int kMost = 1000;
  std::error_code error;
  for (int i = 1; i <= kMost; ++i) {
    std::string path = prefix + std::to_string(i);
    if (fs::create_directory(path, error)) return path;
    if (error) return io_fault("cannot make the directory", path, error);
  }
  return Error{ErrorCode::io_error, "there are too many directories of this kind",
               prefix + std::to_string(kMost), "remove what earlier runs left"};
}

/// The directory while it is written; removed unless it was committed.
class PartDirectory {
 public:
  explicit PartDirectory(std::string out) : out_(std::move(out)) {}
  ~PartDirectory() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  PartDirectory(const PartDirectory&) = delete;
  PartDirectory& operator=(const PartDirectory&) = delete;

  Result<void> create() {
    std::error_code error;
    const fs::path parent = fs::path(out_).parent_path();
    if (!parent.empty()) fs::create_directories(parent, error);
    if (error) return io_fault("cannot make the directory", parent.string(), error);
    HEADRACE_ASSIGN(path_, make_new_directory(out_ + ".part-"));
    return {};
  }

  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

  Result<void> write(std::string_view name, std::string_view text) const {
    HEADRACE_ASSIGN(AtomicFile file, AtomicFile::create(this->file(name) + ".part"));
    HEADRACE_TRY(file.write(std::as_bytes(std::span(text))));
    return file.commit(this->file(name));
  }

  /// Where there is a directory that is not empty, it is replaced if `overwrite` is set.
  Result<void> commit(bool overwrite) {
    std::error_code error;
    fs::rename(path_, out_, error);  // which takes the place of an empty directory, and of no other
    const bool is_full = error == std::errc::directory_not_empty || error == std::errc::file_exists;
    if (is_full && overwrite) return replace();
    if (error) return io_fault("cannot give the directory its name", out_, error);
    path_.clear();
    return {};
  }

 private:
  Result<void> replace() {
    HEADRACE_ASSIGN(const std::string old, make_new_directory(out_ + ".old-"));
    std::error_code error, ignored;
    fs::rename(out_, old, error);  // which is empty
    if (error) {
      fs::remove(old, ignored);
      return io_fault("cannot move the directory that is there", out_, error);
    }
    fs::rename(path_, out_, error);
    if (error) {
      std::error_code lost;
      fs::rename(old, out_, lost);
      const std::string where = lost ? "; what was there is now " + old : "";
      return io_fault("cannot give the directory its name" + where, out_, error);
    }
    path_.clear();
    fs::remove_all(old, ignored);
    return {};
  }

  std::string out_;
  std::string path_;
};

/// The numbers of a target, row by row.
class TargetRows {
 public:
  /// `bytes`: of the source. `order`: for each row of the target its row in the source, or empty.
  TargetRows(const HfTarget& target, std::span<const std::byte> bytes,
             std::span<const int32_t> order)
      : target_(target), traits_(format_traits(target.source->format)), order_(order) {
    cols_ = target.source->shape.empty() ? 1 : target.source->shape.back();
    // Where a vector's elements are put in order, they are rows.
    if (!order.empty() && target.source->shape.size() == 1) cols_ = 1;
    rows_ = 1;
    for (const int64_t extent : target.shape) rows_ *= extent;
    rows_ = cols_ == 0 ? 0 : rows_ / cols_;
    row_bytes_ = static_cast<size_t>(cols_) / traits_.block_elements * traits_.block_bytes;
    const int64_t first = std::max<int64_t>(target.part, 0) * rows_;
    bytes_ = bytes.subspan(static_cast<size_t>(first) * row_bytes_);
    if (target.change == HfChange::transpose && target.shape.size() == 2) transpose();
  }

  int64_t rows() const { return transposed_.empty() ? rows_ : target_.shape[0]; }
  int64_t cols() const { return transposed_.empty() ? cols_ : target_.shape[1]; }

  void read(int64_t row, float* out) const {
    if (!transposed_.empty()) {
      std::copy_n(transposed_.begin() + row * cols(), cols(), out);
      return;
    }
    const int64_t from = order_.empty() ? row : order_[static_cast<size_t>(row)];
    traits_.decode(bytes_.data() + static_cast<size_t>(from) * row_bytes_, out,
                   row_bytes_ / traits_.block_bytes);
    if (target_.change == HfChange::add_one) {
      for (int64_t i = 0; i < cols_; ++i) out[i] -= 1;
    }
  }

 private:
  void transpose() {
    std::vector<float> values(static_cast<size_t>(rows_ * cols_));
    traits_.decode(bytes_.data(), values.data(), values.size() / traits_.block_elements);
    transposed_.resize(values.size());
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < cols_; ++c) {
        transposed_[static_cast<size_t>(c * rows_ + r)] =
            values[static_cast<size_t>(r * cols_ + c)];
      }
    }
  }

  const HfTarget& target_;
  const FormatTraits& traits_;
  std::span<const int32_t> order_;
  std::span<const std::byte> bytes_;
  std::vector<float> transposed_;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  size_t row_bytes_ = 0;
};

/// Whether a number of this type can be each of the values.
bool holds(Format format, std::span<const float> values) {
  const Encoder& encoder = *encoder_of(format);
  if (find_unencodable(encoder, values)) return false;
  std::vector<std::byte> bytes(values.size() * format_traits(format).block_bytes);
  encoder.encode(values.data(), nullptr, bytes.data(), values.size());
  std::vector<float> back(values.size());
  format_traits(format).decode(bytes.data(), back.data(), back.size());
  return std::ranges::equal(values, back);
}

Error beyond_format(const HfTarget& target, Format format, int64_t row, size_t col) {
  return Error{ErrorCode::corrupt_data,
               "the weight in row " + std::to_string(row) + ", column " + std::to_string(col) +
                   " is no finite number, or more than " + std::string(format_traits(format).name) +
                   " can hold",
               "tensor '" + target.source->name + "'", "ask for the type bf16 or f32"};
}

class HfDirectoryWriter {
 public:
  HfDirectoryWriter(const Checkpoint& from, const ConvertOptions& options)
      : from_(from), options_(options), main_(main_format(from, options.to)) {}

  Result<ConvertSummary> write(const std::string& out) {
    HEADRACE_ASSIGN(plan_, plan_hf_directory(from_, dtype_name(main_)));
    set_orders();
    for (const CheckpointTensor& tensor : from_.tensors()) {
      summary_.num_parameters += tensor.num_elements();
      summary_.source_bytes += tensor.num_bytes();
    }
    PartDirectory directory(out);
    HEADRACE_TRY(directory.create());
    HEADRACE_TRY(directory.write("config.json", plan_.config_json));
    HEADRACE_TRY(directory.write("generation_config.json", hf_generation_config(from_.metadata())));
    HEADRACE_TRY(write_tokenizer(directory));
    HEADRACE_TRY(write_weights(directory));
    HEADRACE_TRY(from_.check_unchanged());
    // Long after it was looked at first.
    HEADRACE_TRY(check_hf_target(from_, out, options_));
    HEADRACE_TRY(directory.commit(options_.overwrite));
    return std::move(summary_);
  }

 private:
  void set_orders() {
    const bool is_interleaved = plan_.architecture->gguf_rope_rows == RopeRows::interleaved;
    if (!is_interleaved || from_.keeps_rope_halves()) return;
    const ModelConfig& config = plan_.config;
    queries_ = deinterleave_rows({config.num_heads, config.head_dim, config.rope.dims});
    keys_ = deinterleave_rows({config.num_kv_heads, config.head_dim, config.rope.dims});
  }

  std::span<const int32_t> order_of(const std::string& name) const {
    if (name.find(".attn_q.") != name.npos) return queries_;
    if (name.find(".attn_k.") != name.npos) return keys_;
    return {};
  }

  Result<void> write_tokenizer(const PartDirectory& directory) {
    auto files = write_hf_tokenizer(from_.metadata());
    if (!files.ok()) {
      summary_.warnings.push_back("no tokenizer was written: " + files.error().to_string());
      return {};
    }
    if (!files->is_same) {
      summary_.warnings.push_back(
          "tokenizer.json cannot say all rules of this tokenizer: some texts may be cut otherwise");
    }
    HEADRACE_TRY(directory.write("tokenizer.json", files->tokenizer));
    return directory.write("tokenizer_config.json", files->config);
  }

  /// The rows of a target. The source's bytes must stay.
  Result<TargetRows> rows_of(const HfTarget& target) const {
    HEADRACE_ASSIGN(const std::span<const std::byte> bytes, from_.read(*target.source));
    const auto order = order_of(target.source->name);
    int64_t count = 1;
    for (const int64_t extent : target.source->shape) count *= extent;
    const bool is_vector = target.source->shape.size() == 1;
    const int64_t rows =
        is_vector ? count : count / std::max<int64_t>(1, target.source->shape.back());
    if (!order.empty() && rows != static_cast<int64_t>(order.size())) {
      return Error{ErrorCode::corrupt_data,
                   "expected " + std::to_string(order.size()) + " rows, as the heads have",
                   "tensor '" + target.source->name + "'", ""};
    }
    if (!order.empty() && is_vector && format_traits(target.source->format).block_elements != 1) {
      return Error{ErrorCode::unsupported, "a vector of queries or keys in blocks",
                   "tensor '" + target.source->name + "'", ""};
    }
    return TargetRows(target, bytes, order);
  }

  Result<Format> format_of_target(const HfTarget& target) const {
    if (target.shape.size() >= 2) return matrix_format(*target.source, options_.to);
    if (main_ == Format::f32) return Format::f32;
    HEADRACE_ASSIGN(const TargetRows rows, rows_of(target));
    std::vector<float> values(static_cast<size_t>(rows.rows() * rows.cols()));
    for (int64_t row = 0; row < rows.rows(); ++row)
      rows.read(row, values.data() + row * rows.cols());
    return holds(main_, values) ? main_ : Format::f32;
  }

  Result<void> write_weights(const PartDirectory& directory) {
    std::vector<SafetensorsPlan> plans;
    std::vector<size_t> shard_begins = {0};
    uint64_t shard_bytes = 0;
    uint64_t total_bytes = 0;
    for (const HfTarget& target : plan_.targets) {
      HEADRACE_ASSIGN(const Format format, format_of_target(target));
      plans.push_back({target.name, format, target.shape});
      const uint64_t bytes = safetensors_bytes(plans.back());
      if (shard_bytes > 0 && shard_bytes + bytes > options_.most_shard_bytes) {
        shard_begins.push_back(plans.size() - 1);
        shard_bytes = 0;
      }
      shard_bytes += bytes;
      total_bytes += bytes;
      summary_.num_changed += format != target.source->format ? 1 : 0;
    }
    summary_.num_tensors = static_cast<int64_t>(plans.size());
    HEADRACE_TRY(expect_disk_room(directory.file("model.safetensors"), total_bytes));
    std::vector<std::string> files;
    for (size_t s = 0; s < shard_begins.size(); ++s) {
      const size_t begin = shard_begins[s];
      const size_t end = s + 1 < shard_begins.size() ? shard_begins[s + 1] : plans.size();
      const std::string name = shard_name(s, shard_begins.size());
      const auto data = [&](size_t index, SafetensorsPut put) {
        return write_target(plan_.targets[begin + index], plans[begin + index].format, put);
      };
      HEADRACE_ASSIGN(const uint64_t bytes,
                      write_safetensors(directory.file(name),
                                        std::span(plans).subspan(begin, end - begin), data));
      summary_.file_bytes += bytes;
      files.insert(files.end(), end - begin, name);
    }
    if (shard_begins.size() == 1) return {};
    return directory.write("model.safetensors.index.json", safetensors_index(plans, files));
  }

  static std::string shard_name(size_t shard, size_t count) {
    if (count == 1) return "model.safetensors";
    const auto number = [](size_t value) {
      const std::string text = std::to_string(value);
      return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
    };
    return "model-" + number(shard + 1) + "-of-" + number(count) + ".safetensors";
  }

  Result<void> write_target(const HfTarget& target, Format format, SafetensorsPut put) {
    HEADRACE_ASSIGN(const TargetRows rows, rows_of(target));
    const int64_t slice = std::max<int64_t>(1, kNumbersAtATime / std::max<int64_t>(1, rows.cols()));
    const size_t row_bytes = static_cast<size_t>(rows.cols()) * format_traits(format).block_bytes;
    const Encoder& encoder = *encoder_of(format);
    std::vector<float> row(static_cast<size_t>(rows.cols()));
    std::vector<std::byte> made;
    for (int64_t first = 0; first < rows.rows(); first += slice) {
      const int64_t count = std::min(slice, rows.rows() - first);
      made.resize(static_cast<size_t>(count) * row_bytes);
      for (int64_t i = 0; i < count; ++i) {
        rows.read(first + i, row.data());
        if (const auto bad = find_unencodable(encoder, row)) {
          return beyond_format(target, format, first + i, *bad);
        }
        encoder.encode(row.data(), nullptr, made.data() + static_cast<size_t>(i) * row_bytes,
                       row.size());
      }
      HEADRACE_TRY(put(made));
      HEADRACE_TRY(report(static_cast<uint64_t>(count * rows.cols())));
    }
    from_.release(*target.source);
    return {};
  }

  Result<void> report(uint64_t numbers) {
    done_ += numbers;
    const double share =
        static_cast<double>(done_) / std::max(1.0, static_cast<double>(summary_.num_parameters));
    const auto bytes =
        static_cast<uint64_t>(std::min(1.0, share) * static_cast<double>(summary_.source_bytes));
    if (!options_.progress || options_.progress(bytes, summary_.source_bytes)) return {};
    return Error{ErrorCode::cancelled, "interrupted; nothing was written", "", ""};
  }

  const Checkpoint& from_;
  const ConvertOptions& options_;
  Format main_;
  HfDirectoryPlan plan_;
  std::vector<int32_t> queries_;
  std::vector<int32_t> keys_;
  ConvertSummary summary_;
  uint64_t done_ = 0;
};

}  // namespace

bool is_hf_target(const std::string& out) {
  return !out.ends_with(".gguf");
}

Result<ConvertSummary> convert_to_hf(const Checkpoint& from, const std::string& out,
                                     const ConvertOptions& options) {
  std::string target = out;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  // What a link leads to is replaced, not the link.
  std::error_code error;
  if (fs::is_directory(target, error)) {
    const fs::path real = fs::canonical(target, error);
    if (!error) target = real.string();
  }
  HEADRACE_TRY(check_hf_target(from, target, options));
  try {
    return HfDirectoryWriter(from, options).write(target);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "out of memory while converting", from.path(),
                 "close other programs"};
  }
}

}  // namespace headrace
