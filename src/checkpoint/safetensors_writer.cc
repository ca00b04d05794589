// See safetensors_writer.h. The format: safetensors_file.h.
#include "checkpoint/safetensors_writer.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/os/atomic_file.h"
#include "checkpoint/safetensors_file.h"

namespace headrace {
namespace {

StoredType stored_as(Format format) {
  switch (format) {
    case Format::f16:
      return StoredType::f16;
    case Format::bf16:
      return StoredType::bf16;
    default:
      HEADRACE_CHECK(format == Format::f32);
      return StoredType::f32;
  }
}

/// The header with its length before it.
std::string header_of(std::span<const SafetensorsPlan> tensors) {
  nlohmann::json header;
  header["__metadata__"] = {{"format", "pt"}};
  uint64_t at = 0;
  for (const SafetensorsPlan& plan : tensors) {
    const uint64_t end = at + safetensors_bytes(plan);
    header[plan.name] = {{"dtype", std::string(stored_type_name(stored_as(plan.format)))},
                         {"shape", plan.shape},
                         {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string out(sizeof(length), '\0');
  std::memcpy(out.data(), &length, sizeof(length));
  return out + text;
}

}  // namespace

uint64_t safetensors_bytes(const SafetensorsPlan& plan) {
  uint64_t bytes = format_traits(plan.format).block_bytes;
  for (const int64_t extent : plan.shape) bytes *= static_cast<uint64_t>(extent);
  return bytes;
}

Result<uint64_t> write_safetensors(const std::string& path,
                                   std::span<const SafetensorsPlan> tensors, SafetensorsData data) {
  HEADRACE_ASSIGN(AtomicFile file, AtomicFile::create(path + ".part"));
  const std::string header = header_of(tensors);
  HEADRACE_TRY(file.write(std::as_bytes(std::span(header))));
  uint64_t size = header.size();
  for (size_t i = 0; i < tensors.size(); ++i) {
    uint64_t written = 0;
    const auto put = [&](std::span<const std::byte> bytes) -> Result<void> {
      written += bytes.size();
      return file.write(bytes);
    };
    HEADRACE_TRY(data(i, put));
    HEADRACE_CHECK_EQ(written, safetensors_bytes(tensors[i]));
    size += written;
  }
  HEADRACE_TRY(file.commit(path));
  return size;
}

std::string safetensors_index(std::span<const SafetensorsPlan> tensors,
                              std::span<const std::string> files) {
  uint64_t total = 0;
  nlohmann::json map = nlohmann::json::object();
  for (size_t i = 0; i < tensors.size(); ++i) {
    map[tensors[i].name] = files[i];
    total += safetensors_bytes(tensors[i]);
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  return index.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace headrace
