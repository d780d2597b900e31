/** Which entries of the index answer some words and filters, the best first. */
import { SYNONYMS } from "./synonyms.js";

const COMMON = new Set(
  ("a an and are as at be by can do does for from has have how i in is it its me my need of on or our should " +
    "that the there this to use was what when where which who why will with you your choose right true false")
    .split(" "),
);

/** How much less a synonym counts than the word that was typed. */
const SYNONYM = 0.75;

/** Words and numbers of a text, lower case, without accents, in British spelling; "4.2" stays one word. */
export function wordsOf(text) {
  const plain = text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  const words = plain.match(/[a-z0-9]+(?:[.][a-z0-9]+)*/g) ?? [];
  return words.map((word) => word.replace(/(..)iz(e[drs]?|ers|ing|ations?)$/, "$1is$2"));
}

const GROUPS = SYNONYMS.map((group) => group.map(wordsOf));

function startsAt(words, place, phrase) {
  return phrase.every((word, k) => words[place + k] === word);
}

/** The words in units: a phrase with its synonyms, or one word alone. */
export function unitsOf(words) {
  const units = [];
  for (let place = 0; place < words.length;) {
    const known = GROUPS.flatMap((group) => group
      .filter((phrase) => startsAt(words, place, phrase))
      .map((phrase) => ({ words: phrase, others: group.filter((other) => other !== phrase) })));
    known.sort((a, b) => b.words.length - a.words.length);
    const unit = known[0] ?? { words: [words[place]], others: [] };
    units.push(unit);
    place += unit.words.length;
  }
  return units;
}

/** What is looked for: the words of a question that tell it from others, or all where none does. */
export function asked(text) {
  const all = wordsOf(text);
  const telling = all.filter((word) => !COMMON.has(word));
  return telling.length ? telling : all;
}

/** An entry with its words; `title` counts most, then the paper, then the text. */
export function prepared(entry) {
  return {
    ...entry,
    titleWords: wordsOf(entry.title),
    paperWords: wordsOf(`${entry.paper} ${entry.paperName}`),
    textWords: wordsOf(`${entry.text} ${entry.more} ${entry.anchor} ${entry.kind} ${entry.status}`),
  };
}

function worth(word, words, whole, start) {
  if (words.includes(word)) return whole;
  // A plural asks for its singular too; a number is not the start of another one.
  const stem = word.length > 3 && word.endsWith("s") ? word.slice(0, -1) : word;
  const begins = !/^[0-9.]+$/.test(stem) && words.some((each) => each.startsWith(stem));
  return begins ? start : 0;
}

function worthOf(word, entry) {
  return Math.max(
    worth(word, entry.titleWords, 10, 6),
    worth(word, entry.paperWords, 8, 7),
    worth(word, entry.textWords, 4, 2),
  );
}

/** How well an entry answers a unit, and how many of its words: a synonym counts if all its words occur. */
function answer(unit, entry) {
  const own = unit.words.map((word) => worthOf(word, entry));
  const [sum, met] = [own.reduce((a, b) => a + b, 0), own.filter((value) => value > 0).length];
  const others = unit.others.map((phrase) => Math.min(...phrase.map((word) => worthOf(word, entry))));
  const other = SYNONYM * unit.words.length * Math.max(0, ...others);
  return other > sum ? { sum: other, met: unit.words.length } : { sum, met };
}

/** How well an entry answers units of words: 0 where too few of them occur. */
export function score(entry, units, phrase) {
  let sum = 0, met = 0, count = 0;
  for (const unit of units) {
    const part = answer(unit, entry);
    sum += part.sum;
    met += part.met;
    count += unit.words.length;
  }
  if (met < count && met < Math.max(2, Math.ceil(0.6 * count))) return 0;
  const share = met / count;
  const whole = phrase && entry.titleWords.join(" ") === phrase ? 20 : 0;
  return sum * share * share * (1 + entry.weight / 10) + whole;
}

/** Whether an entry passes the filters; an empty filter lets all pass. */
export function passes(entry, filters) {
  for (const name of ["what", "paper", "kind", "status", "verdict", "strength", "attack"]) {
    if (filters[name] && entry[name] !== filters[name]) return false;
  }
  return true;
}

/** The entries that pass, best first; without words in the order of the index. */
export function found(entries, text, filters) {
  const passing = entries.filter((entry) => passes(entry, filters));
  const words = asked(text);
  if (!words.length) return passing;
  const [phrase, units] = [words.join(" "), unitsOf(words)];
  return passing
    .map((entry, place) => ({ entry, place, score: score(entry, units, phrase) }))
    .filter((each) => each.score > 0)
    .sort((one, other) => other.score - one.score || one.place - other.place)
    .map((each) => each.entry);
}
