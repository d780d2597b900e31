/** A plane whose points are moved by pointer or by arrow keys. */
import { svg } from "./drawing.js";

const REACH = 1.6;
const STEP = 0.05;
const FINE_STEP = 0.01;

/** From coordinates in [-1.6, 1.6] to those of the drawing, where y points down. */
export function place([x, y]) {
  return [100 * x, -100 * y];
}

/** Prepare the drawing and its layers: marks below, handles above. */
export function makePlane(target) {
  const edge = 100 * REACH;
  target.setAttribute("viewBox", `${-edge} ${-edge} ${2 * edge} ${2 * edge}`);
  const back = svg("g", { class: "axes" });
  back.append(svg("line", { x1: -edge, x2: edge, y1: 0, y2: 0 }));
  back.append(svg("line", { y1: -edge, y2: edge, x1: 0, x2: 0 }));
  const marks = svg("g");
  const handles = svg("g");
  target.replaceChildren(back, marks, handles);
  return { target, marks, handles };
}

function clamp(value) {
  return Math.min(Math.max(value, -REACH + 0.05), REACH - 0.05);
}

/** Where a pointer is, in the plane's coordinates. */
function pointerPlace(target, event) {
  const matrix = target.getScreenCTM().inverse();
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
  return [clamp(point.x / 100), clamp(-point.y / 100)];
}

/**
 * A handle: drag it, or focus it and press the arrow keys (with Shift for a fifth of the step).
 *
 * `read` gives its place and `write` takes a new one.
 */
export function addHandle(plane, { shape, label, className, read, write }) {
  const handle = svg("g", {
    class: `handle ${className}`, tabindex: 0, role: "slider", "aria-label": label,
    "aria-valuemin": -REACH, "aria-valuemax": REACH, "aria-orientation": "horizontal",
  });
  handle.append(svg("circle", { r: 16, class: "touch" }), shape);
  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    handle.focus({ preventScroll: true });
    event.preventDefault();
  });
  handle.addEventListener("pointermove", (event) => {
    if (handle.hasPointerCapture(event.pointerId)) write(pointerPlace(plane.target, event));
  });
  handle.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const move = moves[event.key];
    if (!move) return;
    const step = event.shiftKey ? FINE_STEP : STEP;
    write(read().map((value, k) => clamp(Math.round((value + step * move[k]) * 1e6) / 1e6)));
    event.preventDefault();
  });
  plane.handles.append(handle);
  return () => {
    const [x, y] = read();
    handle.setAttribute("transform", `translate(${place([x, y]).join(" ")})`);
    handle.setAttribute("aria-valuenow", x.toFixed(2));
    handle.setAttribute("aria-valuetext", `${x.toFixed(2)}, ${y.toFixed(2)}`);
  };
}

/** An arrow from one point to another, as a path. */
export function arrow(from, to) {
  const [a, b] = [place(from), place(to)];
  const angle = Math.atan2(b[1] - a[1], b[0] - a[0]);
  const side = (turn) => [b[0] - 8 * Math.cos(angle + turn), b[1] - 8 * Math.sin(angle + turn)];
  const [left, right] = [side(0.45), side(-0.45)];
  return `M${a.join(" ")}L${b.join(" ")}M${left.join(" ")}L${b.join(" ")}L${right.join(" ")}`;
}
