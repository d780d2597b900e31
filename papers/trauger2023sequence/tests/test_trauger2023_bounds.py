"""The reduced weights are the trained function, and their bounds those of the comparison."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.comparison.bound_table import Inputs
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.comparison.unnormalised import unnormalised
from attlas.bounds.comparison.weight_norms import weight_norms
from attlas.core.errors import UserError
from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from trauger2023sequence.library.models.majority_attention import make_majority_attention
from trauger2023sequence.library.sparse_majority.trauger2023_bounds import (
    ROWS,
    majority_bounds,
    majority_norms,
    reduce_majority,
)

T, D, DELTA = 7, 4, 0.05
DESIGN = MajorityDesign(train=6, validation=2, indices=3, dimension=D)


def instance(biases: float):
    """A model with random biases of this size, and its data, in float64."""
    rng = np.random.default_rng(3)
    model = make_majority_attention(jax.random.key(0), D, 2, 3, "float64")
    model = jax.tree.map(
        lambda a: a + (biases if not np.any(a) else 0.0) * rng.standard_normal(a.shape), model
    )
    return model, make_sparse_majority(jax.random.key(1), T, DESIGN, "float64")


@pytest.mark.thorough
def test_reduced_weights_are_the_same_function():
    model, data = instance(0.7)
    X = np.asarray(jax.vmap(data.embedding)(data.bits))
    reduced = reduce_majority(model, X[0, -1])
    inside = reduced.b[None]
    for M, V in zip(reduced.M, reduced.V, strict=True):
        weights = np.asarray(jax.nn.softmax(X @ (M @ X[0, -1]), axis=1))
        inside = inside + np.einsum("nt,ntd->nd", weights, X) @ V
    logits = np.maximum(inside, 0) @ reduced.r + reduced.c
    expected = np.asarray(jax.vmap(model)(jnp.asarray(X)))
    assert np.abs(logits - expected).max() < 1e3 * np.finfo(float).eps * np.abs(expected).max()


def rows_of_comparison(weights: TransformerWeights, tokens: Inputs, m: int) -> dict[str, float]:
    found = unnormalised([(weight_norms(weights), None)], tokens, m, 1.0)
    values = found.values(np.full(len(found.bounds), float(m)))[0].tolist()
    return dict(zip([bound.label for bound in found.bounds], values, strict=True))


@pytest.mark.thorough
def test_bounds_are_those_of_the_comparison_without_biases():
    model, data = instance(0.0)
    own = data.embedding
    both = np.stack([np.asarray(own(jnp.full(T, bit, jnp.int8))) for bit in (0, 1)])
    reduced, m = reduce_majority(model, both[0, -1]), 5000
    norms = jax.tree.map(lambda a: jnp.asarray(a)[None], majority_norms(model, own))
    bounds, spread = majority_bounds(norms, jnp.array([float(m)]), T, D, DELTA)
    heads = tuple(Head(M.T, V, np.eye(D)) for M, V in zip(reduced.M, reduced.V, strict=True))
    sizes = np.sqrt((both**2).sum(-1)).max(), np.abs(both).sum(-1).max(), np.abs(both).max()
    tokens = Inputs(T + 1, *(float(size) for size in sizes))
    tables = [rows_of_comparison(TransformerWeights((heads,), r), tokens, m) for r in reduced.r.T]
    trivial = np.mean([table["trivial"] for table in tables])
    assert float(spread[0]) == pytest.approx(trivial, rel=1e-12)
    tail = 3 * trivial * np.sqrt(np.log(2 / DELTA) / (2 * m))
    for k, (name, version) in enumerate(ROWS):
        label = f"{name} {version}" if "," in name else name
        complexity = np.mean([table[label] for table in tables])
        # Both are the same sums of a few hundred roundings; the printed rows are differences.
        assert float(bounds[0, k, 0]) == pytest.approx(2 * complexity + tail, rel=1e-10), label
        assert version == "printed" or complexity <= trivial


def test_biases_raise_every_bound():
    plain, biased = (majority_norms(*instance(size)[:1], instance(size)[1].embedding)
                     for size in (0.0, 0.5))  # fmt: skip
    moved = plain._replace(bias=biased.bias, constant=biased.constant)
    stacked = jax.tree.map(lambda *parts: jnp.asarray(np.stack(parts)), plain, moved)
    bounds, spread = majority_bounds(stacked, jnp.array([1e3, 1e7]), T, D, DELTA)
    assert bool(jnp.all(bounds[1] > bounds[0]))
    assert float(spread[1]) > float(spread[0])


def test_too_few_samples_are_refused():
    model, data = instance(0.0)
    norms = jax.tree.map(lambda a: jnp.asarray(a)[None], majority_norms(model, data.embedding))
    with pytest.raises(UserError, match="requires more than 4"):
        majority_bounds(norms, jnp.array([4.0]), T, D, DELTA)
