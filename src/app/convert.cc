// See convert.h.
#include "app/convert.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "app/model_files.h"
#include "base/os/system_limits.h"
#include "base/thread_pool.h"
#include "checkpoint/gguf_writer.h"
#include "model/loader.h"
#include "model/registry.h"
#include "text/gguf_vocabulary_writer.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

/// Bytes of a tensor that are read, encoded and written at a time.
constexpr uint64_t kSliceOfSource = uint64_t{4} << 20;
/// Rows that a thread takes at a time.
constexpr int64_t kRowsOfTask = 8;

Result<void> check_target(const Checkpoint& from, const std::string& out, bool overwrite) {
  std::error_code ignored;
  if (!fs::exists(out, ignored)) return {};
  if (fs::equivalent(from.path(), out, ignored)) {
    return Error{ErrorCode::invalid_argument, "this is the file to be converted", out,
                 "give the result another name"};
  }
  if (!fs::is_regular_file(out, ignored)) {
    return Error{ErrorCode::invalid_argument, "there is something that is no file", out,
                 "give the result another name"};
  }
  if (overwrite) return {};
  return Error{ErrorCode::invalid_argument, "there is a file of this name already", out,
               "give the result another name, or --force"};
}

Metadata metadata_of(const Checkpoint& from, const Quantization* to) {
  Metadata out;
  for (const auto& [key, value] : from.metadata().values()) {
    if (!key.starts_with("split.")) out.set(key, value);
  }
  if (to == nullptr) return out;
  out.set("general.file_type", uint64_t{to->file_type});
  // Of the block layouts; the only one that is in use.
  constexpr uint64_t kQuantizationVersion = 2;
  out.set("general.quantization_version", kQuantizationVersion);
  return out;
}

/// The special ids that a directory names, which also serve where it has no tokenizer.
void put_special_ids(const Checkpoint& from, Metadata& metadata) {
  const auto ids = special_ids_of_directory(from.path());
  if (!ids.ok()) return;
  const auto put = [&](const char* key, TokenId id) {
    if (id >= 0) metadata.set(key, static_cast<uint64_t>(id));
  };
  put("tokenizer.ggml.bos_token_id", ids->bos);
  put("tokenizer.ggml.eos_token_id", ids->eos);
  const std::vector<int64_t> ends(ids->end_of_generation.begin(), ids->end_of_generation.end());
  if (ends.size() > 1) metadata.set("tokenizer.ggml.eog_token_ids", ends);
}

/// The tokenizer and the chat template of a directory, in GGUF's keys; "none" where these have no
/// words for the tokenizer.
struct WrittenTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::deque<std::string> texts;

  void put(const Checkpoint& from, Metadata& metadata, std::vector<std::string>& warnings) {
    auto chat_template = chat_template_of(from);
    if (!chat_template.ok()) {
      warnings.push_back("no chat template was written: " + chat_template.error().to_string());
    } else if (*chat_template) {
      texts.push_back(std::move(**chat_template));
      metadata.set("tokenizer.chat_template", std::string_view(texts.back()));
    }
    put_special_ids(from, metadata);
    auto opened = tokenizer_of(from, TokenizerOptions{});
    if (!opened.ok()) {
      metadata.set("tokenizer.ggml.model", std::string_view("none"));
      warnings.push_back("no tokenizer was written: " + opened.error().to_string());
      return;
    }
    tokenizer = std::move(opened).value();
    const auto done = put_gguf_vocabulary(*tokenizer, metadata, texts);
    if (!done.ok()) {
      metadata.set("tokenizer.ggml.model", std::string_view("none"));
      warnings.push_back("no tokenizer was written: " + done.error().to_string());
    } else if (!same_as_written(*tokenizer, metadata)) {
      warnings.push_back(
          "GGUF cannot say all rules of this tokenizer: some texts may be cut otherwise than by "
          "the directory's");
    }
  }
};

/// For each row of a projection in `interleaved` order its row in `halves` order.
std::vector<int32_t> interleaved_rows(const HeadRows& heads) {
  const std::vector<int32_t> halves = deinterleave_rows(heads);
  std::vector<int32_t> order(halves.size());
  for (size_t i = 0; i < halves.size(); ++i) {
    order[static_cast<size_t>(halves[i])] = static_cast<int32_t>(i);
  }
  return order;
}

/// Which rows a GGUF file of the architecture has in another order than the source.
struct RowOrders {
  std::vector<int32_t> queries;
  std::vector<int32_t> keys;

  static Result<RowOrders> of(const Checkpoint& from) {
    RowOrders out;
    if (!from.keeps_rope_halves()) return out;
    HEADRACE_ASSIGN(const RecognizedModel model, recognize(from));
    if (model.architecture->gguf_rope_rows != RopeRows::interleaved) return out;
    const ModelConfig& config = model.config;
    out.queries = interleaved_rows({config.num_heads, config.head_dim, config.rope.dims});
    out.keys = interleaved_rows({config.num_kv_heads, config.head_dim, config.rope.dims});
    return out;
  }

