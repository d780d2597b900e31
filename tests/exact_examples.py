"""Figures of exact examples in remarks, reasons and errata, as the words around them, computed."""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq
from scipy.special import iv
from scipy.stats import norm

from attlas.bounds.optimisation.deora2023_training import Setting, deora2023_head_condition
from attlas.bounds.optimisation.gu2024_convergence import gu2024_width_log10
from attlas.verify.registry import find_claims
from gu2024exploring.library.bounds.gu2024_score import gu2024_complexity
from liu2021analyzing.library.bounds.liu2021_sample_size import liu2021_attention, liu2021_deep

DEORA, GU, LIU, TRAUGER = (
    "deora2023optimization/",
    "gu2024exploring/",
    "liu2021analyzing/",
    "trauger2023sequence/",
)


class Example(NamedTuple):
    """The exact example of a claim, and the entries of its two sides there."""

    at: dict[str, np.ndarray]
    left: list[float]
    right: list[float]


@cache
def example(name: str, **arrays: float) -> Example:
    """The two sides of a claim on its stored instance, or on arrays at hand."""
    (claim,) = find_claims([name])
    stored = claim.witness() if claim.witness else {}
    at = {key: np.asarray(each) for key, each in {**stored, **arrays}.items()}
    traced = claim.backend == "jax"
    sides = claim.sides({key: jnp.asarray(each) for key, each in at.items()} if traced else at)
    return Example(at, np.ravel(sides.left).tolist(), np.ravel(sides.right).tolist())


def _dudley() -> float:
    """The factor of the chain with the best ratio of scales."""
    best = brentq(lambda rho: math.log(rho) - 1 - 1 / rho, 2, 6)
    return math.sqrt(2) * (1 + best) / math.log(best)


def _path_over_start() -> float:
    """The largest distance on a path over that of its start, at w^2 = 0.9."""
    w = math.sqrt(0.9)
    return math.sqrt(3 + 2 * w / math.sin(w) - 2 * w / math.tan(w))


def _turn() -> tuple[float, float]:
    """The angle between lines at which two projections in turn are farthest from a third."""

    def distance(degrees: float) -> float:
        angle = math.radians(degrees)
        lines = [np.array([math.cos(a), math.sin(a)]) for a in (0.0, -angle, angle)]
        one, first, second = (np.outer(v, v) for v in lines)
        return float(np.linalg.norm(one - second @ first, 2))

    farthest = max(np.linspace(0, 90, 181).tolist(), key=distance)
    return farthest, distance(farthest)


def _stretched() -> float:
    """By how much the printed size of Theorem 1 falls when inputs are stretched by 2."""
    unit, twice = (
        float(liu2021_attention(130, 10, 0.1, norms, s0=11, constants="printed"))
        for norms in ((1.0, 1.0, 1.0), (2.0, 0.5, 1.0))
    )
    return unit / twice


def _left_for_noise() -> float:
    """The attention that is left for noise, from the printed margin at the example."""
    of = example(DEORA + "section-7-margin")
    S, T, Z = float(of.at["S"]), len(of.at["X"]), float(of.at["Z_mu"])
    return (1 - of.left[0] / (S * math.sqrt(T / 2))) / (1 + 2 * Z / S)


def _logarithm_of_length() -> tuple[float, float]:
    """What log T costs at T = 200, and the log T at which it costs what dense weights cost."""
    d, m = 64, 10**6
    least = 2 * d / math.pi * math.log(2 * d**2 + 1) - math.log(d * m)
    return math.log(d * m * 200) / math.log(d * m), least


def _units_beyond() -> float:
    """The logarithm of how many of the units exceed B in a direction, at the least B."""
    of = example(GU + "lemma-b-1-part-1-printed").at
    return float(of["log_m"][0] + norm.logsf(of["B"][0]))


def _width(n: int, power: int) -> float:
    """The power of ten of the reconstructed width for two outputs at lambda = 1, where B is 1."""
    return float(gu2024_width_log10(n, 2, 1.0, 0.1, 1e-3, C=1.0, power=power, constants="printed"))


def _samples_per_exponent() -> float:
    """How many samples more divide the printed square of gamma by e."""
    few, many = (
        liu2021_deep(gamma, 1e4, 10, c=10.0, constants="printed") for gamma in (1e-3, 1e-5)
    )
    return (many - few) / (2 * math.log(100))


def _recursion() -> list[str]:
    """The optimum of the recursion over the printed entropy."""
    of = example(TRAUGER + "theorem-4-2-printed")
    one, two, four = (right / left for left, right in zip(of.left, of.right, strict=True))
    return [f"is {one:.1f}, {two:.1f} and {four:.1f} times the printed entropy at 1, 2 and 4"]


