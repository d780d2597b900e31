r"""Remark 5.2: no concentration helps Lemma 5.1, since the worst change has a mean.

All units move by R along an input x, each in the direction of the sign of its own logit. Then
H_xx = ||x||^2 m sum_r S_r^2 grows for every draw: its derivative is 2 m Cov_S(S, sign z) >= 0, as
S and sign z both increase in the logit z.
"""

import jax.numpy as jnp
import numpy as np
from scipy.special import ndtr

from attlas.claims.claim import Control, Sides, Source, Status, assume
from attlas.claims.statement import inequality, limit
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.instances import ROUNDINGS, symmetric_networks
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk


def first_inputs(rng, count):
    """Symmetric networks of two outputs and one input of length 1, R from 0.001 to 1; signs."""
    batch = symmetric_networks(rng, count, (2, 24, 2, 1))
    batch["X"] /= np.linalg.norm(batch["X"], axis=2, keepdims=True)
    batch["signs"] = np.repeat(rng.choice([-1.0, 1.0], (count, 12)), 2, axis=1)
    return batch | {"R": 10 ** rng.uniform(-3, 0, count)}


def _unit_input(X):
    return {"X": X / jnp.sqrt(jnp.sum(X**2))}


@inequality(
    "Remark 5.2",
    Source.RECALLED,
    sample=first_inputs,
    search_over=("X", "R"),
    project=_unit_input,
    assumptions=[assume("$R > 0$", lambda R: R > 0)],
    count=48,
    roundings=4 * ROUNDINGS,
    controls=[Control("random signs", aligned=False)],
)
def remark_5_2(W, a, X, R, signs, *, aligned=True):
    r"""$$[H_{\ell,\ell}(W)]_{i,i} \le [H_{\ell,\ell}(\tilde W)]_{i,i},\quad \tilde w_r = w_r + R\,
    \mathrm{sign}(\langle w_r, x_i \rangle)\, x_i \;\Rightarrow\; E[H(\tilde W) - H(W)] \ne 0$$

    For every draw of the symmetric start, so that an average over units does not help in the worst
    case, as the remark says. Its size: remark-5-2-mean.
    """
    direction = jnp.sign(X[0] @ W) if aligned else signs
    moved = W + R * X[0][:, None] * direction[None]
    left, right = (jnp.diag(dense_softmax_ntk(SoftmaxNetwork(w, a), X)) for w in (W, moved))
    return Sides(left, right, magnitude=right * (1 + jnp.max(jnp.abs(X @ W))))


_HALVINGS = 2.0 ** np.arange(10, 16)


def mean_changes(rng, count):
    """E (p~ p~) / (E p~)^2 at infinite width, R = 2^-10 to 2^-15, by quadrature on half lines."""
    sigma = rng.uniform(0.2, 1.5, count)
    z = np.linspace(0, 14, 20001)
    density = np.exp(-(z**2) / 2)
    density *= np.where(np.arange(len(z)) % 2, 4.0, 2.0) * (z[1] / 3) / np.sqrt(2 * np.pi)
    density[[0, -1]] /= 2
    changes = []
    for s in sigma:
        for_R = []
        for R in [0.0, *1 / _HALVINGS]:
            up, down = np.exp(s * z + R), np.exp(-s * z - R)
            for_R.append(np.sum(density * (up**2 + down**2)) / np.sum(density * (up + down)) ** 2)
        changes.append((np.asarray(for_R[1:]) / for_R[0] - 1) * _HALVINGS)
    return {"slope": np.asarray(changes), "end": 4 * (ndtr(2 * sigma) - ndtr(sigma))}


@limit(
    "Remark 5.2, the mean",
    status=Status.NEW,
    scales=_HALVINGS,
    sample=mean_changes,
    count=32,
    roundings=2**8,  # pairwise sums
    controls=[Control("half of it", share=0.5)],
)
def remark_5_2_mean(slope, end, *, share=1.0):
    r"""$$\lim_{R \to 0} \lim_{m \to \infty} \frac{E[H(\tilde W) - H(W)]_{ii}}{R\, E[H(W)]_{ii}} =
    4 \big( \Phi(2 \sigma) - \Phi(\sigma) \big),\quad \|x_i\| = 1$$

    0.54 at $\sigma = 1$: the mean alone is a seventh of the worst case $4 R$ of lemma-5-1-sharp.
    Completing the square, $E\, \mathrm{sign}(z) e^{c z} / E e^{c z} = 2 \Phi(c \sigma) - 1$.
    """
    # Of the quotient of two means near 1 its difference from 1 is divided by R.
    return Sides(slope, share * end * jnp.ones_like(slope), magnitude=jnp.asarray(_HALVINGS))
