// The messages of the conversation that shows, or the welcome where there are none; and scrolling.
import { byId, h } from "./dom.js";
import { branchOf, pathOf } from "./conversation.js";
import { count } from "./format.js";
import { MessageView } from "./message_view.js";

const kNearEnd = 90;  // pixels from the end within which new text keeps the end in view

const kQuestions = [
  ["Explain", "how a key-value cache makes a language model faster, in three sentences"],
  ["Write", "a Python function that merges overlapping intervals, with a test"],
  ["Compare", "B-trees and LSM trees in a small table"],
  ["Draft", "a friendly reply that moves a meeting to Thursday"],
];
const kBeginnings = [
  ["A story", "The river had not frozen in forty years, and so when"],
  ["A list", "Seven things to check before a release:\n\n1."],
  ["Code", "def fibonacci(n):\n    \"\"\"Returns the n-th Fibonacci number.\"\"\"\n"],
];

export class ThreadView {
  /// `actions` as of MessageView, and suggest(text).
  constructor(actions) {
    this.actions = actions;
    this.views = new Map();
    this.problem = null;
    this.scroller = byId("scroller");
    this.thread = byId("thread");
    this.isPinned = true;
    this.scroller.addEventListener("scroll", () => this.onScroll(), { passive: true });
    byId("to-end").addEventListener("click", () => this.toEnd("smooth"));
    new ResizeObserver(() => this.isPinned && this.toEnd()).observe(this.thread);
  }

  /// What the welcome says instead of which model runs: {message, action: {label, run} or null}; null: nothing.
  setProblem(problem) {
    this.problem = problem;
  }

  /// Shows a conversation from the beginning. `about`: what is known of its model.
  show(conversation, model, about) {
    if (this.conversation !== conversation) {
      this.conversation = conversation;
      this.views.clear();
      this.thread.replaceChildren();
    }
    this.isPinned = true;
    this.refresh(model, about);
    this.toEnd();
  }

  /// Brings the messages in line with the conversation's path.
  refresh(model, about) {
    const path = this.conversation ? pathOf(this.conversation) : [];
    const isEmpty = path.length === 0;
    document.body.classList.toggle("is-empty", isEmpty);
    if (isEmpty) {
      this.views.clear();
      this.thread.replaceChildren(this.welcome(model, about));
      return;
    }
    this.thread.querySelector(".welcome")?.remove();
    const wanted = new Set(path.map((node) => node.id));
    for (const [id, view] of this.views) {
      if (wanted.has(id)) continue;
      view.element.remove();
      this.views.delete(id);
    }
    path.forEach((node, i) => {
      if (!this.views.has(node.id)) this.views.set(node.id, new MessageView(node, this.actions));
      const { element } = this.views.get(node.id);
      if (this.thread.children[i] !== element) this.thread.insertBefore(element, this.thread.children[i] ?? null);
      this.updateNode(node);
    });
  }

  /// Shows what changed in one message; nothing if it is not on the path.
  updateNode(node) {
    this.views.get(node.id)?.update(branchOf(this.conversation, node));
  }

  editLast() {
    const last = [...this.views.values()].findLast((view) => !view.isAnswer);
    last?.edit();
  }

  toEnd(behavior = "instant") {
    this.isPinned = true;
    this.scroller.scrollTo({ top: this.scroller.scrollHeight, behavior });
  }

  onScroll() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    const distance = scrollHeight - scrollTop - clientHeight;
    this.isPinned = distance < kNearEnd;
    byId("to-end").hidden = distance < 240;
  }

  welcome(model, { isBase, contextTokens }) {
    const context = contextTokens ? ` It reads up to ${count(contextTokens)} tokens.` : "";
    const suggestions = (isBase ? kBeginnings : kQuestions).map(([title, text]) =>
      h("button", { type: "button", class: "suggestion", on: { click: () => this.actions.suggest(isBase ? text : `${title} ${text}`) } },
        h("strong", { text: title }), h("span", { text: isBase ? text.split("\n")[0] : text })));
    const name = h("span", { class: "model-name", text: model });
    const { message, action } = this.problem ?? {};
    const lead = message ? h("span", { class: "problem", role: "alert", text: message })
      : !model ? "Looking for a model…"
      : isBase ? [name, ` is a base model: it has no chat template, so it does not answer but goes on with your text.${context}`]
        : [name, ` is running here.${context}`];
    return h("section", { class: "welcome", "aria-labelledby": "welcome-title" },
             h("img", { src: "assets/favicon.svg", alt: "", class: "welcome-mark" }),
             h("h2", { id: "welcome-title", text: isBase ? "Begin a text" : "What is on your mind?" }),
             h("p", { class: "welcome-lead" }, lead),
             action ? h("button", { type: "button", class: "button primary", text: action.label, on: { click: action.run } }) : null,
             h("div", { class: "suggestions" }, suggestions));
  }
}
