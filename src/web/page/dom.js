// Making and finding elements, the live region, toasts, the theme. Knows nothing of conversations.

export const byId = (id) => document.getElementById(id);

/// Makes an element. `props` are attributes, but for: `class`, `text` (textContent), `on` (an object of
/// listeners), and true/false, which set or leave out. There is no way to pass HTML or a style
/// attribute: the page's content policy forbids the one and its safety the other.
export function h(name, props = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") element.textContent = value;
    else if (key === "on") Object.entries(value).forEach(([event, f]) => element.addEventListener(event, f));
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/// An icon of the sprite in the page, invisible to screen readers.
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

export function setIcon(button, name) {
  button.querySelector("use").setAttribute("href", `#i-${name}`);
}

/// A button that shows an icon only; `label` is its name for everybody else.
export function iconButton(name, label, onClick, props = {}) {
  const { class: extra = "small", ...rest } = props;
  return h("button", { type: "button", class: `icon-button ${extra}`, "aria-label": label, title: label,
                       on: { click: onClick }, ...rest }, icon(name));
}

/// Says `text` to screen readers.
export function announce(text) {
  const region = byId("announcer");
  if (region.textContent === text) region.textContent = "";
  requestAnimationFrame(() => { region.textContent = text; });
}

/// Shows a line at the bottom for some seconds, with one button if `action` is {label, run}.
export function toast(text, action) {
  const note = h("div", { class: "toast", role: "status" }, h("span", { text }));
  const leave = () => note.remove();
  if (action) {
    note.append(h("button", { type: "button", text: action.label, on: { click: () => { leave(); action.run(); } } }));
  }
  byId("toasts").append(note);
  setTimeout(leave, action ? 8000 : 4000);
}

/// Copies to the clipboard; the old way where a page without TLS has no clipboard.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const box = h("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    box.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(box);
    box.select();
    const copied = document.execCommand("copy");
    box.remove();
    return copied;
  }
}

/// Copies and shows on the button for two seconds that it worked.
export async function copyFrom(button, text) {
  const copied = await copyText(text);
  announce(copied ? "Copied" : "The browser did not allow copying");
  if (!copied) return;
  setIcon(button, "check");
  setTimeout(() => setIcon(button, "copy"), 2000);
}

const isDark = () => (document.documentElement.dataset.theme
  ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

/// The button that switches between light and dark. `onChange` runs after each change, the system's too.
export function themeButton(button, onChange = () => {}) {
  const show = () => {
    setIcon(button, isDark() ? "sun" : "moon");
    button.title = isDark() ? "Light theme" : "Dark theme";
    button.setAttribute("aria-label", button.title);
    onChange();
  };
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("headrace.theme", theme);
    } catch {
      // it holds until the page is left
    }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}

/// Closes a <dialog> when its backdrop is clicked.
export function closesOnBackdrop(dialog) {
  dialog.addEventListener("pointerdown", (event) => {
    if (event.target !== dialog) return;
    const box = dialog.getBoundingClientRect();
    const inside = event.clientX >= box.left && event.clientX <= box.right
      && event.clientY >= box.top && event.clientY <= box.bottom;
    if (!inside) dialog.close();
  });
}
