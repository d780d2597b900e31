"""The constants of a start, against the models they are about."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.models.attention.multi_head import MultiHead, make_multi_head
from attlas.optim.one_step import one_step_initialisation
from attlas.solvers.kernel_svm import kernel_svm
from attlas.training.risk_gradient import model_outputs
from deora2023optimization.library.measures.repeated_start import (
    sign_excess,
    start_constants,
    uniform_outputs,
)
from deora2023optimization.library.repeated_heads import repeat_signed_heads


@pytest.mark.thorough
def test_outputs_of_copies_are_those_of_the_repeated_model():
    keys = [jax.random.fold_in(jax.random.key(0), k) for k in range(4)]
    mixture = make_tokenized_mixture(keys[0], d=6, M=2, S=2.0, zeta=0.5, Z=2.0, Z_mu=0.3, Z_nu=0.3)
    first, train = (sample_mixture(key, mixture, 10, 4) for key in keys[1:3])
    head = one_step_initialisation(keys[0], first.X, first.y, 1)
    models = repeat_signed_heads(keys[3], head, [1, 4, 9])
    alone = uniform_outputs(head, train.X)
    largest = []
    for k, excess in enumerate(sign_excess(np.asarray(models.copies))):
        model = jax.tree.map(lambda a, k=k: a[k], models)
        outputs = np.abs(model_outputs(model, train.X))
        # Sums of 24 products of rounding eps each.
        np.testing.assert_allclose(outputs, alone * excess, rtol=1e-13, atol=1e-14)
        largest.append(outputs.max())
    stacked = [np.asarray(a)[None] for a in (train.X, train.y, models.copies)]
    found = start_constants([head], *stacked)
    np.testing.assert_allclose(found.B_Phi, max(1.0, *largest), rtol=1e-13)
    margin = kernel_svm(ntk_gram(head, train.X), train.y)
    np.testing.assert_allclose(found.margin, np.sqrt(2) * float(margin.value), rtol=1e-6)
    assert max(1.0, np.linalg.norm(head.U)) == found.B_2


@pytest.mark.parametrize("copies", [[[0, 0]], [[-1, 2]]])
def test_no_head_has_no_sign_excess(copies):
    with pytest.raises(UserError, match=r"^copies holds a negative number or no head"):
        sign_excess(np.array(copies))


def test_problems_without_a_head_are_refused():
    head = make_multi_head(1, 3, 4)
    with pytest.raises(UserError, match=r"^X has shape .* with e = 1, as heads has$"):
        start_constants([head], np.ones((2, 2, 3, 4)), np.ones((2, 2)), np.ones((2, 1, 2), int))


def test_constants_of_one_token_by_hand():
    # Samples 3 and -3 of one token: outputs 3 u k / k^(1/2) for k copies of one sign, and the
    # gradient in U is the token, so that the margin of a direction of norm 2^(1/2) is 3 2^(1/2).
    heads = [MultiHead(jnp.full((1, 1, 1), u), jnp.zeros((1, 1, 1))) for u in (2.0, 0.1)]
    X, y = (
        np.tile(np.array([3.0, -3.0])[None, :, None, None], (2, 1, 1, 1)),
        np.array([[1.0, -1.0]] * 2),
    )
    found = start_constants(heads, X, y, np.array([[[1, 0], [0, 4]]] * 2))
    np.testing.assert_allclose(found.B_2, [2.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(found.B_Phi, [12.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(found.margin, np.sqrt(18), rtol=1e-6)


def test_uniform_attention_weighs_the_mean_token():
    rng = np.random.default_rng(0)
    U, X = rng.normal(size=(1, 3, 4)), rng.normal(size=(5, 3, 4))
    head = MultiHead(jnp.asarray(U), jnp.zeros((1, 4, 4)))
    expected = [abs(sum(u @ x.mean(axis=0) for u in U[0])) for x in X]
    np.testing.assert_allclose(uniform_outputs(head, X), expected, rtol=1e-12)
