/** Sliders, facts and redrawing, shared by the four parts of the page. */

/** The element of a name; a name without an element is a defect of the page. */
export function at(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element ${id}`);
  return found;
}

/** Calls `draw` once before the next frame, however often it is asked. */
export function coalesced(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}

/**
 * A slider by its id: the value is `map` of its position, shown by `say` beside it.
 */
export function slider(id, onInput, map = (x) => x, say = String) {
  const input = at(id);
  const output = at(`${id}-value`);
  const tell = () => {
    const text = say(map(Number(input.value)));
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
  };
  input.addEventListener("input", () => {
    tell();
    onInput();
  });
  tell();
  return {
    get value() { return map(Number(input.value)); },
    get position() { return Number(input.value); },
    set position(value) {
      input.value = value;
      tell();
    },
    set largest(value) {
      input.max = value;
      tell();
    },
  };
}

/** Put numbers into the facts of a list, by the names of their places. */
export function tell(facts) {
  for (const [id, text] of Object.entries(facts)) {
    const place = at(id);
    if (place.textContent !== text) place.textContent = text;
  }
}

/** Whether the reader asked for less motion. */
export function still() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/**
 * A film of `seconds`: `show` gets the share of the time that has passed, from 0 to 1. At once the
 * end where less motion is asked for. The returned function stops the film.
 */
export function film(seconds, show) {
  let running = !still();
  if (!running) show(1);
  const began = performance.now();
  const frame = (time) => {
    if (!running) return;
    const share = Math.min(Math.max((time - began) / (1000 * seconds), 0), 1);
    show(share);
    running = share < 1;
    if (running) requestAnimationFrame(frame);
  };
  if (running) requestAnimationFrame(frame);
  return () => { running = false; };
}

/** Draw again when the figure's width changes. */
export function onResize(element, draw) {
  let width = 0;
  new ResizeObserver(() => {
    if (element.clientWidth !== width) {
      width = element.clientWidth;
      draw();
    }
  }).observe(element);
}
