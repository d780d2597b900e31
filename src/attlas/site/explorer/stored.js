/** The random numbers that the library drew for this page. */
import { at } from "./controls.js";
import { fromBase64 } from "./numbers.js";

/** The arrays of a part, by name. */
export function stored(part) {
  const texts = JSON.parse(at("stored").textContent)[part];
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fromBase64(text)]));
}
