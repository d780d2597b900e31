/** One sentence, its words in the plane, and the attention that mirror descent ends with. */
import { attentionSvm } from "./attention_svm.js";
import { at, coalesced, film, slider, tell } from "./controls.js";
import { html, svg } from "./drawing.js";
import { readHero, writeHero } from "./hero_state.js";
import { optimalTokens, recordedSteps, trainSelection } from "./mirror_descent.js";
import { matVec, softmax } from "./numbers.js";
import { addHandle, arrow, makePlane, place } from "./plane.js";
import { download, svgFile } from "./svg_file.js";

const WORDS = ["a", "slow", "start", "but", "the", "ending", "is", "brilliant"];
const PLACES = [[-0.5, 1.05], [-1.2, -0.7], [-0.35, -1.25], [-0.95, 0.1], [-0.2, 0.6], [0.25, -0.3], [-0.45, -0.4], [0.95, 0.3]];
const [QUERY, VALUE] = [[1, 0.6], [1, 0]];
const [STEPS, RECORDS, RATE, SECONDS, LENGTH] = [1000, 60, 0.1, 6, 1.1];

/** The training of one exponent: the path of W z, its attention weights and the SVM's direction. */
export function trained(places, p) {
  const data = { X: [places], y: [1], z: [QUERY], v: VALUE };
  const tokens = optimalTokens(data);
  const recordAt = recordedSteps(STEPS, RECORDS);
  const { path } = trainSelection(data, [0, 0, 0, 0], { p, rate: RATE, recordAt });
  const solution = attentionSvm(data.X, data.z, tokens, p);
  const frames = path.map(({ step, W }) => {
    const look = matVec(W, QUERY);
    const weights = softmax(places.map((x) => x[0] * look[0] + x[1] * look[1]));
    const output = [0, 1].map((k) => places.reduce((sum, x, t) => sum + weights[t] * x[k], 0));
    return { step, look, weights, output };
  });
  return { frames, best: tokens[0], target: solution.converged ? matVec(solution.W, QUERY) : null };
}

function unit(vector) {
  const size = Math.hypot(...vector);
  return size > 0 ? vector.map((value) => value / size) : null;
}

function scaled(vector, length) {
  return vector.map((value) => length * value);
}

/** The angle between two directions, in degrees. */
function angle(a, b) {
  return (Math.acos(Math.min(Math.max(a[0] * b[0] + a[1] * b[1], -1), 1)) * 180) / Math.PI;
}

function marks({ frames, target }, now) {
  const { look } = frames[now];
  const parts = [];
  const trace = frames.slice(0, now + 1).map((frame) => place(frame.output).join(" "));
  if (trace.length > 1) parts.push(svg("path", { d: `M${trace.join("L")}`, class: "line trace c1" }));
  const goal = target && unit(target);
  if (goal) parts.push(svg("path", { d: arrow([0, 0], scaled(goal, LENGTH + 0.15)), class: "line target c0" }));
  const current = unit(look);
  if (current) parts.push(svg("path", { d: arrow([0, 0], scaled(current, LENGTH)), class: "line now c0" }));
  return parts;
}

function percent(share) {
  if (share > 0.999 && share < 1) return "> 99.9 %";
  return `${share < 0.0995 ? (100 * share).toFixed(1) : Math.round(100 * share)} %`;
}

function told({ frames, best, target }, now, p) {
  const { step, look, weights } = frames[now];
  const word = `“${WORDS[best]}”`;
  if (step === 0) return `Before training every word has ${percent(weights[best])} of the attention: the output is their average.`;
  const [goal, current] = [target && unit(target), unit(look)];
  const beside = goal && current
    ? ` The direction of the weights is ${angle(goal, current).toFixed(1)}° from the max-margin solution of p = ${p.toFixed(2)}.` : "";
  return `After ${step} ${step === 1 ? "step" : "steps"} ${word} has ${percent(weights[best])} of the attention.${beside}`;
}

