// What the smaller files of a Hugging Face directory say: sampling defaults, the chat template, the
// model's name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/metadata.h"
#include "checkpoint/model_directory.h"

namespace headrace {

/// Sets `general.sampling.*` from generation_config.json's text, which may be empty. What cannot be
/// read is left out: the file gives defaults only.
void add_hf_sampling(std::string_view generation_config, Metadata& metadata);

/// Sets `tokenizer.ggml.bos_token_id`, `eos_token_id` and, where there are several,
/// `eog_token_ids`: those of generation_config.json's text, which may be empty, else of
/// config.json's.
void add_hf_special_ids(std::string_view generation_config, std::string_view config,
                        Metadata& metadata);

/// chat_template.jinja, else the template of tokenizer_config.json (of several, "default"); nothing
/// where there is none.
std::optional<std::string> hf_chat_template(const ModelDirectory& directory);

/// Sets "<architecture>.pooling_type" and "<architecture>.normalize_embeddings" as the files of
/// sentence-transformers say, 1_Pooling/config.json and modules.json; nothing where they are
/// absent.
void add_hf_pooling(const ModelDirectory& directory, std::string_view architecture,
                    Metadata& metadata);

/// "org/name" in Hugging Face's cache, else the directory's own name.
std::string name_of_hf_directory(const ModelDirectory& directory);

}  // namespace headrace
