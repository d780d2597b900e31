r"""Lemma 17: the gradient of the risk in closed form.

gamma_i = y_i X_i v, h_i = X_i W z_i, s_i = softmax(h_i); n samples, all losses of the library.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.julistiono2024optimizing.instances import (
    ROUNDINGS,
    condition,
    on_trajectory,
    selection,
)
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.data.token_selection import token_scores
from attlas.losses.margin_loss import margin_loss
from attlas.models.attention.single_head import SingleHead, attention_weights
from attlas.tasks.token_selection.gradient import selection_gradient

_PAPER = "julistiono2024optimizing"
_LOSSES = ("logistic", "exponential", "correlation")


def _formula(instance: Instance, loss: str, rank_one: bool = True) -> tuple[Array, Array]:
    """The formula, and the same with every term replaced by its magnitude."""
    X, z, scores = instance["X"], instance["z"], token_scores(selection(instance))
    s = jax.vmap(attention_weights, in_axes=(None, 0, 0))(instance["W"], X, z)
    mean = jnp.sum(s * scores, axis=1, keepdims=True)
    slope = margin_loss(loss).derivative(mean[:, 0])
    weights = s * (scores - mean if rank_one else scores)
    sizes = s * (jnp.abs(scores) + jnp.sum(s * jnp.abs(scores), axis=1, keepdims=True))
    total = jnp.einsum("n,nt,ntd,ne->de", slope, weights, X, z)
    size = jnp.einsum("n,nt,ntd,ne->de", jnp.abs(slope), sizes, jnp.abs(X), jnp.abs(z))
    return total / len(z), size / len(z)


def _by_autodiff(instance: Instance, loss: str) -> Array:
    def risk(W: Array) -> Array:
        outputs = jax.vmap(SingleHead(instance["v"], W))(instance["X"], instance["z"])
        return jnp.mean(margin_loss(loss).value(instance["y"] * outputs))

    return jax.grad(risk)(instance["W"])


def _sides(instance: Instance, rank_one: bool = True) -> Sides:
    """Formula and the library's rearranged gradient, both against automatic differentiation."""
    left, right, scale = [], [], []
    for loss in _LOSSES:
        formula, size = _formula(instance, loss, rank_one)
        exact = _by_autodiff(instance, loss)
        ours = selection_gradient(instance["W"], selection(instance), loss)
        left += [formula, ours]
        right += [exact, exact]
        scale += [size, size]
    # Roundings of the logits reach the softmax multiplied by their size, those of the margin
    # reach the slope multiplied by the margin.
    margin = 1 + jnp.max(jnp.abs(token_scores(selection(instance))))
    factor = condition(instance, instance["W"]) * margin
    return Sides(jnp.stack(left), jnp.stack(right), scale=jnp.stack(scale) * factor)


LEMMA_17 = Claim(
    name=f"{_PAPER}/lemma-17",
    paper=_PAPER,
    locator="Lemma 17",
    statement=(
        r"\nabla \mathcal{L}(W) = \frac1n \sum_i \ell'(\gamma_i^\top s_i)\,"
        r"X_i^\top (\mathrm{diag}(s_i) - s_i s_i^\top) \gamma_i z_i^\top"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=on_trajectory,
    sides=_sides,
    control=(Control("softmax derivative without s s'", sides=partial(_sides, rank_one=False)),),
    terms=ROUNDINGS,
    note=(
        "Logistic, exponential and correlation loss; the printed formula and the library's "
        "cancellation-free form are both compared with automatic differentiation."
    ),
)
