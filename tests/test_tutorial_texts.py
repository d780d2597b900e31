"""Tutorials are stories whose cells run, and they end in a file that the reader made."""

import ast
import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
TUTORIALS = sorted(FOLDER.glob("*.md"))
EXECUTED = [file for file in TUTORIALS if "{code-cell}" in file.read_text(encoding="utf-8")]
HEADER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"^```\{code-cell\} python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])")
WIDEST = 88
"""Letters of code that a column of 46 em holds on a screen of 1280 px."""


def words(text: str) -> int:
    """Words of a tutorial outside its code."""
    return len(BLOCK.sub("", HEADER.sub("", text)).split())


def digits(number: str) -> int:
    """Significant digits of a printed number.

    Examples:
        >>> digits("10000"), digits("0.0120"), digits("1.2345e-05")
        (1, 3, 5)
    """
    mantissa = number.partition("e")[0]
    plain = mantissa.replace(".", "").lstrip("0")
    return len(plain if "." in mantissa else plain.rstrip("0"))


def shown(cells: list[str]) -> Iterator[str]:
    """What each cell prints, the value of its last line included."""
    names: dict[str, object] = {"__name__": "tutorial"}
    for cell in cells:
        tree = ast.parse(cell)
        if isinstance(tree.body[-1], ast.Expr):
            tree.body[-1] = ast.Assign([ast.Name("last", ast.Store())], tree.body[-1].value)
            ast.fix_missing_locations(tree)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, "cell", "exec"), names)
        last = names.pop("last", None)
        yield printed.getvalue() + ("" if last is None else repr(last))


@pytest.mark.parametrize("file", TUTORIALS, ids=lambda file: file.stem)
def test_a_tutorial_has_500_to_1000_words_and_no_wide_code(file):
    text = file.read_text(encoding="utf-8")
    assert 500 <= words(text) <= 1000
    wide = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    assert [line for line in wide if len(line) > WIDEST] == []


@pytest.mark.thorough
@pytest.mark.parametrize("file", EXECUTED, ids=lambda file: file.stem)
def test_cells_run_draw_a_figure_print_few_digits_and_leave_a_file(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    precision = jax.config.jax_enable_x64
    try:
        outputs = list(shown(CELL.findall(file.read_text(encoding="utf-8"))))
        assert plt.get_fignums()
    finally:
        plt.close("all")
        jax.config.update("jax_enable_x64", precision)
    assert [n for text in outputs for n in NUMBER.findall(text) if digits(n) > 4] == []
    assert [line for text in outputs for line in text.splitlines() if len(line) > WIDEST] == []
    assert any(tmp_path.iterdir())


def test_how_many_digits_a_number_has():
    assert [digits(n) for n in ("10000", "0.0120", "1.2345e-05", "2")] == [1, 3, 5, 1]
    assert NUMBER.findall("0.0: 1.25e-05, head2, v1.2.3 of 7") == ["0.0", "1.25e-05", "7"]
