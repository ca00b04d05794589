// Puts the chat page together: which conversation shows, which answers are being written, what is kept.
import { writeAnswer } from "./answer.js";
import { Composer } from "./composer.js";
import { addNode, kRoot, newConversation, pathOf, settle } from "./conversation.js";
import { announce, byId, h, themeButton, toast } from "./dom.js";
import { importedConversation, kMaxFileBytes } from "./import_file.js";
import { askForKey } from "./key_dialog.js";
import { splitThought } from "./markdown.js";
import { aboutModel, loadModels, modelNames, modelOr } from "./models.js";
import { defaultSettings, openSettings, openShortcuts } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import { listConversations, loadConversation, openStore, recall, remember, removeConversation, saveConversation } from "./store.js";
import { ThreadView } from "./thread_view.js";

const kDrawEvery = 30;  // ms between two views of an answer that is being written, at least
const kSaveEvery = 1000;  // ms between two saves of an answer that is being written
const kAskModelsEvery = 2000;  // ms, while the server does not say which models there are
const kAnnounceLimit = 1000;  // characters of an answer that are read aloud at once

const runs = new Map();  // conversation id -> {conversation, controller}
let current = null;      // the conversation that shows; without messages it is not stored yet
let about = { isBase: false, contextTokens: 0, sampling: {} };

const thread = new ThreadView({
  edit: (node, text) => edit(node, text),
  retry: (node) => retry(node),
  branch: (node, sibling) => showBranch(node, sibling),
  askKey: async (node) => { if (await askForKey()) retry(node); },
  suggest: (text) => { composer.set(text); composer.focus(); },
});
const composer = new Composer({ send: (text) => ask(text), stop: () => stop(), editLast: () => thread.editLast() });
const sidebar = new Sidebar({
  open: (id) => { location.hash = id; },
  create: () => create(),
  rename: (conversation, title) => rename(conversation, title),
  remove: (conversation) => remove(conversation),
  exportJson: (conversation) => exportJson(conversation),
  importFile: (file) => importFile(file),
});

// What shows

async function refreshList() {
  const stored = await listConversations();
  const list = stored.map((each) => runs.get(each.id)?.conversation ?? (each.id === current.id ? current : each));
  sidebar.show(list, current.id, new Set(runs.keys()));
}

function refreshState() {
  const path = pathOf(current);
  composer.setState({ isBusy: runs.has(current.id), isBase: about.isBase, mayBeEmpty: about.isBase && path.length > 0 });
  byId("mode-note").hidden = !about.isBase;
  byId("heading").textContent = current.title || "New chat";
  document.title = current.title ? `${current.title} – Headrace` : "Headrace";
  document.body.classList.toggle("is-busy", runs.has(current.id));
}

async function show(conversation) {
  current = conversation;
  const model = modelOr(conversation.model);
  const known = model ? await aboutModel(model) : about;
  if (current !== conversation || modelOr(conversation.model) !== model) return;  // another choice was made
  about = known;
  if (model) byId("model").value = model;
  thread.show(current, model, about);
  refreshState();
  await refreshList();
}

function create() {
  history.replaceState(null, "", location.pathname + location.search);
  show(newConversation(modelOr(recall("model", "")), defaultSettings()));
  composer.focus();
}

async function openFromAddress() {
  const id = location.hash.slice(1);
  if (current && id === current.id) return;
  const stored = id ? runs.get(id)?.conversation ?? await loadConversation(id) : null;
  if (!stored) return create();
  await show(runs.has(id) ? stored : settle(stored));
}

// Questions and answers

async function save(conversation) {
  try {
    await saveConversation(conversation);
  } catch {
    toast("The browser could not keep this conversation");
  }
}

async function answer(conversation, parent) {
  const isBase = about.isBase;
  const node = addNode(conversation, parent, { role: "assistant", status: "streaming", model: modelOr(conversation.model), isBase });
  const controller = new AbortController();
  runs.set(conversation.id, { conversation, controller });
  const isShown = () => current === conversation;
  let isWaiting = false;  // a view is under way, or has just been
  let isStale = false;    // what came since is not shown yet
  let saved = performance.now();
  const draw = () => {
    const begin = performance.now();
    isStale = false;
    if (isShown()) thread.updateNode(node);
    // Most of the time is left to others: the model may run on this machine too.
    const pause = Math.max(kDrawEvery, 4 * (performance.now() - begin));
    setTimeout(() => {
      isWaiting = false;
      if (isStale) drawSoon();
    }, pause);
  };
  const drawSoon = () => {
    isStale = true;
    if (!isWaiting) requestAnimationFrame(draw);
    isWaiting = true;
  };
  const onChange = () => {
    drawSoon();
    if (performance.now() - saved < kSaveEvery) return;
    saved = performance.now();
    save(conversation);
  };
  thread.refresh(node.model, about);
  thread.toEnd();
  refreshState();
  save(conversation).then(refreshList);
  await writeAnswer({ conversation, node, isBase, signal: controller.signal, onChange });
  runs.delete(conversation.id);
  await save(conversation);
  if (isShown()) {
    thread.updateNode(node);
    refreshState();
    if (node.status !== "error") announce(endingOf(node));  // an error's box is an alert
  }
  refreshList();
  if (node.error?.status === 401 && isShown() && await askForKey(node.error.message)) {
    await startModels();
    retry(node);
  }
}

