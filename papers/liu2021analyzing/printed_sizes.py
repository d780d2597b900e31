r"""The sample sizes that the paper prints, with the hidden constant 1, against the library's.

Transcribed from the text; what is wrong with them is in `sample_size_errata`.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.statement import identity
from liu2021analyzing.library.bounds import liu2021_printed as sizes

_SIZES = ("p", "t", "d", "d_v", "d_q", "d_a", "d_f")
_NORMS = ("C_x", "C_1", "C_2", "C_5", "C_6", "C_7", "C_8", "C_9", "gamma", "c_k")


def settings(rng, count):
    """Sizes from 1 to 40, norms over two decades."""
    rows = []
    for _ in range(count):
        numbers = tuple(int(k) for k in rng.integers(1, 40, 7))
        norms = tuple(float(v) for v in 10 ** rng.uniform(-1, 1, 10))
        s0, tau = int(rng.integers(1, numbers[0] + 1)), float(rng.uniform(0, 1))
        named = zip((*_SIZES, *_NORMS), (*numbers, *norms), strict=True)
        rows.append({**dict(named), "s0": s0, "tau": tau})
    return {name: np.array([row[name] for row in rows], float) for name in rows[0]}


def against(library, order, argument, parameters):
    """A size of the library and order^2 log(argument) P; near 1 the logarithm's rounding stays."""
    scale = order**2 * parameters
    return Sides(library, scale * jnp.log(argument), scale * (1 + jnp.abs(jnp.log(argument))))


printed = partial(identity, source=Source.FOUND, sample=settings, status=Status.RECONSTRUCTED)


@printed(
    "Theorem 1, its sample size",
    controls=[
        Control("the square in place of the fourth power", power=1),
        Control("$pd$ parameters", second=0),
        Control(r"$\gamma$ in place of $\gamma^2$", root=0.5),
    ],
)
def theorem_1_printed(p, d, s0, tau, C_1, C_2, gamma, *, power=2, second=1, root=1.0):
    r"""$$n = (\sqrt{s_0} + \tau \sqrt{p})^4 \frac{\eta^2}{\gamma^2}
    \log \frac{(\sqrt{s_0} + \tau \sqrt{p})\, \eta}{\gamma}\, (pd + d), \quad \eta = C_1^2 C_2$$
    """
    spread, eta = jnp.sqrt(s0) + tau * jnp.sqrt(p), C_1**2 * C_2
    order = spread**power * eta / gamma**root
    size = sizes.printed_attention(p, d, gamma, C_1, C_2, s0, tau)
    return against(size, order, spread * eta / gamma, p * d + second * d)


@printed("Corollary 1, its sample size", controls=[Control("$p$ in place of $p^2$", power=0.5)])
def corollary_1_printed(p, d, C_1, C_2, gamma, *, power=1.0):
    r"""$$n = p^2 \frac{\eta^2}{\gamma^2} \log \frac{p \eta}{\gamma}\, (pd + d),
    \quad \eta = C_1^2 C_2$$
    """
    eta = C_1**2 * C_2
    size = sizes.printed_baseline(p, d, gamma, C_1, C_2)
    return against(size, p**power * eta / gamma, p * eta / gamma, p * d + d)


@printed(
    "Theorem 2, its sample size",
    controls=[
        Control(r"without $\sqrt{p}\, t$", words=0.0),
        Control(r"$\eta_b = C_5 C_6$", product=True),
    ],
)
def theorem_2_printed(
    p, t, d, d_v, s0, tau, C_1, C_2, C_5, C_6, C_8, gamma, *, words=1.0, product=False
):
    r"""$$n = k^2 \frac{\eta_a^2}{\gamma^2} \log \frac{k\, \eta_a \eta_b}{\gamma}\, p d_v d,
    \quad k = (\sqrt{s_0} + \tau \sqrt{p})^2 + \sqrt{p}\, t,\ \eta_a = C_1^2 C_2 C_8,
    \ \eta_b = C_5 + C_6$$
    """
    k = (jnp.sqrt(s0) + tau * jnp.sqrt(p)) ** 2 + words * jnp.sqrt(p) * t
    eta_a, eta_b = C_1**2 * C_2 * C_8, C_5 * C_6 if product else C_5 + C_6
    norms = C_1, C_2, C_5, C_6, C_8
    size = sizes.printed_self_attention((p, t, d, d_v), gamma, norms, s0, tau)
    return against(size, k * eta_a / gamma, k * eta_a * eta_b / gamma, p * d_v * d)


@printed("Theorem 3, its sample size", controls=[Control(r"times $1 / \gamma^2$", power=1.0)])
def theorem_3_printed(c_k, d_a, gamma, *, power=0.0):
    r"""$$n = \log \frac{c_k}{\gamma}\, P$$

    For any number $P$ of parameters; the paper's is in theorem-3-parameters.
    """
    size = sizes.printed_deep(gamma, c_k, d_a)
    return against(size, gamma**-power, c_k / gamma, d_a)


@printed(
    "Theorem 6, its sample size",
    controls=[
        Control(r"$\eta^2 / \gamma^2$ alone", outside=0.0),
        Control("$C_8$ alone in the logarithm", update=0.0),
    ],
)
def theorem_6_printed(t, d, d_a, d_f, C_x, C_1, C_2, C_8, C_9, gamma, *, outside=1.0, update=1.0):
    r"""$$n = \frac{C_1^2 C_x^2 \eta^2}{\gamma^2} \log \frac{\eta\, C_8 C_9}{\gamma}\,
    (td + d + d_a + d_f), \quad \eta = C_1 C_2 C_x$$
    """
    eta = C_1 * C_2 * C_x
    order, inside = (C_1 * C_x) ** outside * eta / gamma, eta * C_8 * C_9**update / gamma
    layers, stretches = (C_x, C_1, C_2), (C_8, C_9)
    size = sizes.printed_recurrent((t, d, d_a, d_f), gamma, layers, stretches)
    return against(size, order, inside, t * d + d + d_a + d_f)


@printed(
    "Lemma 1, its sample size",
    controls=[
        Control("without the mask's parameters", mask=0.0),
        Control("$s_0$ in place of $s_0^2$", power=0.5),
    ],
)
def lemma_1_printed(p, d, s0, C_x, C_1, C_2, gamma, *, mask=1.0, power=1.0):
    r"""$$n = \frac{s_0^2 C_1^2 C_x^2 \eta^2}{\gamma^2} \log \frac{s_0 \eta}{\gamma}\,
    (pd + p + d), \quad \eta = C_1 C_2 C_x$$
    """
    eta = C_1 * C_2 * C_x
    order = s0**power * C_1 * C_x * eta / gamma
    size = sizes.printed_mask(p, d, s0, gamma, (C_x, C_1, C_2))
    return against(size, order, s0 * eta / gamma, p * d + mask * p + d)


@identity(
    "Lemma 1.1, the error that a gradient leaves",
    sample=settings,
    status=Status.CORRECTED,
    controls=[Control("the gradient, not squared", power=1), Control("without $C_2$", layer=0)],
)
def lemma_1_1_error(gamma, C_2, C_x, C_1, *, power=2, layer=2):
    r"""$$\text{error}(g) = \frac{g^2}{\lambda} +
    C_2^2\, \lambda_{\max}(\mathrm{Var}(\Phi^*|\Phi))$$

    The library's formula at any numbers; that it bounds the error is lemma-1-1.
    """
    return sizes.gradient_error(gamma, C_2, C_x, C_1), gamma**power / C_x + C_2**layer * C_1
