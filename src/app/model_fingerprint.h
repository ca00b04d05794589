// The identity of a model's weights. Must not know where they are used.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"

namespace headrace {

/// Hexadecimal digits that are equal for two files of the same model and, all but certainly, differ
/// for two models. Covers what decides a model's numbers: the metadata but for the vocabulary,
/// which has a fingerprint of its own (Tokenizer::fingerprint), and for what describes (names,
/// authors, chat template, how the file is split); of each tensor name, format and shape, and of
/// its bytes eight stretches of 4 KiB, the first and the last among them. Finer changes go unseen:
/// this is for files that were mixed up, not for those that were forged. Reads at most 32 KiB of a
/// tensor. Throws std::bad_alloc.
std::string model_fingerprint(const Checkpoint& checkpoint);

}  // namespace headrace
