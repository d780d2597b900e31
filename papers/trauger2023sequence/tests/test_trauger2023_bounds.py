"""The reduced weights are the trained function, and their bounds those of the comparison."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.comparison.bound_table import Inputs
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.comparison.unnormalised import unnormalised
from attlas.bounds.comparison.weight_norms import weight_norms
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.core.errors import UserError
from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from trauger2023sequence.library.models.majority_attention import make_majority_attention
from trauger2023sequence.library.sparse_majority.trauger2023_bounds import (
    ROWS,
    MajorityNorms,
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


def test_reduced_weights_are_the_same_function():
    model, data = instance(0.7)
    model = jax.tree.map(lambda a: 2 * a, model)
    raised = model.output[0], model.output[1] + 4  # otherwise the ReLU is 0 nearly everywhere
    model = eqx.tree_at(lambda m: m.output, model, raised)
    X = np.asarray(jax.vmap(data.embedding)(data.bits))
    reduced = reduce_majority(model, X[0, -1])
    inside = reduced.b[None]
    for M, V in zip(reduced.M, reduced.V, strict=True):
        weights = np.asarray(jax.nn.softmax(X @ (M @ X[0, -1]), axis=1))
        inside = inside + np.einsum("nt,ntd->nd", weights, X) @ V
    assert np.any(inside > 0, axis=0).sum() >= 2
    logits = np.maximum(inside, 0) @ reduced.r + reduced.c
    expected = np.asarray(jax.vmap(model)(jnp.asarray(X)))
    assert np.ptp(expected, axis=0).min() > 0.01
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


def two_heads(query_key):
    """Readouts of norm 1 and 3 with constants 0.5 and 1.5; tokens of norms 2, 3 and 0.5."""
    parts = (query_key, [2.0, 3.0], 0.25, [1.0, 3.0], [0.5, 1.5], [2.0, 3.0, 0.5])
    return MajorityNorms(*(jnp.asarray(part) for part in parts))


def stacked(*norms):
    return jax.tree.map(lambda *parts: jnp.stack(parts), *norms)


def test_bounds_by_hand():
    """The trivial one of every row, and the printed bracket where its logarithm is whole."""
    m, C = 1e4, 4 * np.log(33)  # the entropy coefficient of a norm of 1, at d = 4 and B_x = 2
    # 2 B_x^2 sqrt(C / m) is B_x / e and B_x / e^2 at these two
    small = np.array([np.exp(-1.0), np.exp(-2.0)]) * 100 / 4 / np.sqrt(C)
    printed = two_heads(np.ones((2, 5)) * small[:, None])
    norms = stacked(two_heads(np.full((2, 5), 1e9)), printed)
    bounds, rho = majority_bounds(norms, jnp.array([m, 4 * m]), T, 4, 2 / np.exp(2))
    # |V_1| b + |V_2| b = 2.5; the loss averages 1 * 2.75 + 0.5 and 3 * 2.75 + 1.5
    np.testing.assert_allclose(rho, [6.5, 6.5], rtol=1e-14)
    trivial = np.array([2 * 2.5 + 2 * (0.5 + 0.5) / root for root in (100, 200)])
    tail = 3 * 6.5 / np.array([100, 200])
    sharp = [k for k, (_, version) in enumerate(ROWS) if version == "sharp"]
    found = np.asarray(bounds[0])[sharp]
    np.testing.assert_allclose(found, np.tile(2 * trivial + tail, (len(sharp), 1)), rtol=1e-13)
    flat = 2 * np.sqrt(np.log(8) / m)
    heads = 2 * (2 * 2 / np.e + flat) + 3 * (3 * 2 / np.e**2 + flat)
    complexity = 2 * (heads + 0.5 / 100) + 1 / 100
    printed = bounds[1, ROWS.index(("1,1", "printed")), 0]
    np.testing.assert_allclose(printed, 2 * complexity + tail[0], rtol=1e-13)


def test_sharp_rows_are_theorem_4_1_of_their_covers():
    """Each cover with the norm, the length and the points that are its own, a run at a time."""
    norms = two_heads(np.arange(1, 11).reshape(2, 5) * 1e-3)
    m, S, d = 1e6, T + 1, 5
    bounds, _ = majority_bounds(stacked(norms), jnp.array([m]), T, d, DELTA)
    two, one_norm, largest = 2.0, 3.0, 0.5
    for k, (name, version) in enumerate(ROWS):
        heads = []
        for value, (total, column, row_sum, at_cls, spectral) in zip(
            [2.0, 3.0], np.asarray(norms.query_key), strict=True
        ):
            if name == "parameters":
                heads.append(parameter_counting_single(value, spectral, two, d * d, d, m))
                continue
            C = {
                "1,1": lambda n=total: trauger2023_cover("1,1", n, two, d, d),
                "1,inf": lambda n=column: trauger2023_cover("1,inf", n, one_norm, d, d),
                "2,1": lambda n=row_sum: trauger2023_cover("2,1", n, one_norm, d, d, m),
                "log T": lambda n=row_sum: edelman2022_cover(n, two, m * S, d, m),
                "log m": lambda n=at_cls: edelman2022_cover(n, two, m, d, m),
            }[name]()
            heads.append(
                trauger2023_single(value, C, two, d, m, constants=version, largest_entry=largest)
            )
        network = float(sum(heads))
        network = network if version == "printed" else min(network, 5 * largest)
        # readouts of norms 1 and 3, constants 0.5 and 1.5, max|b| = 0.25
        complexity = 2 * (network + 2 * 0.25 / 1e3) + 1 / 1e3
        tail = 3 * 6.5 * np.sqrt(np.log(2 / DELTA) / (2 * m))
        np.testing.assert_allclose(bounds[0, k, 0], 2 * complexity + tail, rtol=1e-12)
        assert network < 5 * largest, name


def test_norms_are_those_of_the_reduced_weights_and_of_all_tokens():
    model, data = instance(0.6)
    embedding = jax.tree.map(np.asarray, data.embedding)
    own = np.stack([embedding.zero, embedding.one])
    tokens = [place + content for place in embedding.positions[:-1] for content in own]
    cls = embedding.cls + embedding.positions[-1]
    tokens.append(cls)
    reduced = reduce_majority(model, cls)
    norms = majority_norms(model, data.embedding)
    assert len(tokens) == 2 * T + 1
    for head, (M, V) in enumerate(zip(reduced.M, reduced.V, strict=True)):
        columns, rows = (np.sqrt((M**2).sum(axis)).sum() for axis in (0, 1))
        largest = [np.abs(M).sum(axis).max() for axis in (0, 1)]
        found = norms.query_key[head]
        assert found[0] == pytest.approx(np.abs(M).sum(), rel=1e-13)
        assert found[1] == pytest.approx(min(largest), rel=1e-13)
        assert found[2] == pytest.approx(min(columns, rows), rel=1e-13)
        assert found[3] == pytest.approx(rows, rel=1e-13)
        assert found[4] == pytest.approx(np.linalg.svd(M)[1][0], rel=1e-13)
        assert norms.value[head] == pytest.approx(np.abs(V).sum(axis=0).max(), rel=1e-13)
    assert norms.bias == pytest.approx(np.abs(reduced.b).max(), rel=1e-14)
    np.testing.assert_allclose(norms.readout, np.abs(reduced.r).sum(axis=0), rtol=1e-14)
    np.testing.assert_allclose(norms.constant, np.abs(reduced.c), rtol=1e-14)
    expected = [max(np.linalg.norm(token, order) for token in tokens) for order in (2, 1, np.inf)]
    np.testing.assert_allclose(norms.tokens, expected, rtol=1e-14)


@pytest.mark.parametrize("bit", [0, 1])
def test_every_token_that_can_occur_is_measured(bit):
    """One token after the other is the largest: each place with either bit, and [CLS]."""
    model, data = instance(0.6)
    plain = jax.tree.map(np.asarray, data.embedding)
    for place in range(T + 1):
        positions = 0.1 * plain.positions
        content = plain.cls if place == T else (plain.zero, plain.one)[bit]
        positions[place] = 9 * content
        embedding = eqx.tree_at(lambda e: e.positions, data.embedding, jnp.asarray(positions))
        token = 10 * content
        sizes = np.sqrt((token**2).sum()), np.abs(token).sum(), np.abs(token).max()
        np.testing.assert_allclose(majority_norms(model, embedding).tokens, sizes, rtol=1e-14)


def test_a_row_reads_the_norm_of_its_cover():
    readers = {"1,1": 0, "1,inf": 1, "2,1": 2, "log T": 2, "log m": 3, "parameters": 4}
    flat = np.full((2, 5), 0.01)
    changed = [flat] + [flat * np.where(np.arange(5) == k, 2, 1) for k in range(5)]
    bounds, _ = majority_bounds(stacked(*map(two_heads, changed)), jnp.array([1e6]), T, 4, DELTA)
    for k, (name, version) in enumerate(ROWS):
        raised = [float(bounds[1 + norm, k, 0]) > float(bounds[0, k, 0]) for norm in range(5)]
        assert raised == [norm == readers[name] for norm in range(5)], (name, version)


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
