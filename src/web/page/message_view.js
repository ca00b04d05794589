// One message on the screen: text, what can be done with it, how the answer ended.
import { copyFrom, h, icon, iconButton } from "./dom.js";
import { MarkdownView, splitThought } from "./markdown.js";
import { timingReadout } from "./timing_bar.js";

const kEndings = {
  stopped: "You stopped this answer.",
  cut: "The connection ended before the answer did. This is not all of it.",
  length: "The answer reached the token limit.",
};

const kStarts = { class: "small starts" };  // begins an answer: not while another is being written

/// `actions`: edit(node, text), retry(node), branch(node, siblingId), askKey().
export class MessageView {
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    this.isAnswer = node.role === "assistant";
    this.body = h("div", { class: "body" });
    this.foot = h("div", { class: "message-foot" });
    this.element = h("article", {
      class: `message ${this.isAnswer ? "answer" : "question"}`, "data-node": node.id,
      "aria-label": this.isAnswer ? "Answer" : "You",
    }, this.body, this.foot);
  }

  /// Shows the node as it is. `branch`: {index, siblings}. Cheap while an answer is being written.
  update(branch) {
    const { status } = this.node;
    this.element.dataset.status = status ?? "";
    this.element.setAttribute("aria-busy", String(status === "streaming"));
    if (!this.isAnswer || this.node.isBase) this.showPlain();
    else this.showMarkdown();
    const state = `${status} ${branch.index} ${branch.siblings.length}`;
    if (state === this.footState) return;
    this.footState = state;
    this.showFoot(branch);
  }

  showPlain() {
    if (this.element.classList.contains("editing")) return;
    this.text ??= this.body.appendChild(h("div", { class: this.isAnswer ? "continuation" : "bubble" }));
    const text = this.node.text.replace(/^(?:\n+| (?! ))/, "");
    if (this.text.textContent !== text) this.text.textContent = text;
    this.showWaiting(text === "");
  }

  showMarkdown() {
    const { thought, answer, isThinking } = splitThought(this.node.text);
    const aloud = [this.node.reasoning ?? "", thought].filter(Boolean).join("\n\n");
    const isWriting = this.node.status === "streaming";
    if (aloud) this.showThought(aloud, isWriting && (isThinking || answer === ""));
    if (!this.markdown) {
      const prose = this.body.appendChild(h("div", { class: "prose" }));
      this.markdown = new MarkdownView(prose);
    }
    this.markdown.update(answer, !isWriting);
    this.showWaiting(answer === "" && !aloud);
  }

  showThought(text, isThinking) {
    if (!this.thought) {
      this.thought = h("details", { class: "thought" }, h("summary", {}), h("div", { class: "thought-text" }));
      this.body.prepend(this.thought);
    }
    this.thought.firstChild.textContent = isThinking ? "Thinking…" : "Thoughts";
    this.thought.lastChild.textContent = text;
  }

  showWaiting(isEmpty) {
    const isWaiting = isEmpty && this.node.status === "streaming";
    if (isWaiting && !this.dots) {
      this.dots = h("div", { class: "dots" }, h("span"), h("span"), h("span"),
                    h("span", { class: "visually-hidden", text: "Waiting for the answer" }));
      this.body.append(this.dots);
    } else if (!isWaiting && this.dots) {
      this.dots.remove();
      this.dots = null;
    }
  }

  showFoot(branch) {
    const { node, actions } = this;
    this.foot.replaceChildren();
    if (node.status === "streaming") return;
    this.foot.append(...this.notices());
    if (node.status === "error" && !node.text && branch.siblings.length === 1) return;  // its box has a button
    const tools = h("div", { class: "tools" });
    if (branch.siblings.length > 1) tools.append(this.branchPicker(branch));
    const copy = iconButton("copy", "Copy", () => copyFrom(copy, splitThought(node.text).answer));
    if (node.text) tools.append(copy);
    if (this.isAnswer) tools.append(iconButton("retry", "Ask again", () => actions.retry(node), kStarts));
    else tools.append(iconButton("edit", "Edit", () => this.edit(), kStarts));
    const readout = this.isAnswer ? timingReadout(node) : null;
    this.foot.append(h("div", { class: "tool-row" }, tools, readout));
  }

  notices() {
    const { node } = this;
    const out = [];
    if (node.status === "error") out.push(this.errorBox());
    const ending = kEndings[node.status] ?? (node.finish === "length" ? kEndings.length : "");
    if (ending) {
      out.push(h("p", { class: `ending ${node.status}` }, icon(node.status === "cut" ? "cut" : "alert"),
                 h("span", { text: ending })));
    }
    for (const warning of node.warnings ?? []) {
      out.push(h("p", { class: "ending warning" }, icon("alert"), h("span", { text: warning })));
    }
    return out;
  }

  errorBox() {
    const { node, actions } = this;
    const error = node.error ?? {};
    const details = [error.status ? `HTTP ${error.status}` : "", error.code, error.param ? `field ${error.param}` : ""];
    const wait = error.retryAfter > 0 ? ` It asks to wait ${error.retryAfter} s.` : "";
    const buttons = [h("button", { type: "button", class: "button", text: "Try again",
                                   on: { click: () => actions.retry(node) } })];
    if (error.status === 401) {
      buttons.unshift(h("button", { type: "button", class: "button primary", text: "Enter key",
                                    on: { click: () => actions.askKey(node) } }));
    }
    return h("div", { class: "error-box", role: "alert" },
             icon("alert"),
             h("div", {}, h("p", { class: "error-text", text: `${error.message ?? "Something failed."}${wait}` }),
               h("p", { class: "error-detail", text: details.filter(Boolean).join(" · ") })),
             h("div", { class: "error-buttons" }, buttons));
  }

  branchPicker({ index, siblings }) {
    const go = (step) => this.actions.branch(this.node, siblings[index + step].id);
    return h("div", { class: "branches", role: "group", "aria-label": "Versions" },
             iconButton("left", "Earlier version", () => go(-1), { disabled: index === 0 }),
             h("span", { text: `${index + 1} / ${siblings.length}` }),
             iconButton("right", "Later version", () => go(1), { disabled: index + 1 === siblings.length }));
  }

  /// Makes the message a field. What is saved becomes a branch beside it.
  edit() {
    if (this.element.classList.contains("editing")) return;
    const box = h("textarea", { class: "edit-text", "aria-label": "Edit the message", rows: "2" });
    box.value = this.node.text;
    const close = () => {
      this.element.classList.remove("editing");
      form.remove();
      this.text.hidden = false;
      this.foot.hidden = false;
      this.foot.querySelector("button")?.focus();
    };
    const save = () => {
      const text = box.value.trim();
      close();
      if (text && text !== this.node.text) this.actions.edit(this.node, text);
    };
    const form = h("div", { class: "edit-form" }, box, h("div", { class: "edit-buttons" },
      h("button", { type: "button", class: "button quiet", text: "Cancel", on: { click: close } }),
      h("button", { type: "button", class: "button primary", text: "Send", on: { click: save } })));
    box.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && !event.shiftKey) save();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.element.classList.add("editing");
    this.text.hidden = true;
    this.foot.hidden = true;
    this.body.append(form);
    box.focus();
    box.setSelectionRange(box.value.length, box.value.length);
  }
}
