/* What the search of the site puts first: what Sphinx gives, and a lead for the pages that are written for readers. */
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score([page, , , , score]) {
    const lead = { choose: 20, glossary: 25, tutorials: 8, start: 8, papers: 4, log: -10, benchmarks: -5 }[page.split("/")[0]];
    return score + (lead ?? 0);
  },
};
