"""The front door under JAX's default, float32: solvers and bounds are float64 all the same."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
import attlas as at

assert not jax.config.jax_enable_x64
rng = np.random.default_rng(0)
X, z, tokens = rng.normal(size=(4, 5, 6)), rng.normal(size=(4, 6)), np.arange(4)
for read in (np.asarray, np.float32, jnp.asarray, np.ndarray.tolist):
    found = at.attention_svm(read(X), read(z), tokens, 1.75)
    assert found.unwrap().dtype == np.float64 and found.certificate["gap"] <= 1e-8, read
    again = at.direction_divergence(read(np.asarray(found.unwrap())), found.unwrap(), 1.75)
    assert again.dtype == np.float64 and 0 <= float(again) < 1e-12, (read, again)
narrow = jnp.asarray(found.unwrap())
assert at.direction_divergence(narrow, 2 * narrow, 1.75).dtype == np.float32
assert at.bregman([1.0, 2.0], [3.0, 2.0], 2.0).dtype == np.float64
y = np.resize([1.0, -1.0], 4)
assert at.lp_svm(z, y, 3.0).certificate["gap"] <= 1e-8
assert at.kernel_svm(z @ z.T, y).certificate["gap"] <= 1e-8

from attlas.models.attention.multi_head import MultiHead, Decoder
from attlas.solvers.global_margin import global_margin

model = MultiHead(jnp.ones((1, 5, 6)), jnp.ones((1, 6, 6)), Decoder.FULL)
assert at.ntk_gram(model, X).dtype == np.float64
assert at.ntk_gram(model, jnp.asarray(X)).dtype == np.float32
best = global_margin(X, y, 1, starts=3, steps=5, key=jax.random.key(0))
assert best.value.dtype == np.float64 and best.certificate["lower"] == best.value

head = (np.eye(6) / 8).tolist()
weights = at.TransformerWeights((((head, head, head),),), [0.5] * 6)
assert at.compare_bounds(weights, X, 10**6, 0.05).best.gap > 0
from attlas.bounds.comparison.transformer_weights import Head
weights = at.TransformerWeights(((Head(head, head, head),),), [0.5] * 6)
assert at.compare_bounds(weights, X.tolist(), 10**6, 0.05).best.gap > 0


def risk(x):
    return (3 * x[0] ** 2 - x[1] ** 2) / 2

for point, tolerance in ((np.ones(2), 1e-12), ([1.0, 2.0], 1e-12), (jnp.ones(2), None)):
    ends = at.hessian_extremes(risk, point, tolerance=tolerance)
    assert ends.unwrap().largest == 3.0
    wide = not isinstance(point, jax.Array)
    assert ends.certificate["vectors"].dtype == (np.float64 if wide else np.float32)

maps = jnp.tril(jnp.ones((2, 3, 4, 4), "bfloat16")) / jnp.arange(1, 5, dtype="bfloat16")[:, None]
assert at.concentration(maps, [1, 2, 3, 4]).s0.shape == (2, 3, 4, 1)

from attlas.models.networks.softmax_network import SoftmaxNetwork
network = SoftmaxNetwork(jnp.zeros((2, 2)), jnp.array([[1.0, -1.0]]))
assert at.softmax_ntk(network, np.eye(2).tolist()).dtype == np.float64
assert at.softmax_ntk(network, jnp.eye(2)).dtype == np.float32

assert not jax.config.jax_enable_x64
assert jnp.ones(1).dtype == np.float32
"""


@pytest.mark.thorough
def test_the_front_door_under_the_default_precision():
    # The command line switches precision by this variable, also for the tests that call it.
    default = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
    program = [sys.executable, "-W", "error", "-c", PROGRAM]
    done = subprocess.run(program, capture_output=True, env=default)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
