// The options that every command which opens a model shares, and opening it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/open_model.h"
#include "cli/command.h"

namespace headrace::cli {

struct ModelArgs {
  std::string model;    ///< empty: the default one
  std::string hf_repo;  ///< instead of it: "org/repo[:quantisation]" of a hub, fetched if missing
  std::optional<int64_t> context;
  std::optional<int64_t> threads;
  bool pin = false;
  bool full_head = false;
  bool no_pack = false;
  std::string quantize;
  std::string kv_type;
  std::string isa;
  std::optional<int64_t> chunk_tokens;
  std::string pre_tokenizer;
  std::string chat_template_file;
  std::vector<std::string> adapters;         ///< "[NAME=]FILE"
  std::vector<std::string> scaled_adapters;  ///< "[NAME=]FILE:STRENGTH"
};

/// -m alone.
Option model_option(ModelArgs& args);
/// The same for commands that need a vocabulary only.
Option tokenizer_model_option(ModelArgs& args);
/// --pre-tokenizer.
Option pre_tokenizer_option(ModelArgs& args);
/// --chat-template.
Option chat_template_option(ModelArgs& args);
/// --kv-type and --isa; with `is_list` several values at once, with commas.
Option kv_type_option(std::string* target, bool is_list = false);
Option isa_option(std::string* target, bool is_list = false);
/// --pin.
Option pin_option(bool* target);
/// --full-head.
Option full_head_option(bool* target);
/// --no-pack.
Option no_pack_option(bool* target);
/// --quantize.
Option quantize_option(std::string* target);
/// --lora and --lora-scaled.
void add_adapter_options(std::vector<Option>& options, ModelArgs& args);
/// -m, -hf, -c, -t, --pin, --full-head, --no-pack, --quantize, --lora, --lora-scaled, --kv-type,
/// --isa, -ub and
/// --pre-tokenizer.
void add_model_options(std::vector<Option>& options, ModelArgs& args);

/// The file or directory that `args` names. With `may_pull`, the default model and what -hf names
/// are fetched if they are not here yet, with a progress bar. Errors: those of resolve_or_fetch;
/// invalid_argument (-m and -hf).
Result<std::string> find_model(const ModelArgs& args, bool may_pull);

/// What the options say of opening. Errors: invalid_argument; of the template's file.
Result<OpenOptions> open_options(const ModelArgs& args);

/// Opens the model. What can be checked without it is checked before it is looked for, or fetched.
/// Its warnings are printed, unless `json`, where the caller reports them.
Result<std::unique_ptr<OpenedModel>> open_model_of(const ModelArgs& args, bool may_pull, bool json,
                                                   bool takes_encoders = false);

/// The way out where something does not fit the model's context: `shorten`, or -c where that helps.
std::string context_hint(const OpenedModel& model, std::string_view shorten);

/// Opens only the tokenizer.
Result<std::shared_ptr<const Tokenizer>> open_tokenizer_of(const ModelArgs& args);

}  // namespace headrace::cli
