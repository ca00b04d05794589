// See safetensors_header.h.
#include "checkpoint/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "checkpoint/quote_name.h"

namespace headrace {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
// What a record costs at most: itself, the longest shape, its copy as a tensor.
constexpr uint64_t kRecordBytes =
    sizeof(SafetensorsRecord) + sizeof(StoredTensor) + 2 * kSafetensorsMaxDims * sizeof(int64_t);

std::optional<StoredType> stored_type_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(StoredType::boolean); ++i) {
    const auto type = static_cast<StoredType>(i);
    if (stored_type_name(type) == name) return type;
  }
  return std::nullopt;
}

/// Takes the events of a JSON parser. Anything but the described form ends the reading at once, so
/// that nothing deep or large is ever built.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(HeapBudget& budget) : budget_(budget) {}

  std::optional<Error>& error() { return error_; }
  std::vector<SafetensorsRecord> take_records() { return std::move(records_); }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return fail("expected no number below 0, found " + std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return fail("expected an integer, found " + text.substr(0, 40));
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) return add_dim(value);
    if (place_ == Place::offsets) return add_offset(value);
    return unexpected("a number");
  }

  bool string(string_t& text) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::record || key_ != "dtype") return unexpected("a string");
    const auto type = stored_type_named(text);
    if (!type) {
      return fail("has dtype " + quote_name(text) + ", which this build does not know",
                  ErrorCode::unsupported);
    }
    records_.back().type = *type;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::begin:
        place_ = Place::top;
        return true;
      case Place::top:
        place_ = key_ == kMetadata ? Place::metadata : Place::record;
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::top) {
      place_ = Place::end;
      return true;
    }
    const bool was_record = place_ == Place::record;
    place_ = Place::top;
    if (!was_record) return true;
    if (!has_type_ || !has_shape_ || num_offsets_ != 2) {
      return fail("expected dtype, shape and two data_offsets");
    }
    return true;
  }

  bool key(string_t& text) override {
    if (place_ == Place::top) return begin_record(text);
    key_ = text.substr(0, 40);
    if (place_ != Place::record) return true;
    const auto once = [&](bool& seen) {
      if (seen) return fail("names " + quote_name(key_) + " twice");
      seen = true;
      return true;
    };
    if (key_ == "dtype") return once(has_type_);
    if (key_ == "shape") return once(has_shape_);
    if (key_ == "data_offsets") return once(has_offsets_);
    return fail("has the unknown field " + quote_name(key_));
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::record && key_ == "shape") {
      place_ = Place::shape;
      return true;
    }
    if (place_ == Place::record && key_ == "data_offsets") {
      place_ = Place::offsets;
      return true;
    }
    return unexpected("an array");
  }

  bool end_array() override {
    if (place_ == Place::offsets && num_offsets_ != 2) {
      return fail("expected two data_offsets, found " + std::to_string(num_offsets_));
    }
    place_ = Place::record;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    if (!error_) {
      error_ = Error{ErrorCode::corrupt_data, "the header is not valid JSON",
                     "byte " + std::to_string(position + sizeof(uint64_t)), ""};
    }
    return false;
  }

 private:
  enum class Place : uint8_t { begin, top, metadata, record, shape, offsets, end };

  bool begin_record(const std::string& name) {
    key_ = name.substr(0, kSafetensorsLongestName);
    if (name == kMetadata) return true;
    if (name.empty() || name.size() > kSafetensorsLongestName) {
      return fail("has a name of " + std::to_string(name.size()) + " bytes; expected 1 to " +
                  std::to_string(kSafetensorsLongestName));
    }
    if (auto booked = budget_.take(1, kRecordBytes + 2 * name.size()); !booked.ok()) {
      error_ = std::move(booked).error();
      return false;
    }
    records_.emplace_back().name = name;
    has_type_ = has_shape_ = has_offsets_ = false;
    num_offsets_ = 0;
    return true;
  }

  bool add_dim(uint64_t value) {
    std::vector<int64_t>& shape = records_.back().shape;
    if (shape.size() == kSafetensorsMaxDims) {
      return fail("has more than " + std::to_string(kSafetensorsMaxDims) + " dimensions");
    }
    if (value > static_cast<uint64_t>(INT64_MAX)) {
      return fail("has a dimension of " + std::to_string(value));
    }
    shape.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool add_offset(uint64_t value) {
    if (num_offsets_ < 2) records_.back().offsets[num_offsets_] = value;
    ++num_offsets_;
    return num_offsets_ <= 2 || fail("expected two data_offsets, found more");
  }

  bool unexpected(std::string_view what) {
    if (place_ == Place::begin) return fail("expected a JSON object, found " + std::string(what));
    return fail("expected dtype, shape and data_offsets, found " + std::string(what) + " at " +
                quote_name(key_));
  }

  bool fail(std::string message, ErrorCode code = ErrorCode::corrupt_data) {
    if (error_) return false;
    const bool in_tensor = !records_.empty() && place_ != Place::begin;
    error_ = Error{code, std::move(message),
                   in_tensor ? "tensor " + quote_name(records_.back().name) : "the header", ""};
    return false;
  }

  HeapBudget& budget_;
  std::vector<SafetensorsRecord> records_;
  std::optional<Error> error_;
  Place place_ = Place::begin;
  std::string key_;
  bool has_type_ = false, has_shape_ = false, has_offsets_ = false;
  size_t num_offsets_ = 0;
};

}  // namespace

Result<std::vector<SafetensorsRecord>> read_safetensors_header(std::string_view json,
                                                               HeapBudget& budget) {
  HeaderReader reader(budget);
  const bool good = nlohmann::json::sax_parse(json, &reader);
  if (reader.error()) return *std::move(reader.error());
  if (!good) return Error{ErrorCode::corrupt_data, "the header is not valid JSON", "byte 8", ""};
  return reader.take_records();
}

}  // namespace headrace
