/** The search of the front page: a field, filters, a list of links, and a state that is a link. */
import { found, prepared } from "./matching.js";
import { unpacked } from "./packed.js";

const PAGE = 30;
const FILTERS = ["what", "paper", "kind", "status", "verdict", "strength", "attack"];
const at = (name) => document.getElementById(name);

/** The index as entries; it is stored as rows under common names. */
export function entriesOf(index) {
  return index.rows.map((row) => {
    const entry = Object.fromEntries(index.columns.map((name, place) => [name, row[place]]));
    for (const [name, known] of Object.entries(index.names)) entry[name] = known[entry[name]];
    const anchor = entry.anchor.replace(/^~/, `${entry.what}${index.stems[entry.paper]}-`);
    const [paper, paperName] = index.papers[entry.paper] ?? ["", ""];
    const address = `${index.pages[entry.page]}#${anchor}`;
    return prepared({ ...entry, paper, paperName, address, weight: index.weights[entry.what] ?? 0 });
  });
}

/** A link's fragment as text and filters; an anchor of the page is no search. */
export function readState(fragment) {
  const said = fragment.replace(/^#/, "");
  if (!said.includes("=")) return null;
  const given = new URLSearchParams(said);
  return Object.fromEntries(["q", ...FILTERS].map((name) => [name, given.get(name) ?? ""]));
}

/** Text and filters as a fragment, empty where nothing is asked. */
export function writeState(state) {
  const said = new URLSearchParams();
  for (const name of ["q", ...FILTERS]) if (state[name]) said.set(name, state[name]);
  return said.toString();
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function item(entry, marks) {
  const made = element("li");
  const link = element("a", "hit", entry.title);
  link.href = entry.address;
  const line = element("p", "hit-title");
  line.append(link);
  if (entry.verdict) {
    const [sign, tone] = marks[entry.verdict];
    const badge = element("span", `badge tone-${tone}`);
    const drawn = element("span", "", `${sign} `);
    drawn.setAttribute("aria-hidden", "true");
    badge.append(drawn, entry.verdict);
    line.append(" ", element("span", "badge tone-quiet", entry.status), " ", badge);
  }
  const told = [entry.what, entry.paperName, entry.kind, entry.verdict ? "" : entry.status, entry.strength, entry.attack];
  if (entry.ratio !== null) told.push(`ratio ${Number(entry.ratio.toPrecision(2))}`);
  made.append(line, element("p", "hit-about", told.filter(Boolean).join(" · ")));
  if (entry.text) made.append(element("p", "hit-text", entry.text));
  return made;
}

function stateOfForm() {
  return { q: at("q").value.trim(), ...Object.fromEntries(FILTERS.map((name) => [name, at(name).value])) };
}

function show(entries, marks, state, many) {
  const asks = writeState(state) !== "";
  const hits = asks ? found(entries, state.q, state) : [];
  at("hits").replaceChildren(...hits.slice(0, many).map((entry) => item(entry, marks)));
  at("more").hidden = hits.length <= many;
  at("clear").hidden = !asks;
  document.body.classList.toggle("searching", asks);
  const words = hits.length === 1 ? "1 result" : `${hits.length} results`;
  at("count").textContent = asks ? (hits.length ? words : "Nothing found: try fewer words or filters.") : "";
}

function moved(event) {
  const links = [...document.querySelectorAll("#hits a.hit")];
  const field = at("q");
  const place = links.indexOf(document.activeElement);
  if (event.key === "Escape") {
    if (place >= 0) field.focus();
    else if (field.value) {
      field.value = "";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
  } else if (event.key === "ArrowDown" && (place >= 0 || document.activeElement === field)) {
    links[Math.min(place + 1, links.length - 1)]?.focus();
  } else if (event.key === "ArrowUp" && place >= 0) {
    (links[place - 1] ?? field).focus();
  } else if (event.key === "Enter" && document.activeElement === field) {
    links[0]?.click();
  } else return;
  event.preventDefault();
}

/** Makes the search of this page work. */
export async function startSearch() {
  const form = at("search");
  if (!form) return;
  const index = await unpacked(at("index").textContent);
  const entries = entriesOf(index);
  let many = PAGE;
  const renew = () => show(entries, index.marks, stateOfForm(), many);
  const asked = () => {
    many = PAGE;
    const said = writeState(stateOfForm());
    history.replaceState(null, "", said ? `#${said}` : location.pathname);
    renew();
  };
  const follow = () => {
    const state = readState(location.hash);
    if (state) for (const name of ["q", ...FILTERS]) at(name).value = state[name];
    if (state) at("filters").open ||= FILTERS.some((name) => state[name]);
    renew();
  };
  form.hidden = false;
  form.addEventListener("input", asked);
  form.addEventListener("submit", (event) => event.preventDefault());
  at("clear").addEventListener("click", () => {
    for (const name of ["q", ...FILTERS]) at(name).value = "";
    asked();
    at("q").focus();
  });
  at("more").addEventListener("click", () => {
    many += PAGE;
    const last = document.querySelectorAll("#hits a.hit").length;
    renew();
    document.querySelectorAll("#hits a.hit")[last]?.focus();
  });
  at("finder").addEventListener("keydown", moved);
  addEventListener("hashchange", follow);
  follow();
}