  /// Empty: as they are.
  std::span<const int32_t> find(std::string_view name) const {
    if (name.find(".attn_q.") != std::string_view::npos) return queries;
    if (name.find(".attn_k.") != std::string_view::npos) return keys;
    return {};
  }
};

/// A tensor of the file, and what it is made of: one tensor, or those of a layer's experts.
struct FileTensor {
  GgufTensorPlan plan;
  std::vector<const CheckpointTensor*> parts;
};

/// Of an expert's matrix, "blk.0.ffn_up.7.weight".
struct ExpertName {
  std::string all;  ///< "blk.0.ffn_up_exps.weight"
  size_t number = 0;
};

std::optional<ExpertName> expert_name(std::string_view name) {
  constexpr std::string_view kEnd = ".weight";
  constexpr size_t kMostDigits = 6;
  if (!name.starts_with("blk.") || !name.ends_with(kEnd)) return std::nullopt;
  name.remove_suffix(kEnd.size());
  const size_t dot = name.rfind('.');
  const std::string_view digits = name.substr(dot + 1);
  const std::string_view stem = name.substr(0, dot);
  if (stem.find(".ffn_") == stem.npos || digits.empty() || digits.size() > kMostDigits) {
    return std::nullopt;
  }
  ExpertName out{std::string(stem) + "_exps.weight", 0};
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') return std::nullopt;
    out.number = out.number * 10 + static_cast<size_t>(digit - '0');
  }
  return out;
}

/// Joins the experts of a layer to one tensor, as GGUF files have them, where all are alike.
std::vector<FileTensor> with_stacked_experts(std::vector<FileTensor> tensors) {
  std::map<std::string, std::map<size_t, size_t>> stacks;  // indices of tensors by expert
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto name = expert_name(tensors[i].plan.name);
    if (name) stacks[name->all].emplace(name->number, i);
  }
  std::vector<bool> is_joined(tensors.size(), false);
  for (const auto& [name, experts] : stacks) {
    FileTensor& first = tensors[experts.begin()->second];
    const bool are_all =
        experts.begin()->first == 0 && experts.rbegin()->first + 1 == experts.size();
    const bool are_alike = std::ranges::all_of(experts, [&](const auto& one) {
      const GgufTensorPlan& plan = tensors[one.second].plan;
      return plan.format == first.plan.format && plan.shape == first.plan.shape;
    });
    if (!are_all || !are_alike) continue;
    for (const auto& [number, index] : experts) {
      if (number == 0) continue;
      first.parts.push_back(tensors[index].parts.front());
      is_joined[index] = true;
    }
    first.plan.name = name;
    first.plan.shape.insert(first.plan.shape.begin(), static_cast<int64_t>(experts.size()));
  }
  std::vector<FileTensor> out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!is_joined[i]) out.push_back(std::move(tensors[i]));
  }
  return out;
}

/// The writing of one file.
class Converter {
 public:
  Converter(const Checkpoint& from, const ConvertOptions& options)
      : from_(from),
        options_(options),
        pool_(options.num_threads > 0 ? options.num_threads : usable_processors()) {}

  Result<ConvertSummary> write(const std::string& out) {
    HEADRACE_ASSIGN(orders_, RowOrders::of(from_));
    for (const CheckpointTensor& tensor : from_.tensors()) {
      HEADRACE_ASSIGN(const Format format, format_for(tensor));
      tensors_.push_back({{tensor.name, format, tensor.shape}, {&tensor}});
      summary_.num_changed += format != tensor.format ? 1 : 0;
      summary_.num_parameters += tensor.num_elements();
      summary_.source_bytes += tensor.num_bytes();
      HEADRACE_TRY(report());
    }
    are_planned_ = true;
    if (from_.is_directory()) tensors_ = with_stacked_experts(std::move(tensors_));
    std::vector<GgufTensorPlan> plans;
    for (const FileTensor& tensor : tensors_) plans.push_back(tensor.plan);
    summary_.num_tensors = static_cast<int64_t>(plans.size());
    Metadata metadata = metadata_of(from_, options_.to);
    WrittenTokenizer tokenizer;
    if (from_.is_directory()) tokenizer.put(from_, metadata, summary_.warnings);
    HEADRACE_ASSIGN(summary_.file_bytes, gguf_file_bytes(metadata, plans));
    const auto data = [&](size_t index, GgufPut put) -> Result<void> {
      for (const CheckpointTensor* part : tensors_[index].parts) {
        HEADRACE_TRY(write_tensor(*part, tensors_[index].plan.format, put));
      }
      // Before the last one has come the file has no name yet.
      return index + 1 == tensors_.size() ? from_.check_unchanged() : Result<void>();
    };
    HEADRACE_TRY(write_gguf(out, metadata, plans, data));
    return std::move(summary_);
  }

 private:
  Result<void> report() {
    const uint64_t total = are_planned_ ? summary_.source_bytes : 0;
    if (!options_.progress || options_.progress(done_bytes_, total)) return {};
    return Error{ErrorCode::cancelled, "interrupted; nothing was written", "", ""};
  }

