// Typed reading of a Hugging Face config.json. The first fault is kept and later reads return their
// default, so that a config reads as a plain list. Must not know models or tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/result.h"

namespace headrace {

class HfConfig {
 public:
  /// `file` names it in errors. Errors: corrupt_data (no JSON object; nested more than 64 deep).
  static Result<HfConfig> parse(std::string_view json, std::string file);

  /// Present, and not null.
  bool has(std::string_view key) const;
  /// Present, if only as null.
  bool names(std::string_view key) const;
  bool is_object(std::string_view key) const;
  bool is_text(std::string_view key) const;
  /// The object of that name, or an empty one. Errors of its keys are kept by this config.
  HfConfig object(std::string_view key) const;
  /// The names of this object's members, in order.
  std::vector<std::string> keys() const;
  /// This config over `other`: keys that this one lacks are read there.
  HfConfig over(const HfConfig& other) const;

  // Nothing where the key is absent or null. Faults: another type, or a number beyond 63 bits.
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;  ///< booleans as 0 and 1
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;

  /// "config.json: rope_parameters.factor".
  std::string place(std::string_view key) const;
  void fail(std::string_view key, std::string message,
            ErrorCode code = ErrorCode::corrupt_data) const;
  const std::optional<Error>& error() const;

 private:
  HfConfig() = default;
  std::shared_ptr<const nlohmann::json> find(std::string_view key) const;

  std::shared_ptr<const nlohmann::json> json_, fallback_;
  std::shared_ptr<std::optional<Error>> error_;
  std::string prefix_;  ///< "config.json: rope_parameters."
};

}  // namespace headrace
