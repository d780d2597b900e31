import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.networks.translator import make_translator
from liu2021analyzing.library.models.tempered_translator import tempered

IDS = jnp.array([1, 2, 3, 1])


@pytest.fixture(scope="module")
def maps():
    model = make_translator(jax.random.key(0), (5, 5), width=4, blocks=2, heads=2, hidden=3)
    attend = jax.jit(lambda one: one.attention(IDS, IDS > 0, IDS))
    return attend(model), attend(tempered(model, 5.0))


@pytest.mark.thorough
def test_first_rows_are_fifth_powers_and_later_ones_see_other_inputs(maps):
    before, after = (each.encoder for each in maps)
    powers = np.asarray(before) ** 5
    powers /= powers.sum(axis=3, keepdims=True)
    # Two ways to a softmax of logits of size one: some hundred roundings.
    room = 1000 * np.finfo(float).eps
    assert np.max(np.abs(after[0] - powers[0])) < room
    assert np.max(np.abs(after[1] - powers[1])) > 1e-6


def test_all_three_kinds_of_attention_change(maps):
    for before, after in zip(*maps, strict=True):
        assert np.max(np.abs(after[0] - before[0])) > 1e-3


def test_a_factor_of_zero_is_refused():
    model = make_translator(jax.random.key(0), (5, 5), width=4, blocks=1, heads=2, hidden=3)
    with pytest.raises(UserError, match="factor = 0"):
        tempered(model, 0.0)