def _comparison() -> list[str]:
    """The regions of Theorem 4 as powers of ten."""
    of = example(LIU + "theorem-4-comparison")
    few, many = (
        [f"10^{{{each / math.log(10):.1f}}}" for each in side] for side in (of.left, of.right)
    )
    alone = math.exp(of.left[1]), math.exp(of.right[1])
    return [
        f"${few[0]}$ at $s_0 = 50$, ${many[0]}$ at $s_0 = 73$",
        f"{alone[0]:.0f} at $s_0 = 1$, but {alone[1]:.0f} at the figure's",
        f"${few[2]}$ at $s_0 = 99$, ${many[2]}$ at $p = 100$",
    ]


def _sides(name: str, *patterns: str) -> Callable[[], list[str]]:
    """Words with the sides `left`, `right` and `ratio` of an example filled in."""

    def words() -> list[str]:
        of = example(name)
        ratio = [a / b if b else math.inf for a, b in zip(of.left, of.right, strict=False)]
        return [each.format(left=of.left, right=of.right, ratio=ratio) for each in patterns]

    return words


_SIDES = {
    DEORA + "margin-order": [r"$\gamma_\star = {left[0]:.1f} > \gamma_{{attn}} = {right[0]:.2f}$"],
    DEORA + "section-6-1-beta-3": [
        r"$\beta_3(\theta) = {left[0]:.0f}$, and the printed bound is {right[0]:.0f}"
    ],
    DEORA + "proposition-1-pooled": ["has length {left[0]:.0f}, the bound is {right[0]:.0f}"],
    LIU + "conditional-variance-printed": ["the print leaves {left[0]:.0f}"],
    LIU + "erratum-2": ["norm {left[0]:.3f}, not {right[0]:.1f}"],
    LIU + "lemma-1-2-cover-exchanged": ["{left[0]:.1f} against {right[0]:.1f}"],
    LIU + "theorem-2-dominance": [
        "ratio is {left[0]:.2f}",
        "by {left[0]:.2f}, not by {right[0]:.0f}",
    ],
    LIU + "theorem-2-parameters-printed": [
        "Of {left[0]:,.0f} parameters",
        "it has {right[0]:,.0f}",
    ],
    LIU + "theorem-4": [
        "${right[0]:.0f} < {left[0]:.0f}$ and ${right[1]:.0f} < {left[1]:.0f}$ regions",
        "{right[1]:.0f} in place of {left[1]:.0f}",
    ],
    LIU + "theorem-5-softplus": ["is {left[0]:.0f} in place of {right[0]:.1f}"],
    LIU + "theorem-7-almost-surely": ["rank {left[0]:.0f}"],
    LIU + "theorem-7-preactivation": ["$p d_v = {left[0]:.0f}$ at most"],
    TRAUGER + "lemma-3-1-printed": ["{left[0]:.2f} against {right[0]:.0f}"],
    TRAUGER + "lemma-3-3-rows": ["is {left[0]:.1f}, the printed one {right[0]:.1f}"],
    TRAUGER + "lemma-3-4-printed": ["is {left[0]:.1f}, the printed one {right[0]:.1f}"],
    TRAUGER + "theorem-4-1-negative": ["bracket is ${right[0]:.2f}$"],
    TRAUGER + "theorem-4-2-printed": ["needs {right[0]:.0f} where {left[0]:.0f} is printed"],
    TRAUGER + "lemma-e-2-first-layer": ["softmax, {ratio[0]:.0f} times the printed"],
}


def _first(name: str) -> tuple[float, float]:
    """The first entry of each side."""
    of = example(name)
    return of.left[0], of.right[0]


def _own_words() -> list[str]:
    """Theorem 5.1 where each word occurs once, by enumeration of all signs."""
    return [f"{example(TRAUGER + 'theorem-5-1-own-words', size=0.01).left[0]:.5f}"]


def _turned() -> list[str]:
    angle, distance = _turn()
    assert math.isclose(distance, (1 + math.sqrt(2)) / 2)
    return [rf"angles of {angle:.1f} degrees give a distance of $\frac12(1+\sqrt2)$"]


def _probability() -> list[str]:
    """The printed samples of Theorem 3 and the exponent of the probability that they leave."""
    of = example(LIU + "theorem-3")
    printed = float(of.at["printed"])
    return [f"printed {printed:.0f} samples", f"$e^{{{of.left[0]:.0f}}}$"]


def _transposed() -> list[str]:
    output = example(TRAUGER + "theorem-4-1-transposes").at["output"]
    return [f"holds {int(output[:, 0].sum())} ones, each row one"]


