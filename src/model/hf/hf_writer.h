// config.json written from a model in GGUF's terms: the other way of hf_model.h. Owns the text that
// is made. Must not know a particular model.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/config.h"

namespace headrace {

/// Keys of objects are written "object.key". What an architecture cannot say it leaves out: whether
/// the same model comes of the text is told by reading it (hf_plan.h).
class HfWriter {
 public:
  /// Both must outlive it.
  HfWriter(const ModelConfig& config, const Checkpoint& checkpoint);
  ~HfWriter();

  const ModelConfig& config() const { return config_; }
  bool has_tensor(std::string_view name) const;
  /// A vector of the checkpoint, F32; empty where there is none.
  std::vector<float> floats(std::string_view name) const;

  void set_int(std::string_view key, int64_t value);
  /// Written as the shortest text that gives the same number of 32 bits.
  void set_float(std::string_view key, double value);
  void set_floats(std::string_view key, std::span<const float> values);
  void set_ints(std::string_view key, std::span<const int64_t> values);
  void set_bool(std::string_view key, bool value);
  void set_text(std::string_view key, std::string_view value);
  void set_texts(std::string_view key, std::span<const std::string> values);
  void set_null(std::string_view key);

  /// The JSON text so far, indented.
  std::string text() const;

 private:
  nlohmann::ordered_json& at(std::string_view key);

  const ModelConfig& config_;
  const Checkpoint& checkpoint_;
  std::unique_ptr<nlohmann::ordered_json> json_;
};

/// What decoders built like Llama share (read_hf_decoder), and `model_type`. Not: windows, rotary
/// embedding, experts.
void write_hf_decoder(HfWriter& out, std::string_view model_type);

/// `rope_theta`, and `rope_scaling` where there is any (read_hf_rope). Llama 3's scaling, which
/// GGUF holds as divisors, is said by its parameters.
void write_hf_rope(HfWriter& out);

/// `sliding_window`, null where there is none.
void write_hf_window(HfWriter& out);
/// The same with `layer_types`.
void write_hf_layer_types(HfWriter& out);

/// The keys that read_hf_moe reads; `count` is the number of experts' name.
void write_hf_moe(HfWriter& out, std::string_view count);

/// The text of generation_config.json: ends of generation and `general.sampling.*`, the other way
/// of add_hf_sampling and of special_ids_of_directory (text/tokenizer.h).
std::string hf_generation_config(const Metadata& metadata);

}  // namespace headrace
