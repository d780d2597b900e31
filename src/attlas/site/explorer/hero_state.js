/** What the address says of the film: the exponent, the step, and where words were moved to. */

/** A fragment as { p, step, words }; null where it is about something else. */
export function readHero(fragment, count) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  const p = Number(fields.get("p"));
  if (!(p > 1 && p <= 4)) return null;
  const step = Math.max(Number.parseInt(fields.get("step") ?? "0", 10) || 0, 0);
  const places = (fields.get("words") ?? "").split(";").map((pair) => pair.split(",").map(Number));
  const usable = places.length === count
    && places.every((place) => place.length === 2 && place.every((x) => Math.abs(x) <= 1.6));
  return { p, step, words: usable ? places : null };
}

/** The state as a fragment; places of words only where `moved`. */
export function writeHero({ p, step, words, moved }) {
  const places = words.map((place) => place.map((x) => Number(x.toFixed(2))).join(",")).join(";");
  return `p=${p}&step=${step}${moved ? `&words=${places}` : ""}`;
}
