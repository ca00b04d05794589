// For tests: safetensors files of any content.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace headrace::test {

/// A header's length, the header, the data.
inline std::string safetensors_file(const std::string& header, const std::string& data) {
  std::string file(sizeof(uint64_t), '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + data;
}

/// Collects tensors one after the other.
class SafetensorsBuilder {
 public:
  SafetensorsBuilder& add(const std::string& name, const std::string& dtype,
                          const std::vector<int64_t>& shape, const std::string& data) {
    std::string dims;
    for (const int64_t dim : shape) dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    header_ += (header_.empty() ? "" : ",") + ('"' + name + R"(":{"dtype":")") + dtype +
               R"(","shape":[)" + dims + R"(],"data_offsets":[)" + std::to_string(data_.size()) +
               "," + std::to_string(data_.size() + data.size()) + "]}";
    data_ += data;
    return *this;
  }
  SafetensorsBuilder& add_f32(const std::string& name, const std::vector<int64_t>& shape,
                              const std::vector<float>& values) {
    std::string data(values.size() * sizeof(float), '\0');
    std::memcpy(data.data(), values.data(), data.size());
    return add(name, "F32", shape, data);
  }
  std::string build() const { return safetensors_file("{" + header_ + "}", data_); }

 private:
  std::string header_, data_;
};

}  // namespace headrace::test