/** One word of the sentence with its attention as a bar below. */
function makeSentence() {
  const cells = WORDS.map((word) => {
    const [bar, share] = [svg("svg", { viewBox: "0 0 40 100", preserveAspectRatio: "none", "aria-hidden": "true" }), html("small")];
    bar.append(svg("rect", { class: "f0", x: 0, width: 40 }));
    const cell = html("li");
    cell.append(bar, html("span", {}, word), share);
    at("hero-sentence").append(cell);
    return { cell, bar: bar.firstChild, share };
  });
  return (weights, best) => cells.forEach(({ cell, bar, share }, t) => {
    bar.setAttribute("y", 100 - 100 * weights[t]);
    bar.setAttribute("height", 100 * weights[t]);
    share.textContent = percent(weights[t]);
    cell.classList.toggle("best", t === best);
  });
}

function makeTokens(plane, places, moved) {
  return WORDS.map((word, t) => {
    const [dot, label] = [svg("circle", { class: "token f0" }), svg("text", { class: "word", "text-anchor": "middle" }, word)];
    const shape = svg("g");
    shape.append(dot, label);
    const renew = addHandle(plane, { shape, label: `the word “${word}”`, className: "of-word",
      read: () => places[t], write: (to) => moved(t, to) });
    return (weight, best) => {
      const radius = 4 + 11 * Math.sqrt(weight);
      dot.setAttribute("r", radius);
      dot.classList.toggle("selected", best);
      label.setAttribute("y", -radius - 5);
      renew();
    };
  });
}

async function copied(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "The link is in the address bar";
  }
  setTimeout(() => { button.textContent = before; }, 2000);
}

/** Starts the film. */
export function heroView() {
  const steps = recordedSteps(STEPS, RECORDS);
  const state = { places: PLACES.map((each) => [...each]), moved: false, result: null };
  let stop = () => {};
  const p = slider("hero-p", () => changed(), (x) => Math.round(100 * x) / 100, (x) => x.toFixed(2));
  const scrub = slider("hero-at", () => { stop(); kept(); drawSoon(); }, Math.round, (k) => `step ${steps[k]}`);
  scrub.largest = steps.length - 1;
  const fragment = () => writeHero({ p: p.value, step: steps[scrub.value], words: state.places, moved: state.moved });
  const kept = () => history.replaceState(null, "", `#${fragment()}`);
  const plane = makePlane(at("hero-plane"));
  const output = svg("path", { d: "M0 -8L8 0L0 8L-8 0Z", class: "query f1 output" });
  const [sentence, tokens] = [makeSentence(), makeTokens(plane, state.places, (t, to) => {
    // As precisely as the address says it.
    [state.places[t][0], state.places[t][1]] = to.map((x) => Number(x.toFixed(2)));
    state.moved = true;
    changed();
  })];
  plane.target.append(output);
  const draw = () => {
    const { frames, best } = state.result;
    const { weights } = frames[scrub.value];
    plane.marks.replaceChildren(...marks(state.result, scrub.value));
    output.setAttribute("transform", `translate(${place(frames[scrub.value].output).join(" ")})`);
    tokens.forEach((renew, t) => renew(weights[t], t === best));
    sentence(weights, best);
    tell({ "hero-told": told(state.result, scrub.value, p.value) });
  };
  const drawSoon = coalesced(draw);
  const refresh = coalesced(() => { state.result = trained(state.places, p.value); draw(); });
  const changed = () => { stop(); kept(); refresh(); };
  const play = () => {
    stop();
    stop = film(SECONDS, (share) => { scrub.position = Math.round(share * (steps.length - 1)); drawSoon(); });
  };
  const set = (words) => words.forEach((to, t) => { [state.places[t][0], state.places[t][1]] = to; });
  const follow = () => {
    const asked = readHero(location.hash, WORDS.length);
    if (!asked) return false;
    stop();
    if (asked.words) set(asked.words);
    state.moved = asked.words !== null;
    p.position = asked.p;
    scrub.position = steps.findLastIndex((step) => step <= asked.step);
    refresh();
    return true;
  };
  at("hero-play").addEventListener("click", play);
  at("hero-copy").addEventListener("click", (event) => { kept(); copied(location.href, event.currentTarget); });
  at("hero-svg").addEventListener("click", () => download("attention.svg", svgFile(plane.target, 640), "image/svg+xml"));
  at("hero-reset").addEventListener("click", () => { set(PLACES); state.moved = false; changed(); });
  addEventListener("hashchange", follow);
  state.result = trained(state.places, p.value);
  draw();
  if (!follow()) play();
}
