// Keeps conversations in the browser's IndexedDB and tells other tabs of changes. Where there is no
// IndexedDB (some private windows) they live as long as the page.

const memory = new Map();
let database = null;
const channel = "BroadcastChannel" in window ? new BroadcastChannel("headrace") : null;

function openDatabase() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("headrace", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("conversations", { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function perform(mode, action) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction("conversations", mode);
    const request = action(transaction.objectStore("conversations"));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = () => reject(transaction.error);
    transaction.onabort = () => reject(transaction.error);
  });
}

/// Opens the store; false if nothing will outlive the page. `onOtherTab(id)` is called when another tab
/// changed a conversation.
export async function openStore(onOtherTab) {
  if (channel) channel.onmessage = ({ data }) => onOtherTab(data);
  try {
    database = await openDatabase();
    return true;
  } catch {
    return false;
  }
}

/// All conversations, the one that changed last first.
export async function listConversations() {
  const all = database ? await perform("readonly", (store) => store.getAll()) : [...memory.values()];
  return all.sort((a, b) => b.updated - a.updated);
}

export const loadConversation = async (id) =>
  (database ? perform("readonly", (store) => store.get(id)) : memory.get(id));

export async function saveConversation(conversation) {
  if (database) await perform("readwrite", (store) => store.put(conversation));
  else memory.set(conversation.id, conversation);
  channel?.postMessage(conversation.id);
}

export async function removeConversation(id) {
  if (database) await perform("readwrite", (store) => store.delete(id));
  else memory.delete(id);
  channel?.postMessage(id);
}

/// Small settings of the reader; nothing breaks where they cannot be kept.
export function remember(name, value) {
  try {
    localStorage.setItem(`headrace.${name}`, JSON.stringify(value));
  } catch {
    // they hold until the page is left
  }
}

export function recall(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`headrace.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}
