// What the smaller files of a Hugging Face directory say: sampling defaults, pooling, the model's
// name.
#pragma once

#include <string>
#include <string_view>

#include "checkpoint/metadata.h"
#include "checkpoint/model_directory.h"

namespace headrace {

/// Sets `general.sampling.*` from generation_config.json's text, which may be empty. What cannot be
/// read is left out: the file gives defaults only.
void add_hf_sampling(std::string_view generation_config, Metadata& metadata);

/// Sets "<architecture>.pooling_type" and "<architecture>.normalize_embeddings" as the files of
/// sentence-transformers say, 1_Pooling/config.json and modules.json; nothing where they are
/// absent.
void add_hf_pooling(const ModelDirectory& directory, std::string_view architecture,
                    Metadata& metadata);

/// "org/name" in Hugging Face's cache, else the directory's own name.
std::string name_of_hf_directory(const ModelDirectory& directory);

}  // namespace headrace
