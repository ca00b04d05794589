// The field at the bottom: grows with its text, sends, stops.
import { byId } from "./dom.js";

export class Composer {
  /// `actions`: send(text), stop(), editLast().
  constructor(actions) {
    this.form = byId("composer");
    this.field = byId("composer-text");
    this.sendButton = byId("send");
    this.stopButton = byId("stop");
    this.isBusy = false;
    this.mayBeEmpty = false;
    this.actions = actions;
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    this.stopButton.addEventListener("click", () => actions.stop());
    this.field.addEventListener("input", () => this.fit());
    this.field.addEventListener("keydown", (event) => this.onKey(event));
    this.fit();
  }

  onKey(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.send();
    } else if (event.key === "ArrowUp" && this.field.value === "" && !this.isBusy) {
      event.preventDefault();
      this.actions.editLast();
    }
  }

  send() {
    const text = this.field.value;
    if (this.isBusy || (text.trim() === "" && !this.mayBeEmpty)) return;
    this.set("");
    this.actions.send(text);
  }

  set(text) {
    this.field.value = text;
    this.fit();
  }

  focus() {
    this.field.focus({ preventScroll: true });
  }

  /// `isBusy`: an answer is being written. `mayBeEmpty`: sending nothing means "go on".
  setState({ isBusy, isBase, mayBeEmpty }) {
    const hadFocus = document.activeElement === this.stopButton || document.activeElement === this.sendButton;
    this.isBusy = isBusy;
    this.mayBeEmpty = mayBeEmpty;
    this.sendButton.hidden = isBusy;
    this.stopButton.hidden = !isBusy;
    if (hadFocus) (isBusy ? this.stopButton : this.field).focus();
    this.field.placeholder = !isBase ? "Ask anything"
      : mayBeEmpty ? "Add to the text, or send nothing to go on" : "Write the beginning of a text";
    this.field.setAttribute("aria-label", isBase ? "Text to go on with" : "Message");
    this.fit();
  }

  fit() {
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
    this.sendButton.disabled = this.field.value.trim() === "" && !this.mayBeEmpty;
  }
}
