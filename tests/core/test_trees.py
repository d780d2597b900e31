"""Models and parameters at the door."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.trees import require_finite_tree, require_real_tree

TREE = {"W": jnp.ones((2, 2)), "words": np.arange(3), "mask": np.ones(2, bool), "act": jax.nn.relu}


def test_real_and_finite_trees_pass_traced_ones_and_keys_too():
    assert require_finite_tree(TREE | {"key": jax.random.key(0)}, "model") is None
    assert jax.jit(lambda w: require_finite_tree({"w": w}, "model") or w.sum())(jnp.ones(2)) == 2


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        (jnp.ones(2, complex), r"^model\['b'\] has dtype complex128: give real numbers$"),
        (np.full(2, "a"), r"^model\['b'\] has dtype <U1: give real numbers$"),
        (np.broadcast_to(np.ones(1), (10**9, 10**9)), r"^model\['b'\] of shape .* takes"),
    ],
)
def test_what_is_not_real_or_too_large_is_named_by_its_path(leaf, said):
    with pytest.raises(UserError, match=said):
        require_real_tree(TREE | {"b": leaf}, "model")


def test_numbers_that_are_not_finite_are_left_to_those_who_have_a_code_for_them():
    broken = TREE | {"b": jnp.array([1.0, jnp.inf])}
    assert require_real_tree(broken, "model") is None
    with pytest.raises(UserError, match=r"^model\['b'\] has 1 entries that are NaN or infinite"):
        require_finite_tree(broken, "model")
