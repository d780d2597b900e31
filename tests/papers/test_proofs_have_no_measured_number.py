"""Every number of a proof is one that its mathematics gives: measurements stand in records.

A decimal, a power of ten, and a number of several digits are compared with their formula here, or
are choices of the proof. What was measured is said by experiments and claims, on their pages.
"""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from literal_results import FORMULA, NO_RESULT, NUMBERED
from scipy.optimize import brentq

from gu2024exploring.library.bounds.gu2024_score import (
    gu2024_complexity,
    gu2024_log_smallest_eigenvalue,
)

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("papers/*/proofs/*.md")), ROOT / "docs" / "open_questions.md"]
REFERENCE = re.compile(r"\([A-Z]?\d+(?:\.\d+)?\)|\((?:19|20)\d\d\)|\bparts? \d+|\(A\d\.\d\)")
COUNTED = re.compile(
    r"\b\d[\d.,]* (?:of (?:the )?\d+"
    r"|(?:\w+ )?(?:draws|instances|problems|runs|searches|seeds|starts|trials))"
    r"|\b\d[\d.,]* %"
)
"""How often something was observed, also with one digit."""
POWER = re.compile(r"10\s*\^(?:\{[^}]*\}|\d)")
SHARE = 4 / (3 * math.sqrt(3))
"""The largest third central moment, which the proofs call kappa."""


def _training(square: float) -> dict[str, float]:
    """The constants of the theorem on training at w^2 = square."""
    w = math.sqrt(square)
    a, b = w / math.sin(w), w / math.tan(w)
    radius = 3 + 2 * a - 2 * b
    late = (3 - 2 * b) / (2 * b)
    growth = 1 / math.cos(w)
    exponent = square / radius * 2 * growth * (growth + late + 1)
    return {
        "r": math.sqrt(radius),
        "heads": radius / square,
        "loss": growth,
        "distance": late,
        "expansion": math.exp(exponent),
    }


def _least_term(d: int) -> float:
    """The least of the larger term of Theorem 6.6, at the right ends of pieces."""
    sigma = 3.0 if d <= 6 else 2.0
    ends = [math.comb(d + q, d) - 1 for q in range(1, 401)]
    terms = [
        max(
            -gu2024_log_smallest_eigenvalue(n, d, sigma) - math.log(n) / 2,
            math.log(float(gu2024_complexity(n, float(d), 1.0))),
        )
        for n in ends
        if 3 <= n <= 10**12
    ]
    return math.exp(min(terms))


