r"""Lemma 17: the gradient of the risk in closed form.

The claim covers all losses of the library.
"""

import jax
import jax.numpy as jnp

from attlas.claims.claim import Control, Sides
from attlas.claims.statement import identity
from attlas.data.token_selection import TokenSelection, token_scores
from attlas.losses.margin_loss import margin_loss
from julistiono2024optimizing.instances import ROUNDINGS, condition, on_trajectory
from julistiono2024optimizing.library.token_selection.gradient import selection_gradient
from julistiono2024optimizing.library.token_selection.single_head import (
    SingleHead,
    attention_weights,
)


def _formula(data, W, loss, rank_one):
    """The formula, and the same with every term replaced by its magnitude."""
    X, z, scores = data.X, data.z, token_scores(data)
    s = jax.vmap(attention_weights, in_axes=(None, 0, 0))(W, X, z)
    mean = jnp.sum(s * scores, axis=1, keepdims=True)
    slope = margin_loss(loss).derivative(mean[:, 0])
    weights = s * (scores - mean if rank_one else scores)
    sizes = s * (jnp.abs(scores) + jnp.sum(s * jnp.abs(scores), axis=1, keepdims=True))
    total = jnp.einsum("n,nt,ntd,ne->de", slope, weights, X, z)
    size = jnp.einsum("n,nt,ntd,ne->de", jnp.abs(slope), sizes, jnp.abs(X), jnp.abs(z))
    return total / len(z), size / len(z)


def _by_autodiff(data, W, loss):
    def risk(W):
        outputs = jax.vmap(SingleHead(data.v, W))(data.X, data.z)
        return jnp.mean(margin_loss(loss).value(data.y * outputs))

    return jax.grad(risk)(W)


@identity(
    "Lemma 17",
    sample=on_trajectory,
    controls=[
        Control("softmax derivative without $s s^\\top$", rank_one=False),
        Control("$X W^\\top z$ in place of $X W z$", transposed=True),
    ],
    roundings=ROUNDINGS,
)
def lemma_17(X, y, z, v, W, *, rank_one=True, transposed=False):
    r"""$$\nabla \mathcal{L}(W) = \frac1n \sum_i \ell'(\gamma_i^\top s_i)\,
    X_i^\top (\mathrm{diag}(s_i) - s_i s_i^\top) \gamma_i z_i^\top$$

    Logistic, exponential and correlation loss; the reconstructed formula and the library's
    cancellation-free form are both compared with automatic differentiation.
    """
    data, left, right, sizes = TokenSelection(X, y, z, v), [], [], []
    for loss in ("logistic", "exponential", "correlation"):
        formula, size = _formula(data, W, loss, rank_one)
        left += [formula, selection_gradient(W, data, loss)]
        right += [_by_autodiff(data, W.T if transposed else W, loss)] * 2
        sizes += [size] * 2
    # Roundings of the logits reach the softmax multiplied by their size, those of the margin
    # reach the slope multiplied by the margin.
    factor = condition(X, z, W) * (1 + jnp.max(jnp.abs(token_scores(data))))
    return Sides(jnp.stack(left), jnp.stack(right), magnitude=jnp.stack(sizes) * factor)
