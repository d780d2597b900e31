"""NTK margins against the solver for features that are written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.checkpoint import checkpointed
from attlas.core.errors import UserError
from attlas.experiments.checkpoint_files import CheckpointFiles
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.models.attention.multi_head import make_multi_head
from attlas.solvers.kernel_svm import kernel_svm
from deora2023optimization.library.measures import ntk_margin
from deora2023optimization.library.measures.ntk_margin import ntk_margins
from deora2023optimization.library.optim.attention_starts import gaussian_heads


@pytest.mark.thorough
def test_margins_are_those_of_the_gradients_as_features():
    shape = make_multi_head(2, 3, 4)
    models = [shape, gaussian_heads(shape, 0.5, [1])]
    X = np.random.default_rng(0).normal(size=(2, 4, 3, 4))
    y = np.tile([1.0, -1.0], (2, 2))
    found = ntk_margins(models, X, y)
    for k, model in enumerate(models):
        slopes = jax.vmap(jax.grad(lambda m, x: m(x)), (None, 0))(model, jnp.asarray(X[k]))
        features = np.concatenate([np.reshape(a, (4, -1)) for a in jax.tree.leaves(slopes)], 1)
        alone = kernel_svm(features @ features.T, y[k])
        np.testing.assert_allclose(found[k], np.sqrt(2) * float(alone.unwrap()), rtol=1e-6)


def test_equal_samples_of_both_labels_have_margin_zero():
    X = np.ones((1, 2, 3, 4))
    assert ntk_margins([make_multi_head(1, 3, 4)], X, np.array([[1.0, -1.0]])).tolist() == [0.0]


def test_problems_without_a_model_are_refused():
    X, y = np.ones((2, 2, 3, 4)), np.ones((2, 2))
    with pytest.raises(UserError, match=r"^X has shape .* with e = 1, as models has$"):
        ntk_margins([make_multi_head(1, 3, 4)], X, y)


def test_kernels_that_were_kept_are_not_computed_again(tmp_path, monkeypatch):
    shape = make_multi_head(1, 3, 4)
    models = [gaussian_heads(shape, 0.5, [k]) for k in range(4)]
    X = np.random.default_rng(0).normal(size=(4, 2, 3, 4))
    y = np.tile([1.0, -1.0], (4, 1))
    whole = ntk_margins(models, X, y)
    calls = []

    def counted(model, own):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return ntk_gram(model, own)

    monkeypatch.setattr(ntk_margin, "ntk_gram", counted)
    with pytest.raises(KeyboardInterrupt), checkpointed(CheckpointFiles(tmp_path, {}), 0.0):
        ntk_margins(models, X, y)
    with checkpointed(CheckpointFiles(tmp_path, {}), 0.0):
        assert ntk_margins(models, X, y).tolist() == whole.tolist()
    assert len(calls) == 5
