"""Dense maps and norms of a file."""

import jax.numpy as jnp
import numpy as np

from attlas.transformers.stored_parts import read_dense, read_norm
from attlas.transformers.stored_tensors import StoredTensors

RANDOM = np.random.default_rng(0)
MATRIX, BIAS = RANDOM.normal(size=(3, 2)), RANDOM.normal(size=3)
ROWS = RANDOM.normal(size=(4, 2))


def test_a_map_is_read_with_its_bias_and_without():
    shapes = {"up.weight": (3, 2)}
    both = StoredTensors({"up.weight": MATRIX, "up.bias": BIAS}, shapes, optional={"up.bias": (3,)})
    found = read_dense(both, "up")(jnp.asarray(ROWS))
    np.testing.assert_allclose(found, ROWS @ MATRIX.T + BIAS, atol=1e-6)
    plain = StoredTensors({"up.weight": MATRIX}, shapes)
    np.testing.assert_allclose(
        read_dense(plain, "up")(jnp.asarray(ROWS)), ROWS @ MATRIX.T, atol=1e-6
    )


def test_rows_are_inputs_where_the_file_stores_them_so():
    stored = StoredTensors({"up.weight": MATRIX.T}, {"up.weight": (2, 3)})
    found = read_dense(stored, "up", outputs_first=False)(jnp.asarray(ROWS))
    np.testing.assert_allclose(found, ROWS @ MATRIX.T, atol=1e-6)


def test_a_norm_has_gain_bias_and_mean_taken_off():
    stored = StoredTensors(
        {"ln.weight": np.array([2.0, 3.0]), "ln.bias": np.array([1.0, -1.0])},
        {"ln.weight": (2,), "ln.bias": (2,)},
    )
    # (1, 3) has mean 2 and variance 1.
    found = read_norm(stored, "ln", 0.0)(jnp.array([[1.0, 3.0]]))
    np.testing.assert_allclose(found, [[-1.0, 2.0]], atol=1e-6)
