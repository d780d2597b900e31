r"""The printed sample sizes of Theorem 1 and Corollary 1 against what they must satisfy."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.statement import erratum, identity
from liu2021analyzing.library.bounds.liu2021_sample_size import liu2021_attention, liu2021_baseline
from liu2021analyzing.library.bounds.liu2021_union_bound import Conditions
from liu2021analyzing.library.models.two_layer import TwoLayer

_P, _D, _POINTS = 5, 2, 24


def fixed_supports(rng, count):
    """Inputs whose attention weights vanish outside a fixed support, and a network."""
    support_size = rng.integers(1, _P + 1, count)
    x = rng.uniform(-2, 2, (count, _POINTS, _P))
    f = rng.uniform(0.2, 1, x.shape) * (np.arange(_P) < support_size[:, None])[:, None, :]
    slopes = np.linalg.qr(rng.normal(size=(count, _P, _D)))[0]
    # Units of opposite sign on the first input: with one input left they must differ, too.
    slopes[:, 0, :] = np.array([1.0, -1.0]) * rng.uniform(0.5, 1.5, (count, _D))
    z = x * f / np.linalg.norm(f, axis=2, keepdims=True)
    w = rng.uniform(1, 2, (count, _D))
    return {"z": z, "W": 2 * slopes, "w": w, "s_0": support_size.astype(float)}


@identity(
    "Theorem 1, the factor pd + d",
    sample=fixed_supports,
    status=Status.NEW,
    controls=[Control("$pd + d$ for every support", known=False)],
)
def theorem_1_parameters(z, W, w, s_0, *, known=True):
    r"""$$f_j(x) = 0 \text{ for } j > s_0,\ \phi\ \text{softplus},\ m \ge s_0 d + d
    \quad \Rightarrow \quad
    \mathrm{rank}\, \frac{\partial (h(x_1), \dots, h(x_m))}{\partial w} = s_0 d + d
    \quad \text{for almost all}\ w$$

    With ReLU $d$ less, as the scale of a unit is free. What erratum 1 leaves: if the support of
    the attention is known and fixed, $s_0 d + d$ of the $pd + d$ parameters matter, and the error
    at large $n$ is $\sigma^2 (s_0 d + d)/n$ (theorem-1-constant). That advantage is $p/s_0$, not
    $p^2/s_0^2$; it is none where the support moves with $x$.
    """
    flat, unravel = ravel_pytree((W, w))

    def outputs(theta):
        return jax.vmap(TwoLayer(*unravel(theta), sharpness=2.0))(z)

    rank = jnp.linalg.matrix_rank(jax.jacobian(outputs)(flat)).astype(flat.dtype)
    return rank, (s_0 if known else _P) * _D + _D


_SETTING = (130, 10, 0.1)


def at_the_ends():
    """Theorem 1 at s0 = 0, tau = 1 and Corollary 1, at p = 130, d = 10, eta = 4, gamma = 0.1."""
    norms = (1.0, 2.0, 1.0)
    return {
        "theorem": liu2021_attention(*_SETTING, norms, s0=0, tau=1.0, constants="printed"),
        "corollary": liu2021_baseline(*_SETTING, norms, constants="printed"),
        "repaired": 130**2 * 40**2 * np.log(np.sqrt(130) * 40) * 1310,
    }


@erratum(
    "Corollary 1 as Theorem 1 at s0 = 0, tau = 1",
    of=Kind.IDENTITY,
    witness=at_the_ends,
    reason=r"the theorem gives $\sqrt{p}$ in the logarithm",
    corrected=Control(r"$\log(\sqrt p\, \eta / \gamma)$", root=True),
)
def corollary_1_logarithm(theorem, corollary, repaired, *, root=False):
    r"""$$s_0 = 0,\ \tau = 1: \quad (\sqrt{s_0} + \tau \sqrt{p})^4 \frac{\eta^2}{\gamma^2}
    \log \frac{(\sqrt{s_0} + \tau \sqrt{p}) \eta}{\gamma} (pd + d)
    = p^2 \frac{\eta^2}{\gamma^2} \log \frac{p \eta}{\gamma} (pd + d)$$

    $p = 130$, $d = 10$, $\eta = 4$, $\gamma = .1$; below the resolution of the paper's constants.
    """
    return theorem, repaired if root else corollary


def rescaled(rng, count):
    """Both sizes, before and after inputs are stretched and the first layer is shrunk."""
    rows = []
    for c in 10 ** rng.uniform(0.1, 1, count):
        norms, conditions = [(k, 1 / k, 1.0) for k in (1.0, float(c))], Conditions(smallest=0.1)
        printed = [liu2021_attention(*_SETTING, of, s0=11, constants="printed") for of in norms]
        rows.append((printed, [liu2021_attention(*_SETTING, of, conditions) for of in norms]))
    printed, corrected = (np.array(part) for part in zip(*rows, strict=True))
    return {"printed": printed, "corrected": corrected}


@identity(
    r"Theorem 1, $\eta = C_1^2 C_2$",
    sample=rescaled,
    status=Status.CORRECTED,
    controls=[Control(r"as printed, without $C_x^2$ in $\eta$", as_printed=True)],
)
def theorem_1_eta(printed, corrected, *, as_printed=False):
    r"""$$x \to cx,\ w^{(1)} \to w^{(1)}/c: \quad
    n(c C_x, C_1 / c, C_2) = n(C_x, C_1, C_2), \quad \eta = C_1^2 C_2 C_x^2$$

    Stretching the inputs and shrinking the first layer changes no prediction. As printed, with
    $\eta = C_1^2 C_2$ and a hidden constant that knows nothing of $C_x$, the size falls, by 26.5
    for $c = 2$. The proof has $C_x^4$ in $\xi^2$.
    """
    before, after = printed if as_printed else corrected
    return before, after


def inputs(rng, count):
    """Inputs, and networks that read them as section 2's baseline does, or over sqrt(p)."""
    return {"x": rng.normal(size=(count, _POINTS, _P)), "W": rng.normal(size=(count, _P, _D)),
            "w": rng.normal(size=(count, _D))}  # fmt: skip


