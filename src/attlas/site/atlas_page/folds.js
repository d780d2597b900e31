/** Folds that open when the address names something inside them. */

/** Opens every fold around the element that the address names, and shows it. */
export function openFolds() {
  const named = document.querySelector(":target");
  if (!named) return;
  let shut = false;
  for (let fold = named.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    shut ||= !fold.open;
    fold.open = true;
  }
  if (shut) named.scrollIntoView();
}

/** Makes the folds of this page open. */
export function startFolds() {
  addEventListener("hashchange", openFolds);
  openFolds();
}