function endingOf(node) {
  const text = splitThought(node.text).answer.slice(0, kAnnounceLimit);
  if (node.status === "cut") return `The answer was cut off. ${text}`;
  return node.status === "stopped" ? "Stopped." : `Answer: ${text}`;
}

function ask(text) {
  const conversation = current;
  if (runs.has(conversation.id)) return;
  if (!modelOr(conversation.model)) {
    composer.set(text);
    toast("There is no model to ask yet");
    return;
  }
  let parent = pathOf(conversation).at(-1)?.id ?? kRoot;
  if (text !== "") parent = addNode(conversation, parent, { role: "user", text: about.isBase ? text : text.trim() }).id;
  if (location.hash.slice(1) !== conversation.id) history.replaceState(null, "", `#${conversation.id}`);
  answer(conversation, parent);
}

function edit(node, text) {
  if (runs.has(current.id)) return;
  const fresh = addNode(current, node.parent, { role: "user", text });
  answer(current, fresh.id);
}

function retry(node) {
  if (!runs.has(current.id)) answer(current, node.parent);
}

function showBranch(node, sibling) {
  current.chosen[node.parent] = sibling;
  thread.refresh(modelOr(current.model), about);
  thread.views.get(sibling)?.element.querySelector(".branches button:not(:disabled)")?.focus();
  refreshState();
  save(current);
}

function stop() {
  runs.get(current.id)?.controller.abort();
}

// The list's actions

async function rename(conversation, title) {
  Object.assign(conversation, { title, named: true });
  await save(conversation);
  refreshState();
  refreshList();
}

async function remove(conversation) {
  runs.get(conversation.id)?.controller.abort();
  await removeConversation(conversation.id);
  const wasCurrent = conversation.id === current.id;
  if (wasCurrent) create();
  else refreshList();
  const undo = async () => {
    await save(conversation);
    if (wasCurrent) location.hash = conversation.id;
    refreshList();
  };
  toast("Conversation deleted", { label: "Undo", run: undo });
}

function exportJson(conversation) {
  const blob = new Blob([JSON.stringify(conversation, null, 2)], { type: "application/json" });
  const name = (conversation.title || "conversation").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);
  const link = h("a", { href: URL.createObjectURL(blob), download: `${name || "conversation"}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function importFile(file) {
  try {
    if (file.size > kMaxFileBytes) throw new Error(`The file has more than ${kMaxFileBytes >> 20} MiB.`);
    const conversation = importedConversation(await file.text());
    await save(conversation);
    location.hash = conversation.id;
    announce(`Imported ${conversation.title}`);
  } catch (error) {
    toast(error.message);
  }
}

// Models and settings

function showProblem(message, action) {
  thread.setProblem(message ? { message, action } : null);
  thread.refresh(modelOr(current.model), about);
}

/// Asks for the models: again and again while the server cannot say, and with a key if it wants one.
/// Without a key that is left to a button.
async function startModels() {
  for (;;) {
    try {
      await loadModels();
      break;
    } catch (error) {
      const isClosed = error.status === 401;
      if (isClosed && await askForKey(error.message)) continue;
      showProblem(error.message, isClosed ? { label: "Enter key", run: startModels } : null);
      if (isClosed) return;
      await new Promise((resolve) => { setTimeout(resolve, kAskModelsEvery); });
    }
  }
  const select = byId("model");
  select.replaceChildren(...modelNames().map((name) => h("option", { value: name, text: name })));
  select.disabled = modelNames().length === 0;
  select.value = modelOr(current.model);
  showProblem(select.disabled ? "The server has no model." : "");
  await show(current);
  document.body.dataset.state = "ready";
}

async function chooseModel(name) {
  current.model = name;
  remember("model", name);
  if (pathOf(current).length > 0) save(current);
  await show(current);
}

function showSettings() {
  const conversation = current;
  const onChange = () => { if (pathOf(conversation).length > 0) save(conversation); };
  const askKey = async () => { if (await askForKey()) startModels(); };
  openSettings({ conversation, about, onChange, askKey });
}

function onKey(event) {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (sidebar.isDrawerOpen) sidebar.setDrawer(false);
    else stop();
  } else if (event.altKey && event.code === "KeyN") {
    create();
  } else if (event.altKey && event.code === "KeyI") {
    showSettings();
  } else if ((event.ctrlKey || event.metaKey) && event.key === "/") {
    openShortcuts();
  } else {
    return;
  }
  event.preventDefault();
}

async function onOtherTab(id) {
  if (!current || runs.has(id)) return;
  const stored = id === current.id ? await loadConversation(id) : null;
  if (stored) show(stored);
  else refreshList();
}

async function start() {
  themeButton(byId("theme-button"));
  byId("shortcuts-button").addEventListener("click", openShortcuts);
  byId("settings-button").addEventListener("click", showSettings);
  byId("model").addEventListener("change", (event) => chooseModel(event.target.value));
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", openFromAddress);
  const isKept = await openStore(onOtherTab);
  if (!isKept) byId("fine-print").textContent = "Models make mistakes. This browser will not keep your conversations.";
  await openFromAddress();
  composer.focus();
  startModels();
}

start();
