r"""Theorem environments of a paper and their numbers, as LaTeX would count them."""

import re
from dataclasses import dataclass, field
from itertools import islice

from attlas.projects.latex.arguments import group, option, settings

_DECLARATION = re.compile(
    r"\\(newtheorem|spnewtheorem|declaretheorem|newaliascnt|newmdtheoremenv|newenvironment"
    r"|numberwithin|counterwithin|counterwithout)(\*?)"
)
_FORMAT = re.compile(r"\\renewcommand\s*\{?\s*\\the([A-Za-z]+)\s*\}?\s*(?=\{)")
_PART = re.compile(r"\\(arabic|Alph|alph|Roman|roman)\s*\{([A-Za-z*]+)\}|\\the([A-Za-z]+)")
_BEGINS = re.compile(r"\\begin\s*\{([A-Za-z*]+)\}")

_SHORT = {
    "thm": "Theorem",
    "lem": "Lemma",
    "prop": "Proposition",
    "cor": "Corollary",
    "defn": "Definition",
    "conj": "Conjecture",
    "rem": "Remark",
    "assump": "Assumption",
}
USUAL = {
    name: name.capitalize()
    for name in (
        *("theorem", "lemma", "proposition", "corollary", "claim", "fact", "conjecture"),
        *("observation", "assumption", "definition", "condition", "hypothesis", "property"),
        *("remark", "example", "question", "problem", "notation", "axiom", "result"),
    )
} | _SHORT
"""Environments that classes of journals define; a paper that uses one need not declare it."""
_MOST_DECLARATIONS = 5000
SECTIONS = "chapter", "section", "subsection", "subsubsection"


@dataclass
class Environments:
    """The theorem environments of a paper, and the counters by which they are numbered.

    Attributes:
        printed: the name that is printed, by environment.
        counter: the counter of each environment; none for those without numbers.
        within: the counter at each step of which a counter begins again.
        formats: how a counter is printed, where a paper says so.
        aliases: environments that stand for another one.
        titled: those of them whose argument is printed as the title.
    """

    printed: dict[str, str] = field(default_factory=dict)
    counter: dict[str, str] = field(default_factory=dict)
    within: dict[str, str] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    titled: set[str] = field(default_factory=set)
    _values: dict[str, int] = field(default_factory=dict)
    _appendix: bool = False

    def step(self, counter: str) -> str:
        """Count one further, begin again what is numbered within it, and give what is printed."""
        self._values[counter] = self._values.get(counter, 0) + 1
        self._begin_again(counter)
        return self.shown(counter)

    def set(self, counter: str, value: int) -> None:
        r"""Set a counter as \setcounter does."""
        self._values[counter] = value

    def value(self, counter: str) -> int:
        """The value of a counter."""
        return self._values.get(counter, 0)

    def begin_appendix(self) -> None:
        """Sections, or chapters, are letters from here on."""
        self._appendix = True
        top = "chapter" if self._values.get("chapter") else "section"
        self._values[top] = 0
        self._begin_again(top)

    def shown(self, counter: str, levels: int = 8) -> str:
        """What is printed for a counter."""
        if counter in self.formats and levels:
            return _PART.sub(lambda match: self._part(match, levels), self.formats[counter])
        value = self._values.get(counter, 0)
        if counter in SECTIONS:
            return self._section(counter)
        parent = self.within.get(counter)
        return f"{self.shown(parent, levels - 1)}.{value}" if parent and levels else str(value)

    def _begin_again(self, counter: str) -> None:
        below = SECTIONS[SECTIONS.index(counter) + 1 :] if counter in SECTIONS else ()
        inside = [name for name, parent in self.within.items() if parent == counter]
        for name in (*below[:1], *inside):
            if self._values.get(name):
                self._values[name] = 0
                self._begin_again(name)

    def _section(self, counter: str) -> str:
        top = "chapter" if self._values.get("chapter") else "section"
        place = SECTIONS.index(counter)
        levels = SECTIONS[min(SECTIONS.index(top), place) : place + 1]
        numbers = [str(self._values.get(level, 0)) for level in levels]
        if self._appendix and top in levels:
            numbers[levels.index(top)] = _letter(self._values.get(top, 0))
        return ".".join(numbers)

    def _part(self, match: re.Match[str], levels: int) -> str:
        style, counter, whole = match.groups()
        if whole:
            return self.shown(whole, levels - 1)
        value = self._values.get(counter, 0)
        if style == "arabic":
            return str(value)
        if style in ("Alph", "alph"):
            return _letter(value) if style == "Alph" else _letter(value).lower()
        return _roman(value) if style == "Roman" else _roman(value).lower()