  /// The tensor with its bytes.
  Result<CheckpointTensor> with_data(const CheckpointTensor& tensor) const {
    CheckpointTensor out = tensor;
    HEADRACE_ASSIGN(out.data, from_.read(tensor));
    return out;
  }

  Result<Format> format_for(const CheckpointTensor& tensor) const {
    if (options_.to == nullptr) return tensor.format;
    // Only who may become F16 has to be looked at.
    const Format planned = planned_format(*options_.to, tensor);
    if (planned != Format::f16 || tensor.format == Format::f16) return planned;
    HEADRACE_ASSIGN(const CheckpointTensor source, with_data(tensor));
    const Format chosen = chosen_format(*options_.to, source);
    from_.release(tensor);
    return chosen;
  }

  Result<void> write_tensor(const CheckpointTensor& tensor, Format format, GgufPut put) {
    HEADRACE_ASSIGN(const CheckpointTensor source, with_data(tensor));
    const auto order = orders_.find(tensor.name);
    // Where rows are put in order, a vector is a column.
    const int64_t rows = !order.empty() ? static_cast<int64_t>(order.size())
                                        : tensor.num_elements() / tensor.shape.back();
    if (tensor.num_elements() % rows != 0) {
      return Error{ErrorCode::corrupt_data,
                   "expected " + std::to_string(rows) + " rows, as the heads have",
                   "tensor '" + tensor.name + "'", ""};
    }
    const uint64_t source_row = source.data.size() / static_cast<uint64_t>(rows);
    const bool is_whole = order.empty() && !tensor.is_made;
    const auto slice = static_cast<int64_t>(std::max<uint64_t>(1, kSliceOfSource / source_row));
    for (int64_t first = 0; first < rows; first += slice) {
      const int64_t count = std::min(slice, rows - first);
      const auto part = source.data.subspan(static_cast<uint64_t>(first) * source_row,
                                            static_cast<uint64_t>(count) * source_row);
      if (format == tensor.format && order.empty()) {
        HEADRACE_TRY(put(part));
      } else {
        HEADRACE_TRY(make_rows(source, format, order, first, count, source_row));
        HEADRACE_TRY(put(made_));
      }
      if (is_whole) {
        // What was read of a tensor is not read again.
        CheckpointTensor done = tensor;
        done.data = part;
        from_.release(done);
      }
      done_bytes_ += part.size();
      HEADRACE_TRY(report());
    }
    from_.release(tensor);
    return {};
  }

  /// Rows [first, first + count) of the file, in `made_`.
  Result<void> make_rows(const CheckpointTensor& source, Format format,
                         std::span<const int32_t> order, int64_t first, int64_t count,
                         uint64_t source_row) {
    const auto row_of = [&](int64_t row) {
      return order.empty() ? first + row : order[static_cast<size_t>(first + row)];
    };
    if (format == source.format) {
      made_.resize(static_cast<uint64_t>(count) * source_row);
      for (int64_t row = 0; row < count; ++row) {
        std::memcpy(made_.data() + static_cast<uint64_t>(row) * source_row,
                    source.data.data() + static_cast<uint64_t>(row_of(row)) * source_row,
                    source_row);
      }
      return {};
    }
    const uint64_t row_bytes =
        *format_row_bytes(format, static_cast<uint64_t>(source.shape.back()));
    made_.resize(static_cast<uint64_t>(count) * row_bytes);
    std::mutex mutex;
    std::optional<Error> fault;
    int64_t fault_row = count;
    pool_.parallel_for((count + kRowsOfTask - 1) / kRowsOfTask, [&](int64_t task, int) {
      const int64_t end = std::min(count, (task + 1) * kRowsOfTask);
      for (int64_t row = task * kRowsOfTask; row < end; ++row) {
        auto encoded = encode_row(source, format, row_of(row),
                                  made_.data() + static_cast<uint64_t>(row) * row_bytes);
        if (encoded.ok()) continue;
        const std::lock_guard lock(mutex);
        if (row < fault_row) fault = std::move(encoded).error();
        fault_row = std::min(fault_row, row);
        return;
      }
    });
    if (fault) return std::move(*fault).at(from_.path());
    return {};
  }

  const Checkpoint& from_;
  const ConvertOptions& options_;
  ThreadPool pool_;
  std::vector<FileTensor> tensors_;
  bool are_planned_ = false;
  std::vector<std::byte> made_;
  RowOrders orders_;
  ConvertSummary summary_;
  uint64_t done_bytes_ = 0;
};

}  // namespace

Result<ConvertSummary> convert_model(const Checkpoint& from, const std::string& out,
                                     const ConvertOptions& options) {
  HEADRACE_TRY(check_target(from, out, options.overwrite));
  if (options.to != nullptr) HEADRACE_TRY(check_quantizable(from));
  try {
    return Converter(from, options).write(out);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "out of memory while converting", from.path(),
                 "close other programs"};
  } catch (const std::system_error& fault) {
    return Error{ErrorCode::resource_exhausted,
                 std::string("the system refused what converting needs: ") + fault.what(),
                 from.path(), "ask for fewer threads with -t"};
  }
}

}  // namespace headrace
