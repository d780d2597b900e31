/** The meaning of a term while the pointer is on it or the focus: what the foot of the page says. */

const GAP = 8;

function placed(box, link) {
  const own = link.getBoundingClientRect(), size = box.getBoundingClientRect();
  const wide = document.documentElement.clientWidth;
  const left = Math.max(GAP, Math.min(own.left, wide - size.width - GAP));
  const below = own.bottom + GAP + size.height <= innerHeight || own.top < size.height + GAP;
  box.style.left = `${left + scrollX}px`;
  box.style.top = `${(below ? own.bottom + GAP : own.top - size.height - GAP) + scrollY}px`;
}

/** Makes the terms of this page tell their meaning. */
export function startTerms() {
  const links = document.querySelectorAll("a.term");
  if (!links.length) return;
  const box = document.createElement("div");
  box.className = "tip";
  box.hidden = true;
  // The link is described by the foot of the page already: a reader must not hear it twice.
  box.setAttribute("aria-hidden", "true");
  document.body.append(box);
  let leaving = 0;
  const hide = () => { box.hidden = true; };
  const leave = () => { leaving = setTimeout(hide, 200); };
  const show = (link) => {
    const told = document.getElementById(link.getAttribute("aria-describedby"));
    if (!told) return;
    clearTimeout(leaving);
    box.replaceChildren(...[...told.childNodes].map((node) => node.cloneNode(true)));
    box.hidden = false;
    placed(box, link);
  };
  for (const link of links) {
    link.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") show(link); });
    link.addEventListener("pointerleave", leave);
    link.addEventListener("focus", () => show(link));
    link.addEventListener("blur", hide);
  }
  box.addEventListener("pointerenter", () => clearTimeout(leaving));
  box.addEventListener("pointerleave", leave);
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
}
