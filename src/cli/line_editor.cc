// See line_editor.h.
#include "cli/line_editor.h"

#include <histedit.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/os/signals.h"
#include "base/os/terminal.h"

namespace headrace::cli {
namespace {

constexpr int kHistoryEntries = 1000;
constexpr std::string_view kQuotes = "\"\"\"";

/// libedit counts columns with the C locale's characters.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
}

unsigned char insert_line_end(EditLine* editor, int) {
  return el_insertstr(editor, "\n") == 0 ? CC_REFRESH : CC_ERROR;
}

}  // namespace

std::string state_file(const std::string& name) {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/headrace/" + name;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return "";
  return std::string(home) + "/.local/state/headrace/" + name;
}

struct LineEditor::Impl {
  EditLine* editor = nullptr;
  History* history = nullptr;
  HistEvent event{};
  std::string history_path;
  std::string prompt;
  std::optional<unsigned char> next_byte;

  static char* show_prompt(EditLine* editor) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    return static_cast<Impl*>(data)->prompt.data();
  }
  /// After a shell had the terminal: libedit believes that it is still as it was set.
  void take_terminal_back() const {
    el_set(editor, EL_PREP_TERM, 0);
    el_set(editor, EL_PREP_TERM, 1);
  }

  /// Waits for a byte; false where the line ends without one: end of input, or Ctrl-C.
  bool wait_for_byte(unsigned char& byte) const {
    for (;;) {
      switch (read_byte(wake_descriptor(), byte)) {
        case ByteOutcome::byte:
          return true;
        case ByteOutcome::end:
          return false;
        case ByteOutcome::woken:
        case ByteOutcome::signal:
          break;
      }
      const TerminalSignals::Seen seen = TerminalSignals::take();
      if (InterruptGuard::interrupted()) return false;
      if (seen.continued) take_terminal_back();
      if (seen.resized) el_resize(editor);
      if (seen.continued || seen.resized) el_set(editor, EL_REFRESH);
    }
  }

  /// libedit's own reader misses a Ctrl-C that comes between the prompt and its wait.
  static int get_character(EditLine* editor, wchar_t* out) {
    void* data = nullptr;
    el_get(editor, EL_CLIENTDATA, &data);
    auto& impl = *static_cast<Impl*>(data);
    std::mbstate_t state{};
    for (;;) {
      unsigned char byte = 0;
      if (impl.next_byte) {
        byte = *std::exchange(impl.next_byte, std::nullopt);
      } else if (!impl.wait_for_byte(byte)) {
        return 0;
      }
      const bool is_first = std::mbsinit(&state) != 0;
      const char part = static_cast<char>(byte);
      const size_t length = std::mbrtowc(out, &part, 1, &state);
      if (length == static_cast<size_t>(-2)) continue;  // more bytes are to come
      if (length == static_cast<size_t>(-1)) {
        *out = 0xFFFD;
        // What was begun ends here; this byte may begin a character of its own.
        if (!is_first) impl.next_byte = byte;
      }
      return 1;
    }
  }
  ~Impl() {
    if (editor != nullptr) el_end(editor);
    if (history != nullptr) history_end(history);
  }
};

LineEditor::LineEditor(const std::string& history_path) {
  if (!is_terminal(StandardStream::input)) return;
  use_utf8();
  auto impl = std::make_unique<Impl>();
  impl->editor = el_init("headrace", stdin, stdout, stderr);
  impl->history = history_init();
  if (impl->editor == nullptr || impl->history == nullptr) return;
  el_set(impl->editor, EL_CLIENTDATA, impl.get());
  el_set(impl->editor, EL_PROMPT, &Impl::show_prompt);
  el_set(impl->editor, EL_GETCFN, &Impl::get_character);
  el_set(impl->editor, EL_EDITOR, "emacs");
  el_set(impl->editor, EL_ADDFN, "insert-line-end", "Begin a new line of the same message",
         &insert_line_end);
  el_set(impl->editor, EL_BIND, "\\e\\r", "insert-line-end", nullptr);
  el_set(impl->editor, EL_BIND, "\\e\\n", "insert-line-end", nullptr);
  el_set(impl->editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  history(impl->history, &impl->event, H_SETSIZE, kHistoryEntries);
  history(impl->history, &impl->event, H_SETUNIQUE, 1);
  el_set(impl->editor, EL_HIST, history, impl->history);
  if (!history_path.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(history_path).parent_path(), ignored);
    history(impl->history, &impl->event, H_LOAD, history_path.c_str());
    impl->history_path = history_path;
  }
  impl_ = std::move(impl);
}

LineEditor::~LineEditor() = default;

LineEditor::Input LineEditor::read(const std::string& prompt) {
  if (!impl_) {
    std::string line;
    // Later answers would be stopped as soon as they begin.
    if (InterruptGuard::interrupted()) {
      return {Outcome::failed, "", Error{ErrorCode::cancelled, "interrupted", "", ""}};
    }
    auto more = pipe_.read_line(line);
    if (!more.ok()) return {Outcome::failed, "", std::move(more).error()};
    if (!*more) return {};
    return {Outcome::line, std::move(line)};
  }
  impl_->prompt = prompt;
  const InterruptGuard guard;
  InterruptGuard::clear();
  if (InterruptGuard::terminated()) return {Outcome::interrupted, ""};
  const TerminalSignals signals;
  // libedit does so after it shows the prompt: a Ctrl-D typed before would be lost.
  const KeyInput keys;
  int length = 0;
  const char* text = el_gets(impl_->editor, &length);
  if (InterruptGuard::interrupted()) {
    std::fputs("\n", stdout);
    return {Outcome::interrupted, ""};
  }
  if (text == nullptr || length <= 0) {
    std::fputs("\n", stdout);
    return {};
  }
  std::string line(text, static_cast<size_t>(length));
  if (line.ends_with('\n')) line.pop_back();
  return {Outcome::line, std::move(line)};
}

LineEditor::Input LineEditor::read_message(const std::string& prompt,
                                           const std::string& continuation) {
  Input message = read(prompt);
  if (message.outcome != Outcome::line) return message;
  const bool quoted = message.text.starts_with(kQuotes);
  if (quoted) message.text.erase(0, kQuotes.size());
  const auto is_open = [&] {
    return quoted ? !message.text.ends_with(kQuotes) : message.text.ends_with('\\');
  };
  while (is_open()) {
    if (!quoted) message.text.pop_back();
    Input more = read(continuation);
    if (more.outcome == Outcome::interrupted || more.outcome == Outcome::failed) return more;
    if (more.outcome == Outcome::end) return message;
    message.text += "\n" + more.text;
  }
  if (quoted) {
    message.text.erase(message.text.size() - kQuotes.size());
    // Quotes on lines of their own do not add empty lines.
    if (message.text.starts_with('\n')) message.text.erase(0, 1);
    if (message.text.ends_with('\n')) message.text.pop_back();
  }
  return message;
}

void LineEditor::remember(const std::string& text) {
  if (!impl_ || text.empty()) return;
  history(impl_->history, &impl_->event, H_ENTER, text.c_str());
  if (!impl_->history_path.empty()) {
    history(impl_->history, &impl_->event, H_SAVE, impl_->history_path.c_str());
  }
}

}  // namespace headrace::cli
