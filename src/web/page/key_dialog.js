// Asks for the API key when the server wants one. The key stays in this tab (sessionStorage).
import { apiKey } from "./api.js";
import { byId, closesOnBackdrop, h } from "./dom.js";

let pending = null;

/// Shows the dialog; resolves to true if a key was entered. Asking twice at once is one dialog.
export function askForKey(message) {
  pending ??= show(message).finally(() => { pending = null; });
  return pending;
}

function show(message) {
  const dialog = byId("key-dialog");
  const field = h("input", { type: "password", id: "key", autocomplete: "off", spellcheck: "false",
                             "aria-describedby": "key-hint", required: true });
  field.value = apiKey.get();
  const form = h("form", {},
    h("h2", { id: "key-title", text: "API key" }),
    h("p", { class: "modal-lead", text: message || "The server wants an API key." }),
    h("div", { class: "field" }, h("label", { for: "key", text: "Key" }), field,
      h("p", { class: "hint", id: "key-hint", text: "Kept in this tab only, and sent to this server alone." })),
    h("div", { class: "modal-buttons" },
      h("button", { type: "button", class: "button quiet", text: "Cancel", on: { click: () => dialog.close() } }),
      h("button", { type: "submit", class: "button primary", text: "Use this key" })));
  dialog.replaceChildren(form);
  return new Promise((resolve) => {
    let entered = false;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      apiKey.set(field.value.trim());
      entered = true;
      dialog.close();
    });
    dialog.addEventListener("close", () => resolve(entered), { once: true });
    if (!dialog.dataset.isReady) closesOnBackdrop(dialog);
    dialog.dataset.isReady = "yes";
    dialog.showModal();
  });
}
