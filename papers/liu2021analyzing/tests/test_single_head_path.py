import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.attention.multi_head import Decoder, MultiHead
from deora2023optimization.library.measures.margins import decoder_margin, margins
from liu2021analyzing.library.audit.single_head_path import single_head_path


def drawn(seed=0):
    rng = np.random.default_rng(seed)
    heads = [
        MultiHead(
            jnp.asarray(rng.normal(size=(1, 3))),
            jnp.asarray(rng.normal(size=(1, 3, 3))),
            Decoder.LAST,
        )
        for _ in range(2)
    ]
    path = jax.tree.map(lambda *a: jnp.stack(a), *heads)
    X, y = jnp.asarray(rng.normal(size=(6, 4, 3))), jnp.asarray(rng.choice([-1.0, 1.0], 6))
    return path, X, y


def test_agrees_with_the_model_itself():
    path, X, y = drawn()
    found = jax.jit(single_head_path)(path, X, y, X[:5], y[:5])
    for k in range(2):
        model = jax.tree.map(lambda a, k=k: a[k], path)
        m = np.asarray(margins(model, X, y))
        np.testing.assert_allclose(found.outputs[k] * y[:5], m[:5], rtol=1e-12)
        assert found.decoder[k] == pytest.approx(float(decoder_margin(model, X, y)), rel=1e-12)
        assert found.risk[k, 0] == pytest.approx(np.log1p(np.exp(-m)).mean(), rel=1e-12)
        assert found.ramp[k, 0] == pytest.approx(np.clip(1 - m, 0, 1).mean(), rel=1e-12)
        assert found.error[k, 0] == pytest.approx((m <= 0).mean())
        rows = jax.vmap(model.attention)(X)[:5, 0, -1]
        np.testing.assert_allclose(found.attention[k], rows, rtol=1e-12)


def test_tokens_of_the_last_record_have_a_positive_margin_there():
    path, X, y = drawn(1)
    found = jax.jit(single_head_path)(path, X, y, X[:5], y[:5])
    assert found.selection[-1] > 0
    W, z = np.asarray(path.W[-1, 0]).T, np.asarray(X[:, -1])
    logits = np.einsum("ntd,de,ne->nt", X, W, z)
    ordered = np.sort(logits, axis=1)
    least = (ordered[:, -1] - ordered[:, -2]).min() / np.linalg.norm(W)
    assert found.selection[-1] == pytest.approx(least, rel=1e-10)


def test_other_models_are_refused():
    _, X, y = drawn()
    many = MultiHead(jnp.zeros((2, 3)), jnp.zeros((2, 3, 3)), Decoder.LAST)
    many = jax.tree.map(lambda a: a[None], many)
    with pytest.raises(UserError, match="give one head that reads the last token"):
        single_head_path(many, X, y, X, y)
