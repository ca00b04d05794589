// A reader of the F32 safetensors files of the reference data. Layout: 8 bytes, the header's
// length; the header, JSON of {name: {dtype, shape, data_offsets}}; the data.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace headrace::golden {

struct NamedTensor {
  std::vector<int64_t> shape;  ///< outermost dimension first
  std::vector<float> values;
};

/// All tensors of a file, by name. Throws std::runtime_error where the file is not of this form.
inline std::map<std::string, NamedTensor> read_safetensors(const std::filesystem::path& path) {
  const auto check = [&](bool good, const std::string& what) {
    if (!good) throw std::runtime_error(path.string() + ": " + what);
  };
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  uint64_t header_bytes = 0;
  check(bytes.size() >= sizeof header_bytes, "too short");
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  check(header_bytes <= bytes.size() - sizeof header_bytes, "the header is cut");
  const size_t data_begin = sizeof header_bytes + header_bytes;

  std::map<std::string, NamedTensor> tensors;
  const auto header = nlohmann::json::parse(bytes.substr(sizeof header_bytes, header_bytes));
  for (const auto& [name, record] : header.items()) {
    if (name == "__metadata__") continue;
    check(record.at("dtype") == "F32", name + " is not F32");
    NamedTensor tensor;
    record.at("shape").get_to(tensor.shape);
    size_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= static_cast<size_t>(size);
    const auto begin = record.at("data_offsets").at(0).get<size_t>();
    const auto end = record.at("data_offsets").at(1).get<size_t>();
    check(begin <= end && end <= bytes.size() - data_begin, name + " lies outside the data");
    check(end - begin == elements * sizeof(float), name + " has another size than its shape");
    tensor.values.resize(elements);
    std::memcpy(tensor.values.data(), bytes.data() + data_begin + begin, end - begin);
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

}  // namespace headrace::golden
