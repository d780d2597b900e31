r"""Theorem 4.2 with Dudley's chain, against measured complexities of deep networks.

Networks of 1, 2 and 3 layers and d = 1, 2 and 4 whose matrices are single entries of their balls
(l_1 and spectral norm alike) and whose readouts are single entries; two sequences, each n times.
"""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_deep import trauger2023_deep, trauger2023_parts
from attlas.claims.claim import Control, Status
from attlas.claims.statement import inequality
from trauger2023sequence.layer_instances import in_ball
from trauger2023sequence.single_layer_instances import ROUNDINGS, mean_supremum

_CASES = ((1, 1), (2, 2), (3, 4))
"""Layers and dimensions."""
_NETWORKS = 16


def _entries(rng, norm, d):
    """Matrices with one entry of the norm; the first is e_1 e_1'."""
    place = rng.integers(d * d, size=_NETWORKS) * (np.arange(_NETWORKS) > 0)
    sign = rng.choice([-1.0, 1.0], (_NETWORKS, 1)) ** (np.arange(_NETWORKS) > 0)[:, None]
    return norm * (sign * np.eye(d * d)[place]).reshape(_NETWORKS, d, d)


def _values(rng, X, norms, depth):
    """Rows of the last layer at the first token, for both sequences, one per network and entry."""
    g = np.broadcast_to(X, (_NETWORKS, *X.shape))
    for _ in range(depth):
        c, v, qk = (_entries(rng, norm, X.shape[-1]) for norm in norms)
        logits = np.einsum("kbsd,kde,kbte->kbst", g, qk, g)
        law = np.exp(logits - logits.max(-1, keepdims=True))
        f = np.einsum("kbst,kbtd,kde->kbse", law / law.sum(-1, keepdims=True), g, v)
        g = in_ball(np.einsum("kbse,ked->kbsd", np.maximum(in_ball(f), 0), c))
    return np.swapaxes(g[:, :, 0], 1, 2).reshape(-1, 2)


def deep_samples(rng, count):
    """Norms c and v from .3 to 1 or 1, small W_QK, and the complexity in each case."""
    norms = rng.uniform(0.3, 1, (count, 3)) * [1, 1, 0.1]
    norms[::3] = [1.0, 1.0, 1e-3]
    B_w, m = 10 ** rng.uniform(-1, 1, count), 2.0 * (4 ** rng.uniform(5, 13, count)).astype(int)
    found = np.zeros((count, len(_CASES)))
    for i in range(count):
        for case, (depth, d) in enumerate(_CASES):
            X = in_ball(rng.normal(size=(2, int(rng.integers(1, 6)), d)))
            X[0, 0] = X[1, -1] = np.eye(d)[0]
            values = _values(rng, X, norms[i], depth)
            found[i, case] = B_w[i] * mean_supremum(values, int(m[i] / 2))
    return {"norms": norms, "B_w": B_w, "m": m, "rademacher": found}


@inequality(
    "Theorem 4.2 and Section 2.4, a measured complexity",
    sample=deep_samples,
    status=Status.CORRECTED,
    count=48,
    evaluations=288,
    roundings=ROUNDINGS,
    alike=True,
    controls=[Control("$1/m$ in place of the root", power=2.0)],
)
def theorem_4_2_complexity(norms, B_w, m, rademacher, *, power=1.0):
    r"""$$\hat R \le \mathrm{chain} \Big( \frac{(\gamma+\eta)^3}{\epsilon^2};\ B_w \Big),\quad
    C_j = B_j^2 \ln(2 d^2 + 1),\quad \|W\|_{1,1} \le B_j$$

    Corrected costs with 1 for the softmax, tokens in the unit ball, $m = 2^{11}$ to $2^{27}$. The
    complexity is a lower one, without sampling; at best a fiftieth of the bound is reached: its
    constants are tested by section-4-2-formulas and theorem-4-2-parts, not here.
    """
    right = []
    for depth, d in _CASES:
        c, v, qk = (jnp.full((depth, 1), 1.0) * norm for norm in norms)
        parts = trauger2023_parts(c, v, qk, B_w, 1.0)
        radii = {"readout": B_w} | dict(zip(("output", "value", "query_key"), norms, strict=True))
        C = [
            trauger2023_cover("1,1", radii[p.kind], p.input_norm, 1 if p.layer == 0 else d, d)
            for p in parts
        ]
        beta = jnp.stack([part.beta for part in parts])
        right.append(trauger2023_deep(jnp.stack(C), beta, m**power, B_w))
    return rademacher, jnp.stack(right)
