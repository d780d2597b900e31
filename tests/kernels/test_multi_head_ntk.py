"""The NTK Gram against the Jacobian of automatic differentiation, whole and in tiles."""

import re
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from attlas.core.errors import UserError
from attlas.kernels import multi_head_ntk as module
from attlas.kernels._blocks.gram_tiles import GramShape, GramTiles
from attlas.kernels.multi_head_ntk import ntk_features, ntk_gram
from attlas.models.attention.multi_head import Decoder, MultiHead

H, T, D, N = 3, 4, 3, 7


def draw(decoder, *, heads=H, tokens=T, d=D, n=N, dtype=np.float64):
    rng = np.random.default_rng(3)
    U = rng.normal(size=(heads, tokens, d) if decoder is Decoder.FULL else (heads, d))
    W = rng.normal(size=(heads, d, d))
    model = MultiHead(jnp.asarray(U, dtype), jnp.asarray(W, dtype), decoder)
    return model, rng.normal(size=(n, tokens, d)).astype(dtype)


def rounding(model, features, dtype=np.float64):
    """Sums of P products of features, each a sum over T tokens and d entries of size a few.

    By Cauchy and Schwarz the sum of the products' sizes is at most the largest diagonal entry.
    """
    terms = features.shape[1] + 8 * T * T * D
    return terms * np.finfo(dtype).eps * float(np.max(np.sum(features**2, axis=1)))


@pytest.mark.thorough
@pytest.mark.parametrize("decoder", list(Decoder))
def test_against_automatic_jacobian(decoder):
    model, X = draw(decoder)
    flat, unravel = ravel_pytree(model)
    jacobian = jax.jit(
        jax.vmap(jax.grad(lambda flat, X: unravel(flat)(X)), in_axes=(None, 0)),
    )(flat, jnp.asarray(X))
    features = np.asarray(jacobian)
    limit = rounding(model, features)
    assert np.max(np.abs(np.asarray(ntk_features(model, jnp.asarray(X))) - features)) <= limit
    gram = ntk_gram(model, X)
    assert np.max(np.abs(gram - features @ features.T)) <= limit
    assert np.array_equal(gram, gram.T)
    block = ntk_gram(model, X, X[:2])
    assert np.max(np.abs(block - features @ features[:2].T)) <= limit
    # The least budget that works, as the refusal names it: one sample and one head at a time.
    with pytest.raises(UserError, match="memory = 1 bytes holds no tile") as refusal:
        ntk_gram(model, X, memory=1)
    least = int(re.findall(r"\d+", str(refusal.value))[-1])
    with pytest.raises(UserError, match="holds no tile"):
        ntk_gram(model, X, memory=least - 1)
    tiled = ntk_gram(model, X, memory=least)
    assert np.max(np.abs(tiled - gram)) <= limit
    assert np.array_equal(tiled, tiled.T)
    some = ntk_gram(model, X, memory=3 * least)
    assert np.max(np.abs(some - gram)) <= limit


@pytest.mark.thorough
@pytest.mark.parametrize("decoder", list(Decoder))
def test_float32(decoder):
    model, X = draw(decoder, heads=9)
    single, X_single = draw(decoder, heads=9, dtype=np.float32)
    gram = ntk_gram(single, X_single)
    assert gram.dtype == np.float32
    # Logits of size T d times a few are rounded before the exponential: their error is relative
    # to their size, and moves the attention by as much.
    features = np.asarray(ntk_features(model, jnp.asarray(X)))
    assert np.max(np.abs(gram - ntk_gram(model, X))) <= rounding(model, features, np.float32)


