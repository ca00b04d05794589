// Any text as a hub's list of files, as the store's note of a model and as what a user names: what
// is accepted stays inside of its folder, and is read the same again.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "store/file_names.h"
#include "store/gguf_names.h"
#include "store/hub_api.h"
#include "store/model_record.h"
#include "store/model_source.h"
#include "store/select_files.h"

namespace {

using namespace headrace;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_path(std::string_view path) {
  const auto normal = (std::filesystem::path("/cache") / path).lexically_normal().string();
  require(normal.starts_with("/cache/"));
  (void)quantization_of(path);
  (void)split_name_of(path);
}

void try_listing(std::string_view text) {
  const auto listing = parse_listing(text);
  if (!listing.ok()) return;
  require(is_commit(listing->commit));
  for (const RepoFile& file : listing->files) check_path(file.path);
  for (const char* selector : {"", "q4_k_m", "model.gguf"}) {
    const auto chosen = select_files(listing->files, selector);
    if (!chosen.ok()) continue;
    require(!chosen->files.empty());
    for (const size_t index : chosen->files) require(index < listing->files.size());
  }
}

void try_record(std::string_view text) {
  const auto record = parse_record(text);
  if (!record.ok()) return;
  const auto again = parse_record(format_record(*record));
  require(again.ok() && again->files.size() == record->files.size());
}

void try_source(std::string_view text) {
  const auto source = parse_model_source(text);
  if (!source.ok()) return;
  if (source->kind == SourceKind::url) return;  // what is behind its question mark is left out
  const auto again = parse_model_source(source->to_string());
  require(again.ok() && again->to_string() == source->to_string());
  if (source->kind == SourceKind::hub) check_path(source->repo);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_listing(text);
  try_record(text);
  try_source(text);
  if (check_file_name(text).ok()) check_path(text);
  return 0;
}