def _last_not_monotone(p: int) -> int:
    """The last n with (n // s)^s above (n // p)^p for an s below p."""
    s = np.arange(1, p)
    return max(
        n
        for n in range(p, 60 * p)
        if (s * np.log(n // s)).max() > p * math.log(n // p) * (1 + 1e-12)
    )


def _own_words(K: int, B: float) -> float:
    return K + K / (2 * B) * math.log((K - 1 + math.exp(-B)) / (K - 1 + math.exp(B)))


def _one_unit(share: float, m: int) -> float:
    """The first order of one unit with a share of the attention, as a part of its bound."""
    mean = 2 * share - 1
    others = (1 - share) ** 2 / (m - 1)
    return (share**2 * (1 - mean) - others * (1 + mean)) / (share / 2)


_FIRST, _SECOND = _training(0.9), _training(0.3)
_BEST = brentq(lambda rho: math.log(rho) - 1 - 1 / rho, 2, 6)
_SQUARE = (math.exp(0.01) - 1.01) / 1e-4
_STEP = math.expm1(0.01) / 0.01
_KERNEL = math.exp(6) - 4 * math.exp(4) + 4 * math.exp(3) - math.exp(2)
_RHO = 1 + math.sqrt(2)
COMPUTED = {
    "attlas_audit/certificates": {"0.7363": math.sqrt((1 + (1 + SHARE) ** 2 / 5) / 3)},
    "deora2023optimization/dimension_free_hessian": {
        "0.7698": SHARE,
        "0.2113": (3 - math.sqrt(3)) / 6,
    },
    "deora2023optimization/several_heads": {"2.4": 3 * math.tanh(math.log(3))},
    "deora2023optimization/training": {
        "1.0659": 1 / math.cos(0.5 / math.sqrt(2)),
        "1.994": _FIRST["r"],
        "4.42": _FIRST["heads"],
        "1.716": _FIRST["loss"],
        "1.205": _FIRST["distance"],
        "1.0645": math.exp(1 / 16),
        "2.30": 8 * math.log(4 / 3),
        "3.61": 5 / (2 * math.log(2)),
        "3.18": brentq(lambda q: 2 * q * math.log(q) - 1 - 2 * q, 2, 6),
        "11.03": _SECOND["heads"],
        "1.829": _SECOND["expansion"],
        "1.171": _SECOND["loss"],
        "1.670": _SECOND["distance"] + 1,
        "4.25": 2 + 9 / 4,
        "0.157": 4 / 3 * 2 * 4.25 / 72,
    },
    "gu2024exploring/diffusion": {
        **dict(
            zip(
                ("42.5", "34.9", "17.1", "6.32", "1.97", "8.01", "3.27"),
                map(_least_term, range(2, 9)),
                strict=True,
            )
        ),
        "54": math.comb(11, 2) - 1,
        "13,983,815": math.comb(49, 6) - 1,
    },
    "gu2024exploring/kernel_limit": {
        "258.0": _KERNEL,
        "0.36": math.sqrt(2 * _KERNEL / 4000),
        "53.6": math.exp(4) - 1,
        "34.9": _KERNEL * math.exp(-2),
    },
    "gu2024exploring/one_step": {
        "0.874": _one_unit(0.55, 8),
        "0.50168": _SQUARE,
        "0.0050168": 0.01 * _SQUARE,
        "0.00502": 0.01 * _SQUARE,
        "0.0101": 2 * 0.00502,
        "1.0101": 1 + 2 * 0.00502,
        "1.0034": 2 * _SQUARE,
        "1.00502": _STEP,
        "1.01513": 1.00502 * math.exp(0.01),
        "1.0305": 1.01513**2,
    },
    "julistiono2024optimizing/cone": {
        "0.018": 16 / 7 / 3 * (2 / 9) ** 2.5,
        "0.026": 1 / 7 * 0.5**2.5,
        "1.09": 1 + 0.5**3.5,
        "1.02": 1 + 2 * (2 / 9) ** 3.5,
        "0.91": 1 / (1 + 0.5**3.5),
        "0.18": 0.5**2.5,
        "0.83": 19 / 20 * 7 / 8,
        "1.23": 1 + 0.18 + 1 / 20,
        "2.4": 2 * 1.2,
        "4.8": 4 * 1.2,
    },
    "liu2021analyzing/landscape": {"2899": _last_not_monotone(100)},
    "liu2021analyzing/regions": {
        "10^{30.1}": 10 ** (50 * math.log10(200 // 50)),
        "10^{22.0}": 10 ** (73 * math.log10(200 // 73)),
    },
    "trauger2023sequence/covers": {
        "89.3": 64 * math.log(2) - 32 * math.log(math.pi) + math.lgamma(33),
        "4.9": math.log(2 * 64 + 1),
        "44.4": 64 * math.log(2),
        "16.6": 4 * math.log(64),
    },
    "trauger2023sequence/dudley": {
        "2.415": _RHO,
        "8.243": math.sqrt(2) * _RHO**2,
        "3.591": _BEST,
        "5.079": math.sqrt(2) * (1 + _BEST) / math.log(_BEST),
        "67.9": 2 * ((1 + _RHO) / (1 - 1 / _RHO)) ** 2,
    },
    "trauger2023sequence/layers": {"4.99999": _own_words(6, 0.01)},
}
"""What a proof prints, and its formula; the last digit may be rounded either way."""
CHOSEN = {
    "attlas_bounds/bounds": [
        "60",
        "1000",
        "10^{-59}",
        "10^{-55}",
        "10^{-50}",
        "10^{-52}",
        "10^{-40}",
        "10^{-9}",
    ],
    "deora2023optimization/several_heads": ["0.9"],
    "deora2023optimization/training": ["0.05"],
    "gu2024exploring/diffusion": ["10^{12}", "1.3", "10^8", "10^9"],
    "gu2024exploring/kernel_regression": ["67.5"],
    "gu2024exploring/one_step": ["0.01", "0.55", "16"],
    "julistiono2024optimizing/cone": ["1.2"],
    "liu2021analyzing/trained_networks": ["255", "16"],
    "trauger2023sequence/union": ["10^{250}"],
    "open_questions": ["10^{12}", "1.97", "16", "1.6"],
}
"""Numbers that a proof chooses, of an example, a precision or a constant of its theorem."""


def name_of(page: Path) -> str:
    return f"{page.parts[-3]}/{page.stem}" if page.parent.name == "proofs" else page.stem


def figures(text: str) -> list[str]:
    """Decimals, powers of ten and, outside formulas, numbers of several digits."""
    text = REFERENCE.sub("", NUMBERED.sub("", NO_RESULT.sub(" x ", text)))
    outside = re.sub(FORMULA, " ", text)
    within = " ".join(re.findall(FORMULA, text))
    powers = POWER.findall(within)
    decimals = re.findall(r"\d*\.\d+", POWER.sub("", within))
    return [*COUNTED.findall(outside), *re.findall(r"\d[\d.,]*\d", outside), *powers, *decimals]


def value_of(figure: str) -> float:
    base, _, power = figure.partition("^")
    return float(base) ** float(power.strip("{}")) if power else float(base.replace(",", ""))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The attack reaches 0.9985 of it.", ["0.9985"]),
        ("It holds in 3 of 8 cases, on 2 seeds.", ["3 of 8", "2 seeds"]),
        ("At $w^2=\\frac12$ it is $r=1.994$, within 8 %.", ["8 %", "1.994"]),
        ("Lemma 22 needs $n\\ge10^{12}$ by (18), of Maurer (2004).", ["10^{12}"]),
        ("By `a_2.5` and [this](b/2.5.md), $e^{-2}\\le\\frac1{20}$.", []),
    ],
)
def test_which_numbers_are_figures(text, said):
    assert figures(text) == said


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_figure_was_measured(page):
    name = name_of(page)
    text = page.read_text(encoding="utf-8")
    allowed = {*COMPUTED.get(name, ()), *CHOSEN.get(name, ())}
    said = set(figures(text))
    assert said - allowed == set()
    assert allowed - said == set()


@pytest.mark.parametrize(
    ("figure", "value"),
    [pytest.param(f, v, id=f"{n}-{f}") for n, all_ in COMPUTED.items() for f, v in all_.items()],
)
def test_a_constant_is_that_of_its_formula(figure, value):
    if figure.startswith("10^"):
        printed = figure[4:-1]
        value = math.log10(value)
    else:
        printed = figure.replace(",", "")
    unit = 10.0 ** -len(printed.partition(".")[2])
    assert abs(float(printed) - value) < unit
