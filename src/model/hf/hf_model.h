// A Hugging Face model on its way to GGUF's terms: an architecture says which of its keys and
// tensors are which of GGUF's. Owns what is made on the way. Must not know a particular model.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/metadata.h"
#include "model/hf/hf_config.h"

namespace headrace {

/// How a tensor differs from GGUF's.
enum class HfChange : uint8_t {
  none,
  add_one,    ///< 1 is added: norms that are stored as the difference from it
  transpose,  ///< [in, out] becomes [out, in]
  stack,      ///< vectors, one a head, become the rows of a matrix: the last number is the row
  skip,       ///< nothing reads it
  /// All experts' [experts, out, in], or [experts, in, out], whichever the model's width says: of
  /// gates above up projections, which become two tensors, `gguf` being the latter's name.
  gate_and_up,
  expert_down,  ///< the same of down projections
};

/// A rule of names. '#' stands for a number; those of `gguf` are those of `hf`, in order. Both are
/// without ".weight" or ".bias", unless `hf` names a tensor that ends otherwise.
struct HfName {
  std::string_view hf;
  std::string_view gguf;
  HfChange change = HfChange::none;
};

/// A tensor that the config holds in another form.
struct HfExtraTensor {
  std::string name;  ///< GGUF's
  std::vector<float> values;
};

class HfModel {
 public:
  /// `architecture`: GGUF's name, the prefix of its keys.
  HfModel(HfConfig config, std::string_view architecture);

  const HfConfig& config() const { return config_; }

  // Keys, under GGUF's names without "<architecture>.".
  void set_int(std::string_view name, int64_t value, std::string_view hf_key = "");
  void set_float(std::string_view name, double value, std::string_view hf_key = "");
  void set_bool(std::string_view name, bool value, std::string_view hf_key = "");
  void set_text(std::string_view name, std::string value, std::string_view hf_key = "");
  void set_ints(std::string_view name, std::vector<int64_t> values, std::string_view hf_key = "");
  /// Copies a key; an absent one is a fault.
  void copy_int(std::string_view name, std::string_view hf_key);
  void copy_float(std::string_view name, std::string_view hf_key);
  /// Copies a key, or `missing` where it is absent.
  void copy_int(std::string_view name, std::string_view hf_key, int64_t missing);
  void copy_float(std::string_view name, std::string_view hf_key, double missing);

  /// A fault unless the key is absent or one of these: variants that are not built in.
  void expect_text(std::string_view hf_key, std::span<const std::string_view> values);
  void expect_bool(std::string_view hf_key, bool value);

  /// Rules that were added later are asked first.
  void add_names(std::span<const HfName> names);
  void add_tensor(std::string name, std::vector<float> values);

  std::span<const HfName> names() const { return names_; }
  std::vector<HfExtraTensor>& extra_tensors() { return extra_; }
  /// Sets all keys; texts are put into `texts`, which must outlive the metadata.
  void write_keys(Metadata& metadata, std::deque<std::string>& texts) const;

 private:
  struct Key {
    std::string name;    ///< whole
    std::string origin;  ///< where it comes from, for messages
    MetaValue value;     ///< texts are in `text` instead
    std::string text;
    bool is_text = false;
  };

  void set(std::string_view name, MetaValue value, std::string_view hf_key);
  void missing(std::string_view hf_key);

  HfConfig config_;
  std::string prefix_;
  std::vector<Key> keys_;
  std::vector<HfName> names_;
  std::vector<HfExtraTensor> extra_;
};

/// What decoders share: sizes, heads, the norms' epsilon, and the names of embedding, norms,
/// projections, gated feed-forward and experts' tensors in the models of transformers that are
/// built like Llama. Not: windows, activation, rotary embedding.
void read_hf_decoder(HfModel& model);

/// Which layers have a window of `window` keys: those that `layer_types` calls "sliding_attention",
/// or, where the config has none, those that `is_window` says. `window` 0: none.
void set_hf_windows(HfModel& model, int64_t window, bool (*is_window)(const HfConfig&, int64_t));

/// Norms stored as the difference from 1 (Gemma), by the names of GGUF's.
void add_one_to_norms(HfModel& model);

/// The size of a head: `head_dim`, or the width over the heads; 0 where keys are missing.
int64_t hf_head_dim(const HfConfig& config);

/// Faults unless the activation is SiLU.
void expect_silu(HfModel& model);

}  // namespace headrace
