r"""Symbols of a page's formulas with their definitions, which the page shows when hovered.

The definitions of a paper are the table of `symbols.md` beside its claims: a row defines the
symbols between its first dollar signs, `| $X_i, y_i$ | tokens and label of sample $i$ |`. Those of
every page are the table `symbols.md` beside this module.
"""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

from markupsafe import Markup

from attlas.display.statements import prose
from attlas.display.terminal import plain

FILE = "symbols.md"
_ROW = re.compile(r"^\| \$(.+?)\$ \| (.+) \|$", re.MULTILINE)
_MATH = re.compile(r"<math[ >].*?</math>", re.S)
_SUBSCRIPTED = ("msub", "msubsup", "munder", "munderover")


@dataclass(frozen=True)
class Symbol:
    """Symbols with one definition.

    Attributes:
        latex: the symbols as they are defined.
        meaning: prose with $mathematics$.
    """

    latex: str
    meaning: str

    @cached_property
    def names(self) -> frozenset[str]:
        """The symbols as `identifiers` writes them."""
        return frozenset(identifiers(prose(f"${self.latex}$")))

    @cached_property
    def letters(self) -> frozenset[str]:
        """The letters that the symbols begin with."""
        return frozenset(name[0] for name in self.names)


def read_symbols(folders: Iterable[Path]) -> tuple[Symbol, ...]:
    """The definitions in the folders of a paper's claims, and those of every page.

    Examples:
        >>> [symbol.meaning for symbol in read_symbols([])][-1]
        'real numbers'
    """
    texts = [(folder / FILE) for folder in folders]
    found = [text.read_text(encoding="utf-8") for text in texts if text.is_file()]
    return tuple(symbol for text in (*found, _common()) for symbol in _parsed(text))


@cache
def _common() -> str:
    return resources.files("attlas.site").joinpath(FILE).read_text("utf-8")


@cache
def _parsed(text: str) -> tuple[Symbol, ...]:
    return tuple(Symbol(latex, meaning) for latex, meaning in _ROW.findall(text))


def identifiers(markup: str, is_symbol: Callable[[str], bool] = lambda name: True) -> list[str]:
    """The symbols of a page's formulas in their order: letters, with indices where `is_symbol`.

    Args:
        is_symbol: whether a letter with its indices is one symbol.

    Examples:
        >>> formula = prose(r"$x_{it} + W_{mm}^p$")
        >>> identifiers(formula), identifiers(formula, lambda name: name == "W_mm")
        (['x_it', 'W_mm', 'p'], ['x', 'i', 't', 'W_mm', 'p'])
    """
    trees = map(ElementTree.fromstring, _MATH.findall(str(markup)))
    return list(dict.fromkeys(name for tree in trees for name in _names(tree, is_symbol)))


def _names(node: ElementTree.Element, is_symbol: Callable[[str], bool]) -> Iterator[str]:
    children = list(node)
    if node.tag == "mi" and _is_letter(node):
        yield node.text or ""
    elif node.tag in _SUBSCRIPTED and _is_letter(base := _without_accent(node[0])):
        name = f"{base.text}_{''.join(node[1].itertext())}"
        if is_symbol(name):
            yield name
            children = children[2:]
    for child in children:
        yield from _names(child, is_symbol)


def _is_letter(node: ElementTree.Element) -> bool:
    """Whether a node is a letter that stands for something, not one of an upright word."""
    text = node.text or ""
    is_word = node.get("mathvariant") == "normal" and text.islower()
    return len(text) == 1 and text.isalpha() and not is_word


def _without_accent(node: ElementTree.Element) -> ElementTree.Element:
    return node[0] if node.tag == "mover" else node


@dataclass
class Hints:
    """Puts the definition of each symbol on the formulas of one page.

    Examples:
        >>> hints = Hints(_parsed("| $W$ | key-query matrix |"))
        >>> print(hints(prose("of $W$")))
        of <span class="symbol" title="W: key-query matrix"><math><mi>W</mi></math></span>
        >>> [symbol.latex for symbol in hints.used]
        ['W']
    """

    symbols: tuple[Symbol, ...]

    def __post_init__(self) -> None:
        self._used: dict[Symbol, None] = {}
        self.undefined: dict[str, None] = {}
        """Letters without a definition, in the order of the page."""

    @property
    def used(self) -> tuple[Symbol, ...]:
        """The symbols that the page has shown, in the order of their definitions."""
        return tuple(symbol for symbol in self.symbols if symbol in self._used)

    def __call__(self, markup: Markup) -> Markup:
        """The markup with a hint on each formula."""
        return Markup(_MATH.sub(self._hinted, str(markup)))

    def _hinted(self, match: re.Match[str]) -> str:
        formula = match.group()
        defined = self._defined(formula)
        if not defined:
            return formula
        self._used |= dict.fromkeys(defined)
        text = "; ".join(f"{plain(f'${s.latex}$')}: {plain(s.meaning)}" for s in defined)
        span = Markup('<span class="symbol" title="{}">{}</span>')
        return str(span.format(text, Markup(formula)))

    def _defined(self, formula: str) -> list[Symbol]:
        """The definitions for a formula; a letter that has none is noted as undefined."""
        names = identifiers(formula, lambda name: any(name in s.names for s in self.symbols))
        defined = {name: self._symbol(name) for name in names}
        self.undefined |= {name: None for name, symbol in defined.items() if symbol is None}
        return list(dict.fromkeys(symbol for symbol in defined.values() if symbol))

    def _symbol(self, name: str) -> Symbol | None:
        exact = (symbol for symbol in self.symbols if name in symbol.names)
        return next(exact, None) or next((s for s in self.symbols if name in s.letters), None)
