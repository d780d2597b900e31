"""Tables in HTML: kinds of cells, escaping, and arrays by name."""

import jax.numpy as jnp
import numpy as np
from markupsafe import Markup

from attlas.display.tables import arrays_table, cell, described, table


def test_every_text_is_escaped_but_safe_markup():
    found = table(["<a>"], [["<b>"], [Markup("<i>c</i>")]], "<d>")
    assert "<a>" not in found
    assert "<b>" not in found
    assert "<d>" not in found
    assert "&lt;a&gt;" in found
    assert "<td><i>c</i></td>" in found


def test_a_column_of_numbers_is_right_aligned_with_its_head():
    found = table(["p", "name"], [[2.0, "x"], [None, "y"]])
    assert '<th scope="col" class="num">p</th><th scope="col">name</th>' in found


def test_kinds_of_cells():
    assert cell(True) == "<td>yes</td>"
    assert cell(np.float64("nan")) == '<td class="none">–</td>'
    assert (
        cell(1234567)
        == '<td class="num">1\N{NARROW NO-BREAK SPACE}234\N{NARROW NO-BREAK SPACE}567</td>'
    )
    assert "<math>" in cell("norm $p$")


def test_arrays_are_told_by_shape_and_range():
    found = arrays_table({"W<": np.array([[1.0, np.nan], [3.0, 2.0]]), "n": jnp.asarray(4)})
    assert "<code>W&lt;</code>" in found
    assert '<td>2 × 2</td><td class="num">1</td><td class="num">3</td>' in found
    assert "one number" in found
    assert described(np.zeros((2, 0))) == "float64[2,0]"
    assert '<td class="none">–</td>' in arrays_table({"e": np.zeros((2, 0)), "t": np.array("x")})
