r"""The form by which a statement is known as printed again: what it says, not how it is set."""

import pytest

from attlas.projects.latex.restatements import printed_form

TEXT = r"For all $x$, $|x|_{12} \le 0.5\,x^2$."


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (r"\emph{For all} $x$, \[ \left|x\right|_{12} \le 0.5 x^2 \]", True),
        (r"\label{a}For all~$x$, \begin{equation*}|x|_{12} \le 0.5 x^2.\end{equation*}", True),
        (TEXT.replace(r"\le", r"\ge"), False),
        (TEXT.replace("0.5", "5"), False),
        (TEXT.replace("0.5", "0.6"), False),
        (TEXT.replace("{12}", "1{2}"), False),
        (TEXT.replace("all", "some"), False),
        (TEXT + " There is no other.", False),
    ],
)
def test_two_texts_are_one_statement(other, same):
    assert (printed_form(TEXT) == printed_form(other)) is same


def test_a_long_text_of_spaces_is_read_at_once():
    assert printed_form(" ," * 200_000 + " " * 400_000) == ("," * 200_000).rstrip(",")