def _values() -> list[str]:
    at = example(TRAUGER + "corollary-4-1-1-product").at
    return [f"is {at['value'].max() / at['output'].max():.0f} times $W_c$"]


def _softmax_cost() -> list[str]:
    """With 1 for the softmax in place of the printed 2."""
    left, right = _first(TRAUGER + "lemma-e-2-first-layer")
    return [f"by {2 * left / right:.0f} times", f"softmax, {left / right:.0f} times the printed"]


def _of_sides(name: str) -> Callable[[], list[str]]:
    return _sides(name, *_SIDES[name])


OF_CLAIMS: dict[str, Callable[[], list[str]]] = {
    **{name: _of_sides(name) for name in _SIDES},
    DEORA + "proposition-4-losses": lambda: [f"it is {1 / math.cos(math.sqrt(0.5) / 2):.3f}"],
    DEORA + "section-7-margin": lambda: [f"leaves {_left_for_noise():.1f} for the noise"],
    DEORA + "theorem-1-distance": lambda: [f"{_path_over_start():.3f} in place of 3"],
    GU + "exponential-distance": _turned,
    GU + "b-of-the-width": lambda: [f"$10^{{{18 * 35 / math.log(10) - 0.5:.0f}}}$, whatever"],
    GU + "lemma-b-1-part-1-printed": lambda: [
        f"$e^{{{_units_beyond():.0f}}}$ and more exceed",
        f"< {_power(math.exp((35 / 10) ** 2), 0, '{}')}$",
    ],
    GU + "theorem-4-2-width": lambda: [
        f"width is $10^{{{_width(4, 2):.2f}}}$",
        f"alone is ${_power(math.exp(18), 1, '{}')}$",
    ],
    GU + "theorem-4-2-printed": lambda: [f"above $10^{{{_width(4, 2):.1f}}}$"],
    GU + "theorem-6-6": lambda: [f"above $10^{{{_width(5, 3):.0f}}}$"],
    GU + "smallest-eigenvalue": lambda: _eigenvalues(),
    GU + "theorem-6-6-vacuous": lambda: _without_logarithm(),
    LIU + "assumption-a2-trivial": lambda: [f"top {math.isqrt(130)} of 130"],
    LIU + "theorem-1-eta": lambda: [f"by {_stretched():.1f} for $c = 2$"],
    LIU + "theorem-3": _probability,
    LIU + "theorem-3-run": lambda: [f"falls as $e^{{-n/{_samples_per_exponent():.0f}}}$"],
    LIU + "theorem-4-comparison": _comparison,
    TRAUGER + "corollary-4-1-1-product": _values,
    TRAUGER + "dense-weights-entropy": lambda: [
        rf"$\ln T$ of {_logarithm_of_length()[1]:.0f} at $d = 64$"
    ],
    TRAUGER + "dudley-integral": lambda: [f"{_dudley():.2f} against"],
    TRAUGER + "lemma-e-2-first-layer": _softmax_cost,
    TRAUGER + "theorem-4-1-transposes": _transposed,
    TRAUGER + "theorem-5-1-own-words": lambda: [f"ratio is {each}" for each in _own_words()],
}
"""Words of remarks and reasons, by the name of the claim."""


def _margins() -> list[str]:
    star, attention = _first(DEORA + "margin-order")
    return [f"it is {attention:.2f} against {star:.1f}"]


def _orientation() -> list[str]:
    rows, columns = (_first(TRAUGER + name) for name in ("lemma-3-3-rows", "lemma-3-4-printed"))
    return [f"{rows[0]:.0f} against {rows[1]:.1f}", f"{columns[0]:.1f} against {columns[1]:.1f}"]


def _factor_of_concentration() -> list[str]:
    kept, hoped = _first(LIU + "theorem-2-dominance")
    return [f"falls by {kept:.2f} from", f"not by {hoped:.0f}"]


def _power(number: float, digits: int = 1, without: str = "") -> str:
    """A number as digits times a power of ten, without some characters."""
    base, _, exponent = f"{number:.{digits}e}".partition("e")
    return rf"{base} \cdot 10^{{{int(exponent)}}}".translate(str.maketrans("", "", without))


def _most_heads() -> list[str]:
    """Heads of (3): its order squared, and with the constants of the proof."""
    order = (10 * math.sqrt(10) * 10**3) ** 2
    proof, small = (
        float(deora2023_head_condition(Setting(*sizes), "printed"))
        for sizes in ((10, 10, 1.0, 10.0, 1.0), (2, 2, 1.0, 1.0, 1.0))
    )
    return [
        rf"H \ge 10^{math.log10(order):.0f}$, and $10^{{{math.log10(proof):.0f}}}$ with",
        f"${_power(small, 1, '{}')}$ heads",
    ]


