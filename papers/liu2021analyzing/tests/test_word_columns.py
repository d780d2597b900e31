"""Shapes of inputs of words: what is refused, and that compiled programs are left alone."""

import jax
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.word_columns import require_columns


@pytest.mark.parametrize("shape", [(3, 2), (2,), (2, 3, 1)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(UserError, match=r"the model reads \(2, 3\)"):
        require_columns(jax.device_put(np.ones(shape)), 2, 3)


def test_shapes_are_known_while_a_program_is_traced():
    def total(x, mask):
        require_columns(x, 2, mask=mask)
        return x.sum()

    shapes = jax.ShapeDtypeStruct((2, 3), float), jax.ShapeDtypeStruct((3,), bool)
    assert jax.eval_shape(total, *shapes).shape == ()
    with pytest.raises(UserError, match=r"mask has shape \(3,\) for 4 words"):
        jax.eval_shape(total, jax.ShapeDtypeStruct((2, 4), float), shapes[1])
