// What the standard streams are connected to.
#pragma once

#include <memory>

namespace headrace {

enum class StandardStream { input, output, error };

bool is_terminal(StandardStream stream);

/// Columns of the terminal behind `stream`; `fallback` where there is none.
int terminal_columns(StandardStream stream, int fallback);

/// While one is alive, the terminal on standard input hands over each key as it is typed, without
/// echo; keys that send signals still do. Does nothing where standard input is no terminal.
class KeyInput {
 public:
  KeyInput();
  ~KeyInput();
  KeyInput(const KeyInput&) = delete;
  KeyInput& operator=(const KeyInput&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

enum class ByteOutcome {
  byte,
  end,
  woken,   ///< `wake` is readable
  signal,  ///< a signal was handled meanwhile; read again
};

/// Waits for a byte on standard input, or for `wake` (a descriptor; -1: none) to be readable, which
/// comes first where both are.
ByteOutcome read_byte(int wake, unsigned char& byte);

}  // namespace headrace
