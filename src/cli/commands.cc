// The list of commands, in the order of the help text.
#include "cli/commands.h"

namespace headrace::cli {

std::vector<Command> all_commands() {
  return {
      run_command(),      chat_command(),       serve_command(),
      explain_command(),  batch_command(),      pull_command(),
      list_command(),     show_command(),       rm_command(),
      inspect_command(),  convert_command(),    quantize_command(),
      tokenize_command(), detokenize_command(), tokenizer_check_command(),
      render_command(),   score_command(),      perplexity_command(),
      embed_command(),    bench_command(),      selftest_command(),
      help_command(),     man_command(),        completion_command(),
  };
}

}  // namespace headrace::cli
