// One function a command: each is in cmd_<name>.cc and returns its description.
#pragma once

#include "cli/command.h"

namespace headrace::cli {

Command run_command();
Command chat_command();
Command batch_command();
Command serve_command();
Command explain_command();
Command tokenize_command();
Command detokenize_command();
Command tokenizer_check_command();
Command render_command();
Command score_command();
Command embed_command();
Command perplexity_command();
Command inspect_command();
Command convert_command();
Command quantize_command();
Command bench_command();
Command selftest_command();
Command pull_command();
Command list_command();
Command show_command();
Command rm_command();
Command help_command();
Command man_command();
Command completion_command();

}  // namespace headrace::cli
