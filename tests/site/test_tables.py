"""Tables say numbers as a reader wants them and escape everything else."""

import numpy as np
import pandas as pd
import pytest

from attlas.display.numbers import plain_number
from attlas.site.tables import table_html, witness_html


def test_columns_kinds_of_values_and_a_named_index():
    index = pd.Index(["a", "b"], name="model")
    frame = pd.DataFrame(
        {("p", "mean"): [0.5, np.nan], ("p", "n"): [10, 1234567], ("ok", ""): [True, False]},
        index=index,
    )
    html = table_html(frame, "a <caption>")
    assert "a &lt;caption&gt;" in html
    assert '<th scope="col">model</th><th scope="col" class="num">p mean</th>' in html
    assert '<td class="num">10</td><td>yes</td>' in html
    assert '<td class="none">–</td>' in html
    assert (
        '<td class="num">1\N{NARROW NO-BREAK SPACE}234\N{NARROW NO-BREAK SPACE}567</td><td>no</td>'
        in html
    )


def test_witness_entries():
    html = witness_html({"b": np.array([True, False]), "t": np.array("<x>"), "e": np.zeros(0)})
    assert "true" in html
    assert "&lt;x&gt;" in html
    assert "empty" in html


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.5, "−0.5"),
        (1e-4, "0.0001"),
        (9.99e-5, "9.99e−5"),
        (12345.6, "12\N{NARROW NO-BREAK SPACE}346"),
        (1e5, "1e5"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
        (float("nan"), "NaN"),
        (None, "–"),
    ],
)
def test_numbers(value, text):
    assert plain_number(value) == text
