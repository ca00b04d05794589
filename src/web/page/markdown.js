// Markdown of a model, which may hold anything, to elements that do nothing but show. HTML in it is
// shown as text; what is made of it goes through DOMPurify all the same; images are not fetched.
import DOMPurify from "./lib/purify.js";
import { copyFrom, h, iconButton } from "./dom.js";

const { marked } = window;  // a classic script: as a module Debian has it only with all of Node.js
const kHighlightLimit = 60000;  // characters: longer code stays plain, colouring would take too long
const kHarmlessTag = /^<\/?(?:br|sub|sup|kbd|wbr)\s*\/?>$/i;

const escapeHtml = (text) => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const renderer = {
  html: (html) => (kHarmlessTag.test(html.trim()) ? html : escapeHtml(html)),
  checkbox: (checked) => `<span class="check">${checked ? "☑" : "☐"}</span>`,
  image: (href, title, text) => `<a href="${escapeHtml(href ?? "")}">${escapeHtml(text || title || "image")}</a>`,
};
marked.use({ renderer, gfm: true, breaks: false, mangle: false, headerIds: false });

const kAllowed = {
  ALLOWED_TAGS: ["a", "b", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i",
                 "kbd", "li", "ol", "p", "pre", "s", "span", "strong", "sub", "sup", "table", "tbody", "td", "th",
                 "thead", "tr", "ul", "wbr"],
  ALLOWED_ATTR: ["href", "title", "class", "start", "align"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ADD_URI_SAFE_ATTR: ["align", "start"],  // else the pattern above is asked of them too
  RETURN_DOM_FRAGMENT: true,
};

let highlighter = null;

/// highlight.js, fetched when the first code shows: it is larger than all the rest.
function loadHighlighter() {
  highlighter ??= new Promise((resolve) => {
    const script = h("script", { src: new URL("lib/highlight.js", import.meta.url).href });
    script.onload = () => resolve(window.hljs);
    script.onerror = () => resolve(null);
    document.head.append(script);
  });
  return highlighter;
}

async function colour(code, language) {
  const text = code.textContent;
  if (!language || text.length > kHighlightLimit) return;
  const hljs = await loadHighlighter();
  if (!hljs?.getLanguage(language) || !code.isConnected) return;
  const html = hljs.highlight(language, text, true).value;
  code.replaceChildren(DOMPurify.sanitize(html, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"],
                                                  RETURN_DOM_FRAGMENT: true }));
}

const languageOf = (code) =>
  [...code.classList].find((name) => name.startsWith("language-"))?.slice("language-".length) ?? "";

function dressCode(pre) {
  const code = pre.querySelector("code") ?? pre;
  const language = languageOf(code);
  const copy = iconButton("copy", "Copy code", () => copyFrom(copy, code.textContent));
  const head = h("div", { class: "code-head" }, h("span", { text: language || "text" }), copy);
  const box = h("div", { class: "code-box" }, head);
  pre.replaceWith(box);
  pre.tabIndex = 0;
  pre.setAttribute("role", "region");
  pre.setAttribute("aria-label", language ? `Code in ${language}` : "Code");
  box.append(pre);
}

function dress(root) {
  for (const pre of root.querySelectorAll("pre")) dressCode(pre);
  for (const table of root.querySelectorAll("table")) {
    const box = h("div", { class: "table-box", tabindex: "0", role: "region", "aria-label": "Table" });
    table.replaceWith(box);
    box.append(table);
  }
  for (const link of root.querySelectorAll("a[href]")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
  }
}

/// Keeps `element` showing a text that grows: blocks that did not change keep their elements, so that a
/// selection in them survives and the work does not grow with the text.
export class MarkdownView {
  constructor(element) {
    this.element = element;
    this.shown = [];  // of each block: {raw, isWhole, box}
  }

  /// `isFinal`: no more will come, so the last block is whole too. What Markdown's parser cannot take
  /// (nested a thousand deep) shows as it is.
  update(text, isFinal) {
    try {
      this.updateBlocks(text, isFinal);
    } catch {
      this.shown = [];
      this.element.replaceChildren(h("div", { class: "continuation", text }));
    }
  }

  updateBlocks(text, isFinal) {
    if (this.shown.length === 0) this.element.replaceChildren();
    const tokens = marked.lexer(text);
    const links = tokens.links;
    const blocks = tokens.filter((token) => token.type !== "space" && token.type !== "def");
    const isSame = (i) => i < this.shown.length && this.shown[i].raw === blocks[i].raw;
    for (let i = 0; i < blocks.length; ++i) {
      const isWhole = isFinal || i + 1 < blocks.length;
      if (isSame(i) && this.shown[i].isWhole === isWhole) continue;
      const box = h("div", { class: "block" });
      const html = marked.parser(Object.assign([blocks[i]], { links }));
      box.append(DOMPurify.sanitize(html, kAllowed));
      dress(box);
      if (i < this.shown.length) this.shown[i].box.replaceWith(box);
      else this.element.append(box);
      if (isWhole) box.querySelectorAll("pre code").forEach((code) => colour(code, languageOf(code)));
      this.shown[i] = { raw: blocks[i].raw, isWhole, box };
    }
    for (const { box } of this.shown.splice(blocks.length)) box.remove();
  }
}

/// Splits what a model thinks aloud, `<think>...</think>` at the beginning, from what it answers:
/// {thought, answer, isThinking}.
export function splitThought(text) {
  const match = /^\s*<think>([\s\S]*?)(<\/think>|$)/.exec(text);
  if (!match) return { thought: "", answer: text, isThinking: false };
  return { thought: match[1].trim(), answer: text.slice(match[0].length).trimStart(), isThinking: match[2] === "" };
}
