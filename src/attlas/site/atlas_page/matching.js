/** Which entries of the index answer some words and filters, the best first. */

const COMMON = new Set(
  ("a an and are as at be by can do does for from has have how i in is it its me my need of on or our should " +
    "that the there this to use was what when where which who why will with you your choose right true false")
    .split(" "),
);

/** Words and numbers of a text, lower case, without accents; "4.2" stays one word. */
export function wordsOf(text) {
  const plain = text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase();
  return plain.match(/[a-z0-9]+(?:[.][a-z0-9]+)*/g) ?? [];
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

/** How well an entry answers words: 0 where too few of them occur. */
export function score(entry, words, phrase) {
  let sum = 0, met = 0;
  for (const word of words) {
    const best = Math.max(
      worth(word, entry.titleWords, 10, 6),
      worth(word, entry.paperWords, 8, 7),
      worth(word, entry.textWords, 4, 2),
    );
    sum += best;
    met += best > 0;
  }
  if (met < words.length && met < Math.max(2, Math.ceil(0.6 * words.length))) return 0;
  const share = met / words.length;
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
  const phrase = words.join(" ");
  return passing
    .map((entry, place) => ({ entry, place, score: score(entry, words, phrase) }))
    .filter((each) => each.score > 0)
    .sort((one, other) => other.score - one.score || one.place - other.place)
    .map((each) => each.entry);
}
