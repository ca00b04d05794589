// Opens a model file by its first bytes, and says what else a file is if it is none.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/os/mapped_file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_checkpoint.h"
#include "checkpoint/gguf_file.h"

namespace headrace {
namespace {

struct Lookalike {
  std::string_view begin;
  std::string_view what;
  std::string_view hint;
};

// Sources: the formats' own specifications; the three GGML magics are little-endian numbers.
constexpr Lookalike kLookalikes[] = {
    {"version https://git-lfs", "a Git LFS pointer, not the model itself", "run: git lfs pull"},
    {"<!DOCTYPE", "an HTML page", "the download went wrong: fetch the file again"},
    {"<html", "an HTML page", "the download went wrong: fetch the file again"},
    {"PK\x03\x04", "a zip archive, perhaps a PyTorch checkpoint", "convert the model to GGUF"},
    {"\x1f\x8b", "a gzip archive", "unpack it first"},
    {"lmgg", "a GGML file from before GGUF", "convert the model to GGUF"},
    {"fmgg", "a GGML file from before GGUF", "convert the model to GGUF"},
    {"tjgg", "a GGML file from before GGUF", "convert the model to GGUF"},
};

/// A safetensors file begins with its header's 64-bit length, then the header, a JSON object.
bool is_safetensors(std::string_view begin) {
  return begin.size() > 9 && begin[8] == '{' && begin[7] == 0 && begin[6] == 0 && begin[5] == 0;
}

bool is_text(std::string_view begin) {
  return std::none_of(begin.begin(), begin.end(), [](unsigned char byte) {
    return byte == 0x7f || (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r');
  });
}

Error not_a_model(const std::string& path, std::string_view begin) {
  Error error{ErrorCode::corrupt_data, "expected a GGUF file, found ", path,
              "give the path of a .gguf file"};
  for (const Lookalike& entry : kLookalikes) {
    if (!begin.starts_with(entry.begin)) continue;
    error.message += entry.what;
    error.hint = entry.hint;
    return error;
  }
  if (is_safetensors(begin)) {
    error.code = ErrorCode::unsupported;
    error.message += "a safetensors file";
    error.hint = "convert the model to GGUF";
  } else {
    error.message +=
        is_text(begin) ? "a text file" : "a file of another kind (no 'GGUF' at byte 0)";
  }
  return error;
}

Error add_hint(Error error) {
  if (error.code == ErrorCode::not_found) {
    error.hint = "check the path; `headrace list` shows the models in the store";
  } else if (error.code == ErrorCode::corrupt_data) {  // an empty file
    error.hint = "fetch the file again";
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_checkpoint(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{ErrorCode::io_error, "expected a GGUF file, found a directory", path,
                 "give the path of the .gguf file inside it"};
  }
  auto mapped = MappedFile::open(path);
  if (!mapped.ok()) return add_hint(std::move(mapped).error());
  MappedFile file = std::move(mapped).value();
  if (is_gguf(file.bytes())) return open_gguf(std::move(file));
  constexpr size_t kLooked = 512;
  const std::string_view begin(reinterpret_cast<const char*>(file.bytes().data()),
                               std::min(file.bytes().size(), kLooked));
  return not_a_model(path, begin);
}

}  // namespace headrace
