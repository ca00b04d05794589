// One line, or several, from a person at a terminal: editing and history by libedit. From a pipe:
// plain lines without prompts. Owns the history file.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/os/input_stream.h"
#include "headrace/result.h"

namespace headrace::cli {

/// $XDG_STATE_HOME/headrace/NAME, else ~/.local/state/headrace/NAME; "" without a home.
std::string state_file(const std::string& name);

class LineEditor {
 public:
  enum class Outcome { line, interrupted, end, failed };
  struct Input {
    Outcome outcome = Outcome::end;
    std::string text;  ///< without the line end; line ends typed with Alt-Enter are inside
    Error error = {};  ///< of Outcome::failed
  };

  /// `history_path` empty: no history is kept. A history that cannot be read or written is no
  /// error: editing works without.
  explicit LineEditor(const std::string& history_path);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// Whether a person is typing.
  bool interactive() const { return impl_ != nullptr; }

  /// The next line; `prompt` is shown to a person only. Ctrl-C gives Outcome::interrupted, Ctrl-D
  /// on an empty line or the end of a pipe Outcome::end, a pipe that cannot be read,
  /// and Ctrl-C with a pipe, Outcome::failed.
  Input read(const std::string& prompt);

  /// A whole message: a line that ends with a backslash goes on in the next one, and all between
  /// lines of three double quotes belongs together.
  Input read_message(const std::string& prompt, const std::string& continuation);

  /// Adds to the history, also in the file.
  void remember(const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  InputStream pipe_ = InputStream::standard_input();  ///< read where nobody is typing
};

}  // namespace headrace::cli
