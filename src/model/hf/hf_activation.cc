// See hf_activation.h.
#include "model/hf/hf_activation.h"

#include <array>
#include <optional>
#include <string>

namespace headrace {
namespace {

constexpr std::string_view kActivationKey = "activation";

struct ActivationName {
  std::string_view name;
  Activation activation;
};

// The first name of each is the key's.
constexpr std::array kActivationNames = {
    ActivationName{"silu", Activation::silu},
    ActivationName{"gelu_tanh", Activation::gelu_tanh},
    ActivationName{"gelu", Activation::gelu},
    ActivationName{"quick_gelu", Activation::quick_gelu},
    ActivationName{"relu", Activation::relu},
    ActivationName{"swish", Activation::silu},
    ActivationName{"gelu_new", Activation::gelu_tanh},
    ActivationName{"gelu_fast", Activation::gelu_tanh},
    ActivationName{"gelu_pytorch_tanh", Activation::gelu_tanh},
    ActivationName{"gelu_python", Activation::gelu},
};

std::optional<Activation> activation_named(std::string_view name) {
  for (const ActivationName& one : kActivationNames) {
    if (one.name == name) return one.activation;
  }
  return std::nullopt;
}

std::string known_activations() {
  std::string names;
  for (const ActivationName& one : kActivationNames) {
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  return names;
}

}  // namespace

Activation read_activation(ConfigReader& reader, Activation missing) {
  const std::string name = reader.optional_string(kActivationKey, "");
  if (name.empty()) return missing;
  if (const auto found = activation_named(name)) return *found;
  reader.fail(ErrorCode::unsupported, kActivationKey,
              "expected one of " + known_activations() + ", found '" + name + "'");
  return missing;
}

void copy_hf_activation(HfModel& model, std::string_view hf_key, std::string_view missing) {
  const std::string name = model.config().text(hf_key).value_or(std::string(missing));
  const auto found = activation_named(name);
  if (!found) {
    return model.config().fail(hf_key,
                               "expected one of " + known_activations() + ", found '" + name + "'",
                               ErrorCode::unsupported);
  }
  for (const ActivationName& one : kActivationNames) {
    if (one.activation != *found) continue;
    return model.set_text(kActivationKey, std::string(one.name), hf_key);
  }
}

std::string_view hf_activation_name(Activation activation) {
  switch (activation) {
    case Activation::gelu_tanh:
      return "gelu_pytorch_tanh";
    case Activation::gelu:
      return "gelu";
    case Activation::quick_gelu:
      return "quick_gelu";
    case Activation::relu:
      return "relu";
    default:
      return "silu";
  }
}

}  // namespace headrace
