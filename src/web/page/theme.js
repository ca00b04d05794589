// Runs before the page is painted: applies the theme that the reader chose, if any. Without a choice
// the browser's own applies. Not a module, for those run later.
"use strict";
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("headrace.theme");
  } catch {
    // storage is forbidden here: the browser's theme it is
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
