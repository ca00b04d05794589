// The two halves of opening a model: what is known before its weights are read, and the rest. In
// between, who opens several divides the memory. Must not know JSON or sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "app/memory_plan.h"
#include "app/open_model.h"
#include "headrace/result.h"
#include "model/config.h"

namespace headrace {

/// A model whose file has been looked at.
struct ModelOpening {
  std::unique_ptr<OpenedModel> opened;  ///< without backend and model
  ModelConfig config;
  std::vector<Adapter> adapters;
  int num_threads = 1;
  MemoryNeeds needs;  ///< the weights' by what is in the file
};

/// Errors: those of open_model that need no weights.
Result<ModelOpening> begin_opening(const std::string& path, const OpenOptions& options);

/// Reads the weights. The model may take budget_bytes(limit_bytes). Errors: the others of
/// open_model.
Result<std::unique_ptr<OpenedModel>> finish_opening(ModelOpening opening, uint64_t limit_bytes);

/// Bytes that models may take, a tenth less: what the options or the system say.
uint64_t memory_to_use(const OpenOptions& options);

/// The threads to compute with where so many are wanted (0: as many as is best), and a warning
/// where these are fewer.
int threads_to_use(int num_wanted, std::vector<std::string>& warnings);

/// The error names the file, once.
Error in_file(Error error, const std::string& path);

/// Whether the error names the file of an adapter.
bool is_of_adapter(const Error& error, const OpenOptions& options);

/// The instruction set and KV type that the options ask for.
Result<Isa> isa_of(const OpenOptions& options);
/// What --quantize names; null: nothing.
Result<const Quantization*> quantization_of(const OpenOptions& options);
Result<KvType> kv_type_of(const OpenOptions& options, Isa isa);

/// What `open` returns, an error with the path of its file: the model's, or an adapter's.
template <class Open>
auto opening_errors(const std::string& path, const OpenOptions& options, Open open)
    -> decltype(open()) {
  try {
    auto opened = open();
    // A wrong option is the caller's, whatever the file.
    if (!opened.ok() && opened.error().code != ErrorCode::invalid_argument &&
        !is_of_adapter(opened.error(), options)) {
      return in_file(std::move(opened).error(), path);
    }
    return opened;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::resource_exhausted, "out of memory while loading the model", path,
                 "close other programs or use a smaller model"};
  }
}

}  // namespace headrace
