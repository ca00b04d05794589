// See config.h.
#include "model/config.h"

#include <cmath>

namespace headrace {
namespace {

// Far above any model, far below what would overflow a product of two of them.
constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxHeadFeatures = int64_t{1} << 20;
constexpr int64_t kMaxLayers = 4096;
// Positions are int32.
constexpr int64_t kMaxContext = (int64_t{1} << 31) - 1;

std::string number(double value) {
  std::string text = std::to_string(value);
  while (text.size() > 1 && text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

/// For keys that change the model's numbers in a way that is not built in.
void refuse_unless_default(ConfigReader& reader, std::string_view name, double default_value) {
  const double value = reader.optional_float(name, -1e30, default_value);
  if (value == default_value) return;
  reader.fail(ErrorCode::unsupported, name,
              "expected " + number(default_value) + ", found " + number(value) +
                  "; other values are not built in");
}

RopeConfig read_rope(ConfigReader& reader, int64_t head_dim, int64_t context_length) {
  RopeConfig rope;
  rope.dims = reader.optional_int("rope.dimension_count", 1, kMaxSize, head_dim);
  if (rope.dims > head_dim || rope.dims % 2 != 0) {
    reader.fail(ErrorCode::corrupt_data, "rope.dimension_count",
                "expected an even number up to the head size " + std::to_string(head_dim) +
                    ", found " + std::to_string(rope.dims));
  }
  rope.base = reader.optional_float("rope.freq_base", 0x1.0p-20, 10000.0);
  // Older files name only the factor of a linear scaling.
  const double legacy = reader.optional_float("rope.scale_linear", 0, 0);
  rope.factor = reader.optional_float("rope.scaling.factor", 0, legacy);
  const std::string type =
      reader.optional_string("rope.scaling.type", rope.factor > 0 ? "linear" : "none");
  if (rope.factor <= 0) rope.factor = 1;  // 0 means "not scaled"
  rope.original_context =
      reader.optional_int("rope.scaling.original_context_length", 0, kMaxContext, 0);
  if (type == "none" || type == "longrope") {
    // Files with longrope have two tensors of divisors, and may not name the type.
    rope.scaling = type == "none" ? RopeConfig::Scaling::none : RopeConfig::Scaling::longrope;
    rope.attention_factor = reader.optional_float("rope.scaling.attn_factor", 0, 1);
    if (rope.original_context == 0) rope.original_context = context_length;
  } else if (type == "linear") {
    rope.scaling = RopeConfig::Scaling::linear;
  } else if (type == "dynamic") {
    rope.scaling = RopeConfig::Scaling::dynamic;
    if (rope.original_context == 0) rope.original_context = context_length;
  } else if (type == "yarn") {
    rope.scaling = RopeConfig::Scaling::yarn;
    rope.beta_fast = reader.optional_float("rope.scaling.yarn_beta_fast", 0x1.0p-10, 32);
    rope.beta_slow = reader.optional_float("rope.scaling.yarn_beta_slow", 0x1.0p-10, 1);
    rope.truncates = reader.optional_bool("rope.scaling.yarn_truncate", true);
    rope.attention_factor = yarn_attention_factor(rope.factor) *
                            reader.optional_float("rope.scaling.attn_factor", 0, 1) *
                            reader.optional_float("rope.scaling.yarn_attn_factor", 0, 1);
    refuse_unless_default(reader, "rope.scaling.yarn_ext_factor", 1);
    refuse_unless_default(reader, "rope.scaling.yarn_log_multiplier", 0);
    if (rope.base <= 1) {
      reader.fail(ErrorCode::corrupt_data, "rope.freq_base",
                  "expected more than 1 with YaRN, found " + number(rope.base));
    }
    if (rope.original_context == 0) rope.original_context = context_length;
  } else {
    reader.fail(ErrorCode::unsupported, "rope.scaling.type",
                "expected none, linear, dynamic, yarn or longrope, found '" + type + "'");
  }
  return rope;
}

}  // namespace

template <class T>
std::optional<T> ConfigReader::take(Result<std::optional<T>> result) {
  if (result.ok()) return std::move(result).value();
  if (!error_) error_ = std::move(result).error();
  return std::nullopt;
}

void ConfigReader::fail(ErrorCode code, std::string_view name, std::string message) {
  if (!error_) error_ = Error{code, std::move(message), metadata_.place_of(key(name)), ""};
}

void ConfigReader::missing(std::string_view name) {
  fail(ErrorCode::corrupt_data, name, "the key is missing");
}

int64_t ConfigReader::in_range(std::string_view name, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return value;
  fail(ErrorCode::corrupt_data, name,
       "expected " + std::to_string(min) + " to " + std::to_string(max) + ", found " +
           std::to_string(value));
  return min;
}

double ConfigReader::in_range(std::string_view name, double value, double min) {
  if (std::isfinite(value) && value >= min && value < 1e30) return value;
  fail(ErrorCode::corrupt_data, name,
       "expected a finite number of at least " + number(min) + ", found " + number(value));
  return min;
}

int64_t ConfigReader::required_int(std::string_view name, int64_t min, int64_t max) {
  const auto value = take(metadata_.get_int(key(name)));
  if (value) return in_range(name, *value, min, max);
  missing(name);
  return min;
}

int64_t ConfigReader::optional_int(std::string_view name, int64_t min, int64_t max,
                                   int64_t missing_value) {
  const auto value = take(metadata_.get_int(key(name)));
  return value ? in_range(name, *value, min, max) : missing_value;
}

double ConfigReader::required_float(std::string_view name, double min) {
  const auto value = take(metadata_.get_float(key(name)));
  if (value) return in_range(name, *value, min);
  missing(name);
  return min;
}

double ConfigReader::optional_float(std::string_view name, double min, double missing_value) {
  const auto value = take(metadata_.get_float(key(name)));
  return value ? in_range(name, *value, min) : missing_value;
}

bool ConfigReader::optional_bool(std::string_view name, bool missing_value) {
  return take(metadata_.get_bool(key(name))).value_or(missing_value);
}

std::string ConfigReader::optional_string(std::string_view name, std::string_view missing_value) {
  return std::string(take(metadata_.get_string(key(name))).value_or(missing_value));
}

std::vector<int64_t> ConfigReader::optional_ints(std::string_view name) {
  const MetaValue* value = metadata_.find(key(name));
  if (value == nullptr || std::holds_alternative<int64_t>(*value) ||
      std::holds_alternative<uint64_t>(*value)) {
    return {};
  }
  return take(metadata_.get_ints(key(name))).value_or(std::vector<int64_t>());
}

std::vector<bool> ConfigReader::layer_flags(std::string_view name, int64_t num_layers) {
  const std::vector<int64_t> given = optional_ints(name);
  if (!given.empty() && static_cast<int64_t>(given.size()) != num_layers) {
    fail(ErrorCode::corrupt_data, name, layer_count_fault(num_layers, given.size()));
    return {};
  }
  std::vector<bool> flags;
  for (const int64_t flag : given) flags.push_back(flag != 0);
  return flags;
}

std::string layer_count_fault(int64_t num_layers, size_t found) {
  return "expected one entry for each of the " + std::to_string(num_layers) + " layers, found " +
         std::to_string(found);
}

std::optional<Pooling> read_pooling(ConfigReader& reader) {
  switch (reader.optional_int("pooling_type", 0, 4, 0)) {
    case 1:
      return Pooling::mean;
    case 2:
      return Pooling::cls;
    case 3:
      return Pooling::last;
    default:
      return std::nullopt;
  }
}

ModelConfig read_decoder_config(ConfigReader& reader, std::string_view architecture, NormKind norm,
                                PositionKind positions) {
  ModelConfig config;
  config.architecture = architecture;
  config.context_length = reader.required_int("context_length", 1, kMaxContext);
  config.num_layers = reader.required_int("block_count", 1, kMaxLayers);
  config.embedding_length = reader.required_int("embedding_length", 1, kMaxSize);
  config.feed_forward_length = reader.required_int("feed_forward_length", 1, kMaxSize);
  config.num_heads = reader.required_int("attention.head_count", 1, kMaxSize);
  config.num_kv_heads =
      reader.optional_int("attention.head_count_kv", 1, kMaxSize, config.num_heads);
  config.norm = norm;
  config.norm_eps = static_cast<float>(reader.required_float(
      norm == NormKind::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
      0));
  if (config.num_heads % config.num_kv_heads != 0) {
    reader.fail(ErrorCode::corrupt_data, "attention.head_count_kv",
                "expected a divisor of the " + std::to_string(config.num_heads) + " heads, found " +
                    std::to_string(config.num_kv_heads));
  }
  const int64_t default_dim = config.embedding_length / config.num_heads;
  config.head_dim = reader.optional_int("attention.key_length", 1, 4096, default_dim);
  const int64_t value_dim = reader.optional_int("attention.value_length", 1, 4096, default_dim);
  if (config.head_dim != value_dim) {
    reader.fail(ErrorCode::unsupported, "attention.value_length",
                "expected the key length " + std::to_string(config.head_dim) + ", found " +
                    std::to_string(value_dim) +
                    "; keys and values of different sizes are not built in");
  }
  if (config.head_dim == 0 || config.head_dim * config.num_heads > kMaxHeadFeatures) {
    reader.fail(ErrorCode::corrupt_data, "attention.head_count",
                std::to_string(config.num_heads) + " heads do not fit an embedding of " +
                    std::to_string(config.embedding_length));
  }
  if (!reader.optional_bool("attention.causal", true)) {
    reader.fail(ErrorCode::unsupported, "attention.causal",
                "bidirectional attention is not built in for this architecture");
  }
  const double default_scale = 1.0 / std::sqrt(static_cast<double>(config.head_dim));
  const double scale = reader.optional_float("attention.scale", 0, 0);
  config.attention_scale = static_cast<float>(scale > 0 ? scale : default_scale);
  config.window = reader.optional_int("attention.sliding_window", 0, kMaxContext, 0);
  config.is_window_layer.assign(static_cast<size_t>(config.num_layers), config.window > 0);
  config.pooling = read_pooling(reader);
  config.normalizes = reader.optional_bool("normalize_embeddings", true);
  if (positions == PositionKind::rotary) {
    config.rope = read_rope(reader, config.head_dim, config.context_length);
  }
  return config;
}

void read_window_layers(ConfigReader& reader, ModelConfig& config, int64_t default_period) {
  // Far above any; models may have fewer layers than the period, none of which sees everything
  // then.
  constexpr int64_t kMaxPeriod = 4096;
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  const std::vector<bool> flags = reader.layer_flags(kKey, config.num_layers);
  const int64_t period =
      flags.empty() ? reader.optional_int(kKey, 1, kMaxPeriod, default_period) : 0;
  if (flags.empty() && period == 0) {
    return reader.fail(ErrorCode::corrupt_data, kKey, layer_count_fault(config.num_layers, 0));
  }
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const auto at = static_cast<size_t>(i);
    config.is_window_layer[at] =
        config.window > 0 && (period > 0 ? (i + 1) % period != 0 : flags[at]);
  }
}

}  // namespace headrace
