/** The key "/" goes to the search, on this page or on the front page. */

const WRITES = new Set(["INPUT", "SELECT", "TEXTAREA"]);

/** Listens for the key. */
export function startKeys() {
  addEventListener("keydown", (event) => {
    const plain = !(event.ctrlKey || event.metaKey || event.altKey);
    if (event.key !== "/" || !plain || WRITES.has(document.activeElement?.tagName)) return;
    event.preventDefault();
    const field = document.getElementById("q");
    if (field) field.focus();
    else document.querySelector("a.to-search")?.click();
  });
}
