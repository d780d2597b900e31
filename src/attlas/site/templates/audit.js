/** The map, the table and the card of an audit. */
import { shown } from "./numbers.js";

const { heads, quantities } = JSON.parse(document.getElementById("data").textContent);
const byName = new Map(quantities.map((each) => [each.name, each]));
const at = (name) => document.getElementById(name);
const select = at("quantity"), sorted = at("sorted"), least = at("least");
const heat = at("heat"), caption = at("heat-caption"), meaning = at("meaning"), card = at("card");
let chosen = null;

const element = (tag, text, attributes = {}) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};
// formulas were typeset and escaped when the page was written
const markup = (tag, html) => { const made = document.createElement(tag); made.innerHTML = html; return made; };

const ends = (row, name) => {
  const low = row[`${name}_low`], high = row[`${name}_high`];
  return low === undefined || low === null ? "" : ` [${shown(low)}, ${shown(high)}]`;
};
// 0 where an interval holds 0: what lies in it has no certain sign
const unsigned = (row, name) => row[`${name}_sign`] === 0;
const NO_SIGN = "sign not certain";

const ranks = (name) => {
  const values = heads.map((row) => row[name]).filter((value) => value !== null).sort((a, b) => a - b);
  return (value) => values.length < 2 || values[0] === values[values.length - 1] ? 0
    : Math.min(5, Math.floor(6 * values.filter((each) => each < value).length / values.length));
};

const drawMap = () => {
  const name = select.value, quantity = byName.get(name), step = ranks(name);
  const threshold = least.value === "" ? -Infinity : Number(least.value);
  const layers = [...new Set(heads.map((row) => row.layer))];
  const body = element("tbody");
  for (const layer of layers) {
    const row = element("tr");
    row.append(element("th", `layer ${layer}`, { scope: "row" }));
    let own = heads.filter((each) => each.layer === layer);
    if (sorted.checked) own = own.slice().sort((a, b) => (b[name] ?? -Infinity) - (a[name] ?? -Infinity));
    for (const head of own) {
      const key = `${head.layer}.${head.head}`, value = head[name], open = unsigned(head, name);
      const said = open ? `${NO_SIGN}${ends(head, name)}` : shown(value);
      const button = element("button", open ? "sign?" : said, {
        type: "button", "data-head": key, "aria-pressed": String(key === chosen),
        "aria-label": `head ${key}: ${said}`, title: open ? `head ${key}: ${said}` : `head ${key}`,
      });
      button.className = value === null || open ? "s0" : `s${step(value)}`;
      if (!(value >= threshold)) button.classList.add("dim");
      const cell = element("td");
      cell.append(button);
      row.append(cell);
    }
    body.append(row);
  }
  heat.querySelector("tbody")?.remove();
  heat.append(body);
  caption.textContent = sorted.checked ? "Rows: layers. Heads sorted by the value." : "Rows: layers. Columns: heads.";
  meaning.replaceChildren(markup("span", `${quantity.title}${quantity.formula && ": "}${quantity.formula}`),
    markup("span", quantity.meaning ? `; ${quantity.meaning}. ` : ". "),
    element("span", quantity.unit ? `In ${quantity.unit}. ` : ""),
    element("span", heads.some((row) => unsigned(row, name)) ? `“sign?”: ${NO_SIGN}, the card has the interval. ` : ""),
    element("em", quantity.standing));
};

const drawCard = (key) => {
  const row = heads.find((each) => `${each.layer}.${each.head}` === key);
  if (!row) return;
  chosen = key;
  const list = element("dl");
  for (const quantity of quantities) {
    if (row[quantity.name] === undefined) continue;
    const box = element("div"), number = row[quantity.name];
    const value = element("dd", unsigned(row, quantity.name) ? NO_SIGN : shown(number));
    value.append(ends(row, quantity.name));
    if (quantity.unit) value.append(element("small", `in ${quantity.unit}`));
    const beside = { reference: row[quantity.null], "at the earlier checkpoint": row[`${quantity.name}_before`] };
    for (const [what, other] of Object.entries(beside)) {
      if (other !== undefined && other !== null) value.append(element("small", `${what} ${shown(other)}`));
    }
    box.append(markup("dt", quantity.title), value);
    list.append(box);
  }
  card.replaceChildren(element("h4", `Head ${key}: layer ${row.layer}, head ${row.head}`), list);
  for (const button of heat.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.dataset.head === key));
  }
};

const table = at("heads");
const directions = new Map();
const sortBy = (column) => {
  const down = directions.get(column) !== true;
  directions.set(column, down);
  const value = (row) => column === 0 ? Number(row.rowIndex) : parseFloat(row.cells[column].dataset.value);
  const rows = [...table.tBodies[0].rows];
  const original = new Map(heads.map((each, place) => [`${each.layer}.${each.head}`, place]));
  const key = (row) => column === 0 ? -original.get(row.cells[0].textContent.trim()) : value(row);
  rows.sort((a, b) => {
    const x = key(a), y = key(b);
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return down ? y - x : x - y;
  });
  table.tBodies[0].append(...rows);
  for (const [place, cell] of [...table.tHead.rows[0].cells].entries()) {
    if (place === column) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
};

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.head) {
    drawCard(button.dataset.head);
    if (!heat.contains(button)) { card.scrollIntoView({ block: "nearest" }); card.focus({ preventScroll: true }); }
  } else if (button.dataset.column) sortBy(Number(button.dataset.column));
});
at("choose").addEventListener("input", drawMap);
at("choose").addEventListener("submit", (event) => event.preventDefault());
if (quantities.length) drawMap();
