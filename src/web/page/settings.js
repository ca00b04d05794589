// The sheet with the conversation's instructions (system prompt) and sampling parameters.
import { apiKey } from "./api.js";
import { byId, closesOnBackdrop, h, iconButton, toast } from "./dom.js";
import { faultOf, kSampling } from "./sampling.js";
import { recall, remember } from "./store.js";

/// What new conversations begin with.
export const defaultSettings = () => recall("settings", {});

function samplingField(parameter, settings, serverDefault, onChange) {
  const { name, label, hint, fallback } = parameter;
  const known = Number.isFinite(serverDefault) ? String(+serverDefault.toFixed(4)) : fallback;
  const input = h("input", { type: "text", inputmode: parameter.step === 1 ? "numeric" : "decimal",
                             id: `set-${name}`, placeholder: known, autocomplete: "off",
                             "aria-describedby": `hint-${name}` });
  input.value = settings[name] ?? "";
  const note = h("p", { class: "hint", id: `hint-${name}`, text: hint });
  input.addEventListener("input", () => {
    const fault = faultOf(parameter, input.value);
    input.setAttribute("aria-invalid", String(fault !== ""));
    note.textContent = fault || hint;
    note.classList.toggle("fault", fault !== "");
    if (fault || input.value.trim() === "") delete settings[name];
    else settings[name] = Number(input.value);
    onChange();
  });
  return h("div", { class: "field" }, h("label", { for: `set-${name}`, text: label }), input, note);
}

/// Opens the sheet on `conversation`. `about`: of its model. `onChange` after each change; `askKey` to
/// enter or change the API key.
export function openSettings({ conversation, about, onChange, askKey }) {
  const dialog = byId("settings");
  const { settings } = conversation;
  const system = h("textarea", { class: "box", id: "set-system", rows: "5", "aria-describedby": "hint-system",
                                 placeholder: "You are a helpful assistant who…" });
  system.value = settings.system ?? "";
  system.addEventListener("input", () => {
    settings.system = system.value;
    onChange();
  });
  const saveAsDefault = () => {
    remember("settings", settings);
    toast("New chats begin with these");
  };
  const clear = () => {
    Object.keys(settings).forEach((name) => delete settings[name]);
    onChange();
    openSettings({ conversation, about, onChange, askKey });
  };
  const keyRow = h("div", { class: "key-row" },
    h("span", { text: apiKey.get() ? "An API key is set for this tab" : "No API key" }),
    h("button", { type: "button", class: "button", text: apiKey.get() ? "Change" : "Enter",
                  on: { click: () => { dialog.close(); askKey(); } } }));
  dialog.replaceChildren(h("div", { class: "sheet-inner" },
    h("header", { class: "sheet-head" }, h("h2", { id: "settings-title", text: "This conversation" }),
      iconButton("close", "Close", () => dialog.close())),
    h("div", { class: "sheet-body" },
      about.isBase
        ? h("p", { class: "sheet-note", text: "A base model takes no instructions: it goes on with the text." })
        : h("div", { class: "field" }, h("label", { for: "set-system", text: "Instructions" }), system,
            h("p", { class: "hint", id: "hint-system", text: "The system prompt: who the model is and how it answers." })),
      h("h3", { text: "Sampling" }),
      h("div", { class: "sampling" },
        kSampling.map((each) => samplingField(each, settings, about.sampling[each.name], onChange))),
      h("p", { class: "sheet-note", text: "An empty field leaves the choice to the server." }),
      keyRow),
    h("footer", { class: "sheet-foot" },
      h("button", { type: "button", class: "button quiet", text: "Clear all", on: { click: clear } }),
      h("button", { type: "button", class: "button", text: "Use for new chats", on: { click: saveAsDefault } }))));
  if (!dialog.dataset.isReady) closesOnBackdrop(dialog);
  dialog.dataset.isReady = "yes";
  if (!dialog.open) dialog.showModal();
}

const kShortcuts = [
  [["Enter"], "Send"],
  [["Shift", "Enter"], "New line"],
  [["Esc"], "Stop the answer"],
  [["↑"], "Edit your last message, from an empty field"],
  [["Alt", "N"], "New chat"],
  [["Alt", "I"], "Instructions and sampling"],
  [["Ctrl", "/"], "This list"],
];

const kLibraries = [["marked", "marked"], ["DOMPurify", "purify"], ["highlight.js", "highlight"], ["Chart.js", "chart"]];

export function openShortcuts() {
  const dialog = byId("shortcuts");
  dialog.replaceChildren(
    h("header", { class: "sheet-head" }, h("h2", { id: "shortcuts-title", text: "Keyboard" }),
      iconButton("close", "Close", () => dialog.close())),
    h("dl", { class: "shortcut-list" }, kShortcuts.map(([keys, text]) =>
      h("div", {}, h("dt", {}, keys.map((key) => h("kbd", { text: key }))), h("dd", { text })))),
    h("p", { class: "credits" }, "Made with ", kLibraries.map(([name, file], i) =>
      [i > 0 ? ", " : "", h("a", { href: `assets/lib/${file}.txt`, target: "_blank", rel: "noopener", text: name })])));
  if (!dialog.dataset.isReady) closesOnBackdrop(dialog);
  dialog.dataset.isReady = "yes";
  if (!dialog.open) dialog.showModal();
}