def read_environments(text: str) -> Environments:
    r"""The theorem environments that a text declares, with those that classes usually have.

    Of LaTeX, amsthm, thmtools, aliascnt, mdframed and Springer's classes.

    Examples:
        >>> paper = read_environments(
        ...     r"\newtheorem{thm}{Theorem}[section] \newtheorem{lem}[thm]{Lemma}"
        ... )
        >>> paper.step("section"), [paper.step(paper.counter[name]) for name in ("thm", "lem")]
        ('1', ['1.1', '1.2'])
        >>> paper.printed["lem"], "theorem" in paper.printed
        ('Lemma', False)
    """
    paper = Environments()
    aliases: dict[str, str] = {}
    declarations = list(islice(_DECLARATION.finditer(text), _MOST_DECLARATIONS))
    for match in declarations:
        if match[1] in _DECLARED:
            _DECLARED[match[1]](paper, aliases, text, match.end(), bool(match[2]))
    for name, counter in list(paper.counter.items()):
        paper.counter[name] = aliases.get(counter, counter)
    for match in _FORMAT.finditer(text):
        body, _ = group(text, match.end())
        if body is not None and not re.search(r"\\(?!arabic|alph|roman|the)[A-Za-z]", body, re.I):
            paper.formats[aliases.get(match[1], match[1])] = body
    if not paper.printed:
        paper.printed = dict(USUAL)
        paper.counter = {name: name for name in USUAL}
    for match in declarations:
        if match[1] == "newenvironment":
            _newenvironment(paper, text, match.end())
    return paper


def _newtheorem(paper: Environments, aliases: dict[str, str], text: str, at: int, star: bool):
    name, place = group(text, at)
    shared, place = option(text, place)
    printed, place = group(text, place)
    within, _ = option(text, place)
    if name is None or printed is None:
        return
    _declare(paper, name, printed, shared, within, star)


def _declaretheorem(paper: Environments, aliases: dict[str, str], text: str, at: int, star: bool):
    before, place = option(text, at)
    names, place = group(text, place)
    after, _ = option(text, place)
    details = settings(before or after or "")
    within = next((details[k] for k in ("numberwithin", "parent", "within") if k in details), None)
    shared = next(
        (details[k] for k in ("sibling", "numberlike", "sharenumber") if k in details), None
    )
    unnumbered = details.get("numbered", "yes") == "no" or "unnumbered" in details.get("style", "")
    for name in (names or "").split(","):
        name = name.strip()
        printed = details.get("name", details.get("title", name.capitalize()))
        _declare(paper, name, printed, shared, within, unnumbered)


def _first(details: dict[str, str], *names: str) -> str | None:
    return next((details[name] for name in names if name in details), None)


def _declare(
    paper: Environments,
    name: str,
    printed: str,
    shared: str | None,
    within: str | None,
    unnumbered: bool,
) -> None:
    paper.printed[name.strip()] = re.sub(r"\\[A-Za-z]+|[{}]", "", printed).strip() or name
    if unnumbered:
        return
    paper.counter[name.strip()] = paper.counter.get(shared or "", shared or "") or name.strip()
    if within and not shared:
        paper.within[name.strip()] = within.strip()


def _newaliascnt(paper: Environments, aliases: dict[str, str], text: str, at: int, star: bool):
    alias, place = group(text, at)
    counter, _ = group(text, place)
    if alias and counter:
        aliases[alias] = paper.counter.get(counter, aliases.get(counter, counter))


def _numberwithin(paper: Environments, aliases: dict[str, str], text: str, at: int, star: bool):
    counter, place = group(text, at)
    within, _ = group(text, place)
    if counter and within:
        paper.within[paper.counter.get(counter, counter)] = within.strip()


def _counterwithout(paper: Environments, aliases: dict[str, str], text: str, at: int, star: bool):
    counter, _ = group(text, at)
    paper.within.pop(paper.counter.get(counter or "", counter or ""), None)


def _newenvironment(paper: Environments, text: str, at: int) -> None:
    """An environment that begins a theorem environment stands for it.

    Its one argument is a title if it is printed inside; one that is used before, such as the label
    of a theorem that is stated again, makes it another kind of environment.
    """
    name, place = group(text, at)
    number, place = option(text, place)
    _, place = option(text, place)
    begin, _ = group(text, place)
    theorems = paper.printed.keys() | USUAL.keys()
    inner = [found for found in _BEGINS.finditer(begin or "") if found[1] in theorems]
    if not name or begin is None or not inner or inner[-1][1] == name:
        return
    before, _, inside = begin.partition(inner[-1][0])
    if "#" in before or (number or "1").strip() != "1":
        return
    paper.aliases[name] = inner[-1][1]
    if "#1" in inside:
        paper.titled.add(name)


_DECLARED = {
    "newtheorem": _newtheorem,
    "newmdtheoremenv": _newtheorem,
    "spnewtheorem": _newtheorem,
    "declaretheorem": _declaretheorem,
    "newaliascnt": _newaliascnt,
    "numberwithin": _numberwithin,
    "counterwithin": _numberwithin,
    "counterwithout": _counterwithout,
}


def _letter(value: int) -> str:
    return chr(ord("A") + value - 1) if 1 <= value <= 26 else str(value)


def _roman(value: int) -> str:
    signs = (
        *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L")),
        *((40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
    )
    text = ""
    for size, sign in signs:
        count, value = divmod(value, size)
        text += sign * min(count, 20)
    return text
