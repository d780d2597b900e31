"""LaTeX to MathML: safe, complete, honest about what it cannot do."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from attlas.display.statements import Untypeset, mathml, prose, split, typeset


@pytest.mark.parametrize(
    "latex",
    [
        r"D_\psi(\bar W_{mm},\bar W(k))\to0",
        r"\begin{cases}\frac{a}{b} & p>2\\ c & p=2\end{cases}",
        r"\arg\min_W \|W\|_{p,p}",
        r"\operatorname*{argmin}_x \left(\sum_{i=1}^n x_i\right)",
        r"\text{a < b & c}",
    ],
)
def test_the_result_is_xml_without_namespace(latex):
    tree = ElementTree.fromstring(mathml(latex))
    assert tree.tag == "math"
    assert "xmlns" not in mathml(latex)


@pytest.mark.parametrize("latex", [r"\frac{a}{", r"\nosuch", "", r"\left(", r"a^b^c"])
def test_what_cannot_be_typeset_is_shown_as_code_with_the_reason(latex):
    with pytest.raises(Untypeset):
        mathml(latex)
    assert "<code>" in typeset(latex)
    assert "not typeset" in typeset(latex)


def test_links_classes_and_styles_do_not_pass():
    for latex in (r"\href{javascript:alert(1)}{x}", r"\style{color:red}{x}", r"\class{a}{x}"):
        assert "=" not in mathml(latex)


def test_letters_that_browsers_cannot_vary_are_characters():
    text = "".join(ElementTree.fromstring(mathml(r"\mathcal{L}\mathbb{R}\mathbf{x}")).itertext())
    assert text == "ℒℝ𝐱"


def test_lines_end_only_outside_groups():
    long = r"\|W(k+1)\|_{p,p}^{p-1}-\|W(k)\|_{p,p}^{p-1} \le \eta \quad (0 < \eta \le 1)"
    parts = split(long)
    assert len(parts) == 2
    assert parts[1] == [r"(0 < \eta \le 1)"]
    assert parts[0][-1] == r"\le \eta"
    assert "".join("".join(part) for part in parts).count("k") == 2


def test_prose_escapes_around_mathematics():
    assert prose("a < b, $p$ & `c<d`") == (
        "a &lt; b, <math><mi>p</mi></math> &amp; <code>c&lt;d</code>"
    )
    assert prose("5 $ and $ 6") == "5 <math><mi>a</mi><mi>n</mi><mi>d</mi></math> 6"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("8e+14 (printed), 1e-05.", "8 × 10<sup>14</sup> (printed), 10<sup>−5</sup>."),
        ("[-1.5, 2-3], x1e5, a-1, 0x1e5", "[−1.5, 2-3], x1e5, a-1, 0x1e5"),
        ("95 % <= 1 => x", "95\N{NO-BREAK SPACE}% ≤ 1 =&gt; x"),
        ("at $n$, or $m$ so", 'at <span class="kept"><math><mi>n</mi></math>,</span> or '
         "<math><mi>m</mi></math> so"),
        ("($n$ and", '<span class="kept">(<math><mi>n</mi></math></span> and'),
        ("`1e-5 <= x`", "<code>1e-5 &lt;= x</code>"),
    ],
)  # fmt: skip
def test_numbers_and_signs_of_prose_are_those_of_print(text, shown):
    assert prose(text) == shown


def test_a_long_formula_may_still_break_before_its_last_piece():
    shown = prose(r"$\|W_1 + W_2 + W_3\|_{p,p} \le 1$.")
    assert shown.count("<wbr>") == 1
    assert shown.endswith(".</span>")
    assert not shown.startswith("<span")


def test_signs_names_and_norms_are_spaced_as_mathematics():
    minus = mathml(r"a \le -b")
    assert '<mo form="prefix">−</mo>' in minus
    assert '<mspace width="0.167em"></mspace>' in mathml(r"\|x\|\|y\|")
    assert "<mi>log</mi><mspace" in mathml(r"\log\log k")
    assert mathml(r"\min_i x").startswith("<math><msub><mi>min</mi>")
    assert "<munder><mi>min</mi><mi>i</mi></munder>" in mathml(r"\min_i x", display=True)


def test_a_script_belongs_to_the_whole_of_a_tall_pair_of_brackets():
    """Browsers leave a bracket small that is the base of a script by itself."""
    plain = re.sub(r"<mo [^>]*>", "<mo>", mathml(r"2\bigl(a\bigl(b\bigr)c\bigr)^2"))
    pair = "<mo>(</mo><mi>a</mi><mo>(</mo><mi>b</mi><mo>)</mo><mi>c</mi><mo>)</mo>"
    assert plain == f"<math><mn>2</mn><msup><mrow>{pair}</mrow><mn>2</mn></msup></math>"
    assert "<mi>x</mi><msup><mo " in mathml(r"x\bigr)^2")  # a pair in two lines stays as it is
