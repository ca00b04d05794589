// Texts by whose tokens tokenizers are told apart. Must not know tokenizers.
#pragma once

#include <string>
#include <vector>

namespace headrace {

/// Texts in many scripts, of code, numbers and spaces. The fingerprint of every tokenizer rests on
/// them.
const std::vector<std::string>& tokenizer_texts();

}  // namespace headrace