def _widths() -> list[str]:
    """The width of Theorem 4.2 at three sizes: C = 1, C = 10, and a B for all units."""
    sizes = ((5, 3), (10, 2), (100, 10))
    settings = ((1.0, "printed"), (10.0, "printed"), (10.0, "corrected"))
    logs = [
        [float(gu2024_width_log10(*size, 0.1, 0.1, 1.0, C=C, constants=kind)) for size in sizes]
        for C, kind in settings
    ]
    first = [_power(10**log) for log in logs[0]]
    tens = [f"${_power(10 ** logs[1][0], 0)}$"] + [f"$10^{{{log:.0f}}}$" for log in logs[1][1:]]
    return [
        *(f"${each}$ ($n = {n}$, $d = {d}$)" for each, (n, d) in zip(first, sizes, strict=True)),
        f"it is {', '.join(tens)}",
        ", ".join(f"$10^{{{log:.0f}}}$" for log in logs[2]),
    ]


def _eigenvalues() -> list[str]:
    """Ceilings of the least eigenvalue, rounded up."""
    ceilings = []
    for n in (20, 40):
        value = n * sum(iv(k - 1, 1) + iv(k + 1, 1) for k in range(n // 2, n // 2 + 40))
        unit = 10.0 ** (math.floor(math.log10(value)) - 1)
        ceilings.append(f"${_power(math.ceil(value / unit) * unit)}$")
    return [", ".join(ceilings)]


def _informative_from(d: int, inside: float | None = None) -> float:
    """The samples from which Gamma is below 1."""

    def log_term(log: float) -> float:
        return math.log(float(gu2024_complexity(math.exp(log), d, 0.1, inside)))

    return math.exp(brentq(log_term, 3, 40))


def _statistical_term() -> list[str]:
    low, high = (_power(_informative_from(d), 2, "{}") for d in (2, 8))
    return [
        f"$n = {low}$ for $d = 2$",
        f"${high}$ for $d = 8$",
        f"above $10^{{{_width(5, 3):.0f}}}$",
    ]


def _without_logarithm() -> list[str]:
    few, many = (round(_informative_from(d, math.e), digits) for d, digits in ((2, -1), (8, -3)))
    return [
        f"$n = {_power(_informative_from(2), 2, '{}')}$",
        f"$n = {few:.0f}$ for $d = 2$ and {many:,.0f} for $d = 8$",
    ]


def _rounded_regions() -> list[str]:
    of = example(LIU + "theorem-4-comparison")
    logs = [of.left[0], of.right[0], 100 * math.log(200 // 100)]
    first, second, third = (f"$10^{{{each / math.log(10):.1f}}}$" for each in logs)
    return [f"{first}, {second} and {third} for"]


OF_ERRATA: dict[str, Callable[[], list[str]]] = {
    DEORA + "Theorem 1, equation (3); Corollary 2": _most_heads,
    GU + "Theorem 4.2, the width": _widths,
    GU + r"Theorem 4.2, $\lambda > 0$ 'as in previous works'": _eigenvalues,
    GU + "Theorem 6.6": _statistical_term,
    LIU + "Section 4.1 and appendix C.1, comparison of the bounds": _rounded_regions,
    TRAUGER + r"Theorem 4.1 and Appendix C, the best $\delta$": lambda: [
        f"{_first(TRAUGER + 'theorem-4-1-negative')[1]:.2f}"
    ],
    DEORA + r"Sections 5.3 and 7, '$\gamma_{attn} \ge \gamma_\star$'": _margins,
    LIU + r"After Theorem 2, 'proportional to $(\sqrt{s_0} + \tau \sqrt p)^4$'": (
        _factor_of_concentration
    ),
    TRAUGER + "Sections 1, 2.5 and 3.4, comparison with Edelman et al. 2022": lambda: [
        rf"$\log T$ costs {100 * (_logarithm_of_length()[0] - 1):.0f} per cent at $T = 200$"
    ],
    TRAUGER + "Section 2.1, Lemmas 3.2 to 3.5 and Theorem 4.1, norms of columns and of rows": (
        _orientation
    ),
    TRAUGER + "Theorem 4.2, last step of the proof; Corollaries 4.2.1, F.0.1 and F.0.2": _recursion,
    TRAUGER + "Theorem 5.1, the displayed inequality": lambda: [
        f"{each} at $K = 6$ by enumeration" for each in _own_words()
    ],
}
"""Words of errata, by paper and place."""