@identity(
    "Section 2's baseline and Corollary 1's",
    sample=inputs,
    status=Status.NEW,
    controls=[Control("at equal $C_1$", scale=1.0)],
)
def corollary_1_baseline(x, W, w, *, scale=_P**0.5):
    r"""$$w^{(2)\top} \phi(\langle w^{(1)}, x \rangle) = w^{(2)\top} \phi(\langle \sqrt{p}\,
    w^{(1)}, x \odot f \rangle),\ f = \tfrac{1}{\sqrt{p}}: \quad
    n(C_1, \|f\| = \sqrt{p}) = n(\sqrt{p}\, C_1, \|f\| = 1)$$

    One model with two first layers. At equal $C_1$ section 2's needs $p^2$ times the samples, up
    to the logarithm, as Corollary 1 prints; at equal outputs as many.
    """
    network, scaled = TwoLayer(W, w), TwoLayer(scale * W, w)
    norms, conditions = (1.0, 1.0, 1.0), Conditions(smallest=0.1)
    plain = liu2021_attention(_P, _D, 0.1, norms, conditions, weight_norm=_P**0.5)
    equal = liu2021_attention(_P, _D, 0.1, (1.0, scale, 1.0), conditions)
    left, right = jax.vmap(network)(x), jax.vmap(scaled)(x / _P**0.5)
    terms = jnp.abs(x) @ jnp.abs(W) @ jnp.abs(w)  # outputs cancel: their terms have this size
    # Outputs, and the two sizes in units of one of them.
    sides = jnp.append(left, 1.0), jnp.append(right, equal / plain)
    return Sides(*sides, magnitude=jnp.append(terms, 1.0))
