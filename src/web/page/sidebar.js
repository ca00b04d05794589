// The list of conversations: open, search, rename, delete, export, import; on a phone it is a drawer.
import { announce, byId, h, icon, iconButton } from "./dom.js";
import { dayName } from "./format.js";

const titleOf = (conversation) => conversation.title || "New chat";

export class Sidebar {
  /// `actions`: open(id), create(), rename(conversation, title), remove(conversation), exportJson(conversation),
  /// importFile(file).
  constructor(actions) {
    this.actions = actions;
    this.items = [];
    this.current = "";
    this.list = byId("conversations");
    this.menu = byId("item-menu");
    this.search = byId("search");
    this.search.addEventListener("input", () => this.render());
    for (const id of ["new-chat", "new-chat-top"]) byId(id).addEventListener("click", () => this.leaveFor(actions.create));
    const picker = byId("import-file");
    byId("import-button").addEventListener("click", () => picker.click());
    picker.addEventListener("change", () => {
      const [file] = picker.files;
      picker.value = "";  // the same file may be chosen again
      if (file) this.leaveFor(() => actions.importFile(file));
    });
    byId("open-drawer").addEventListener("click", () => this.setDrawer(true));
    byId("close-drawer").addEventListener("click", () => this.setDrawer(false));
    byId("scrim").addEventListener("click", () => this.setDrawer(false));
    this.menu.addEventListener("keydown", (event) => this.onMenuKey(event));
    this.narrow = matchMedia("(max-width: 820px)");
    this.narrow.addEventListener("change", () => this.setDrawer(false));
    this.setDrawer(false);
  }

  leaveFor(action) {
    this.setDrawer(false);
    action();
  }

  setDrawer(isOpen) {
    const sidebar = byId("sidebar");
    const wasOpen = document.body.classList.contains("drawer-open");
    document.body.classList.toggle("drawer-open", isOpen);
    sidebar.inert = this.narrow.matches && !isOpen;
    byId("main").inert = this.narrow.matches && isOpen;
    byId("scrim").hidden = !isOpen;
    byId("open-drawer").setAttribute("aria-expanded", String(isOpen));
    if (isOpen) byId("close-drawer").focus();
    else if (wasOpen && this.narrow.matches) byId("open-drawer").focus();
  }

  get isDrawerOpen() {
    return document.body.classList.contains("drawer-open");
  }

  /// Shows these, the newest first; `busy` are the ids of those with an answer under way.
  show(conversations, current, busy = new Set()) {
    this.items = conversations;
    this.current = current;
    this.busy = busy;
    this.render();
  }

  render() {
    if (this.list.querySelector(".rename")) return;
    const wanted = this.search.value.trim().toLowerCase();
    const found = this.items.filter((each) => !wanted || contains(each, wanted));
    const focused = document.activeElement?.closest?.("[data-id]")?.dataset.id;
    const groups = Map.groupBy(found, (each) => dayName(each.updated));
    this.list.replaceChildren(...[...groups].map(([day, members]) =>
      h("section", { class: "day" }, h("h2", { text: day }), h("ul", {}, members.map((each) => this.item(each))))));
    if (found.length === 0) {
      this.list.append(h("p", { class: "nothing", text: wanted ? "Nothing found" : "Your conversations will be here." }));
    }
    if (focused) this.list.querySelector(`[data-id="${CSS.escape(focused)}"] .open`)?.focus();
  }

  item(conversation) {
    const isCurrent = conversation.id === this.current;
    const more = iconButton("more", `More for ${titleOf(conversation)}`, () => this.openMenu(conversation, more),
                            { "aria-haspopup": "menu", class: "small more" });
    const mark = this.busy.has(conversation.id) ? h("span", { class: "busy", role: "img", "aria-label": "is being answered" }) : null;
    return h("li", { "data-id": conversation.id, class: isCurrent ? "current" : "" },
             h("button", { type: "button", class: "open", "aria-current": isCurrent ? "page" : null,
                           on: { click: () => this.leaveFor(() => this.actions.open(conversation.id)) } },
               h("span", { class: "title", text: titleOf(conversation) }), mark),
             more);
  }

  openMenu(conversation, button) {
    const entry = (name, text, run, extra = "") =>
      h("button", { type: "button", role: "menuitem", class: `menu-item ${extra}`,
                    on: { click: () => { this.menu.hidePopover(); run(); } } }, icon(name), text);
    this.menu.replaceChildren(
      entry("edit", "Rename", () => this.rename(conversation)),
      entry("download", "Export JSON", () => this.actions.exportJson(conversation)),
      entry("trash", "Delete", () => this.actions.remove(conversation), "danger"));
    this.menuButton = button;
    this.menu.showPopover();
    const box = button.getBoundingClientRect();
    const height = this.menu.offsetHeight;
    const top = box.bottom + height + 8 > innerHeight ? box.top - height - 4 : box.bottom + 4;
    this.menu.style.top = `${Math.max(8, top)}px`;
    this.menu.style.left = `${Math.min(box.left, innerWidth - this.menu.offsetWidth - 8)}px`;
    this.menu.firstChild.focus();
  }

  onMenuKey(event) {
    const entries = [...this.menu.children];
    const at = entries.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) entries[(at + step + entries.length) % entries.length].focus();
    else if (event.key === "Home") entries[0].focus();
    else if (event.key === "End") entries.at(-1).focus();
    else if (event.key === "Escape" || event.key === "Tab") {
      this.menu.hidePopover();
      this.menuButton?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  rename(conversation) {
    const row = this.list.querySelector(`[data-id="${CSS.escape(conversation.id)}"]`);
    if (!row) return;
    const field = h("input", { type: "text", class: "rename", "aria-label": "Name of the conversation", maxlength: "200" });
    field.value = titleOf(conversation);
    let isOver = false;
    const end = (keep) => {
      if (isOver) return;
      isOver = true;
      const title = field.value.trim();
      field.remove();
      if (keep && title && title !== conversation.title) {
        this.actions.rename(conversation, title);
        announce(`Renamed to ${title}`);
      }
      this.render();
      this.list.querySelector(`[data-id="${CSS.escape(conversation.id)}"] .open`)?.focus();
    };
    field.addEventListener("blur", () => end(true));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") end(true);
      else if (event.key === "Escape") end(false);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    row.replaceChildren(field);
    field.select();
  }
}

function contains(conversation, wanted) {
  return titleOf(conversation).toLowerCase().includes(wanted)
    || Object.values(conversation.nodes).some((node) => node.text.toLowerCase().includes(wanted));
}
