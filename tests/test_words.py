"""The field's words: names are nouns, docstrings inform, private idiom is absent."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [
    path
    for folder in ("src", "papers")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "tests" not in path.parts
]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(
        p
        for p in sorted((ROOT / "docs").rglob("*.md"))
        if not {"log", "_build", "api"} & {*p.parts}
    ),
    *sorted((ROOT / "papers").rglob("*.md")),
]
PARTICIPLES = {
    "found", "told", "kept", "each", "own", "given", "reach", "rest", "asked", "drawn", "made",
    "known", "shown", "chosen", "parts", "whole", "one", "other", "both", "every", "here",
}  # fmt: skip
NAMES_PER_THOUSAND_LINES = 3
FRAGMENTS = 0.03
PHRASES = (
    r"\bsays? (?:nothing|anything)\b",
    r"\bof one there is none\b",
    r"\bspecial words\b",
    r"\boutput words\b",
    r"\bsliced apart\b",
    r"\bnoticed from\b",
    r"\bas declared\b",
    r"\bis told\b",
    r"\bare told\b",
    r"\bone's own\b",
    r"\bWhat has not been run yet is left out\b",
    r"\bnothing is done where\b",
    r"\brefuse what is no\b",
    r"\bthe attack moves nothing\b",
    r"\bwhere it can move\b",
    r"\bthe bounds know\b",
    r"\bcompares with its null\b",
    r"\bleft over right side\b",
    r"\bis not said\b",
    r"\bsaves no constant factor\b",
    r"\bcertified for every text as long\b",
    r"\bheld to the Python library\b",
)
"""What was read twice, and what says without a subject who does what."""
_ENTRY = re.compile(r"    \*{0,2}(\w+): (.*)")
_FRAGMENT = re.compile(
    r"(of|in|by|from|to|for|at|with|on|that|which|as|see|how|what|where|whether it|likewise)\b"
)


@cache
def trees() -> dict[Path, ast.Module]:
    """Every source, parsed by the first test that asks."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


def teardown_module() -> None:
    """The trees of all sources take hundreds of megabytes."""
    trees.cache_clear()


def bound_names(tree: ast.Module) -> Iterator[str]:
    """The names that a module gives to values, arguments, functions and classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler):
            yield node.name or ""


def described_arguments(tree: ast.Module) -> Iterator[str]:
    """What the docstrings of a module say of arguments."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            continue
        section = ""
        for line in (ast.get_docstring(node) or "").split("\n"):
            heading = re.fullmatch(r"(\w+):", line)
            section = heading[1] if heading else section
            entry = _ENTRY.fullmatch(line)
            if section == "Args" and entry:
                yield entry[2].rstrip(".")


def is_fragment(text: str) -> bool:
    """Whether an entry says too little: two words at most, or an adjunct without a noun."""
    return len(text.split()) <= 2 or _FRAGMENT.match(text) is not None


def test_names_are_nouns_and_not_participles_or_pronouns():
    names = [name for tree in trees().values() for name in bound_names(tree)]
    lines = sum(path.read_text(encoding="utf-8").count("\n") for path in SOURCES)
    idle = sum(name.lstrip("_") in PARTICIPLES for name in names)
    assert 1000 * idle / lines < NAMES_PER_THOUSAND_LINES


def test_entries_of_docstrings_are_clauses():
    entries = [text for tree in trees().values() for text in described_arguments(tree)]
    assert sum(map(is_fragment, entries)) / len(entries) < FRAGMENTS


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_private_idiom(phrase):
    pattern = re.compile(phrase, re.IGNORECASE)
    texts = {path: path.read_text(encoding="utf-8") for path in (*SOURCES, *PAGES)}
    assert [
        path.relative_to(ROOT).as_posix() for path, t in texts.items() if pattern.search(t)
    ] == []
