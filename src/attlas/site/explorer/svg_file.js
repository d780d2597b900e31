/** A drawing of the page as a file of its own: the colours that style sheets gave become attributes. */

const LOOKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "opacity", "font-family", "font-size", "font-weight", "text-anchor"];

/** The text of an SVG file that looks like `drawing` and needs no style sheet. */
export function svgFile(drawing, size) {
  const copy = drawing.cloneNode(true);
  const shown = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, k) => {
    const style = getComputedStyle(shown[k]);
    for (const name of LOOKS) element.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "id"]) element.removeAttribute(name);
  });
  copy.setAttribute("width", size);
  copy.setAttribute("height", size);
  return new XMLSerializer().serializeToString(copy);
}

/** Offers a text as a download. */
export function download(name, text, kind) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