@pytest.mark.parametrize("decoder", list(Decoder))
@pytest.mark.parametrize("kibibytes", [64, 1024, 2**14])
def test_memory_is_kept(decoder, kibibytes):
    model, X = draw(decoder, heads=8, tokens=4, d=8, n=150, dtype=np.float32)
    ntk_gram(model, X[:2])
    tracemalloc.start()
    gram = ntk_gram(model, X, memory=1024 * kibibytes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Python's own small objects are traced too.
    assert peak <= gram.nbytes + 1024 * kibibytes + 32 * 1024


def test_tokens_of_another_number():
    model, X = draw(Decoder.POOLED)
    longer = np.concatenate([X, X[:, :2]], axis=1)
    both = ntk_gram(model, X, longer)
    ours, theirs = (np.asarray(ntk_features(model, jnp.asarray(x))) for x in (X, longer))
    assert np.max(np.abs(both - ours @ theirs.T)) <= 4 * rounding(model, theirs)


@pytest.mark.parametrize("decoder", list(Decoder))
def test_tiles_of_rows_and_columns_join_to_the_whole(decoder):
    model, X = draw(decoder)
    with pytest.raises(UserError, match="memory = 1 bytes holds no tile") as refusal:
        ntk_gram(model, X, memory=1)
    least = int(re.findall(r"\d+", str(refusal.value))[-1])
    for columns in (None, X[:4], np.concatenate([X, 2 * X])):
        for budget in (least, 3 * least):
            tiled = ntk_gram(model, X, columns, memory=budget)
            np.testing.assert_allclose(tiled, ntk_gram(model, X, columns), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("decoder", list(Decoder))
def test_a_plan_is_made_for_the_sizes_of_the_arrays(decoder, monkeypatch):
    model, X = draw(decoder, heads=5, tokens=4, d=2)
    shapes, parts, add = [], [], module._add_heads
    tiles = GramTiles(samples=5, heads=2, chunk=3)
    monkeypatch.setattr(module, "plan_tiles", lambda shape, _: shapes.append(shape) or tiles)
    monkeypatch.setattr(module, "_add_heads", lambda *a: parts.append(a[-1].shape) or add(*a))
    other = X[:4] if decoder is Decoder.FULL else np.concatenate([X, X], axis=1)[:4]
    ntk_gram(model, X)
    ntk_gram(model, X, other)
    u, w = {"full": (8, 4), "pooled": (2, 4), "last": (2, 2)}[decoder.value]
    for shape, columns, tokens in ((shapes[0], 7, 4), (shapes[1], 4, other.shape[1])):
        queries = 1 if decoder is Decoder.LAST else tokens
        assert shape == GramShape(
            rows=7,
            columns=columns,
            symmetric=columns == 7,
            heads=5,
            widths=(u, w) if decoder is Decoder.LAST else (u + w,),
            scratch=queries * (3 * tokens + 2 * 2 + 4),
            parameters=2 * 2 + (4 * 2 if decoder is Decoder.FULL else 2),
            itemsize=8,
        )
    assert parts == [(5, 5), (5, 2), (2, 2), (5, 4), (2, 4)]


def test_features_are_refused_by_the_bytes_that_they_have(monkeypatch):
    model, X = draw(Decoder.FULL)
    sizes = []
    monkeypatch.setattr(module, "require_memory", lambda size, *_, **__: sizes.append(size))
    made = ntk_features(model, jnp.asarray(X)), ntk_gram(model, X, X[:4])
    assert sizes == [array.nbytes for array in made]


def test_bad_input_is_refused_in_one_line():
    model, X = draw(Decoder.FULL)
    with pytest.raises(
        UserError, match=r"X has shape \(7, 4, 2\): give .* with d = 3, as model.W has"
    ):
        ntk_gram(model, X[..., :2])
    with pytest.raises(UserError, match="Z has 3 tokens but the model's decoder reads 4"):
        ntk_gram(model, X, X[:, :3])
    with pytest.raises(UserError, match=re.escape("X has shape (4, 3)")):
        ntk_gram(model, X[0])
    with pytest.raises(UserError, match="X has dtype complex128"):
        ntk_gram(model, X + 0j)


def output(U, W, decoder, X):
    """H^(-1/2) sum_h <U_h, softmax(X W_h X') X> by loops over heads and tokens."""
    total = 0.0
    for u, matrix in zip(U, W, strict=True):
        for t in range(len(X)) if decoder is not Decoder.LAST else [len(X) - 1]:
            weights = np.exp(X @ matrix.T @ X[t])
            read = u[t] if decoder is Decoder.FULL else u
            total += read @ X.T @ weights / weights.sum()
    return total / len(U) ** 0.5


@pytest.mark.parametrize("decoder", list(Decoder))
def test_two_samples_by_complex_steps(decoder):
    model, X = draw(decoder, heads=2, tokens=3, d=2, n=2)
    U, W = np.asarray(model.U), np.asarray(model.W)
    flat = np.concatenate([U.ravel(), W.ravel()])
    # f(x + i h) / h has no difference in which digits could be lost: any h will do.
    moved = flat + 1e-30j * np.eye(len(flat))
    gradients = [
        [output(m[: U.size].reshape(U.shape), m[U.size :].reshape(W.shape), decoder, sample).imag
         for m in moved]
        for sample in X
    ]  # fmt: skip
    features = np.array(gradients) / 1e-30
    np.testing.assert_allclose(ntk_gram(model, X), features @ features.T, rtol=1e-12)
    np.testing.assert_allclose(ntk_gram(model, X[:1], X), features[:1] @ features.T, rtol=1e-12)
    np.testing.assert_allclose(ntk_features(model, X), features, rtol=1e-11, atol=1e-14)
