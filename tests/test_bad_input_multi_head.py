"""Bad input of the multi-head and softmax-network tools: one clear line each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import NotConverged, Result
from attlas.data.labelled_tokens import require_labelled_tokens
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.attention.multi_head import make_multi_head
from attlas.models.networks.softmax_network import symmetric_network
from attlas.optim.one_step import one_step_initialisation
from attlas.solvers.kernel_svm import kernel_svm
from attlas.training.gradient_descent import gradient_descent
from deora2023optimization.library.training.leave_one_out import leave_one_out
from gu2024exploring.library.data.noise_schedule import make_noise_schedule, require_times
from gu2024exploring.library.kernels.regression_flow import regression_flow
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

KEY = jax.random.key(0)
X, Y = jnp.ones((2, 3, 4)), jnp.array([1.0, -1.0])
MODEL = make_multi_head(2, 3, 4)
NETWORK = symmetric_network(KEY, 4, 2)


def train(model, X, y):
    return gradient_descent(model, X, y, step_size=0.1, steps=1)


REFUSED = {
    "tokens longer than R": (lambda: require_labelled_tokens(X, Y, R=1.5), "norm 2 above R = 1.5"),
    "labels 0 and 1": (lambda: train(MODEL, X, jnp.array([0.0, 1.0])), r"y\[0\] = 0.0 is not \+1"),
    "labels, leave one out": (
        lambda: leave_one_out(MODEL, X, 2 * Y, step_size=0.1, steps=1),
        r"is not \+1 or -1",
    ),
    "no head": (lambda: make_multi_head(0, 3, 4), "at least one head"),
    "no head, one step": (lambda: one_step_initialisation(KEY, X, Y, 0), "heads = 0"),
    "memory below one tile": (lambda: ntk_gram(MODEL, X, memory=8), "memory = 8 bytes .* at least"),
    "other dimension": (lambda: train(make_multi_head(2, 3, 5), X, Y), "make them agree"),
    "other dimension, kernel": (lambda: ntk_gram(make_multi_head(2, 3, 5), X), "5"),
    "other number of tokens": (lambda: train(make_multi_head(2, 2, 4), X, Y), "make them agree"),
    "NaN token": (lambda: train(MODEL, X.at[1, 2, 3].set(jnp.nan), Y), r"X\[1, 2, 3\] = nan"),
    "a fraction of a relevant token": (
        lambda: sample_mixture(KEY, make_tokenized_mixture(KEY, d=4, M=2, zeta=0.5), 2, 3),
        "zeta",
    ),
    "fewer dimensions than patterns": (lambda: make_tokenized_mixture(KEY, d=3, M=2), "d = 3"),
    "odd width": (lambda: symmetric_network(KEY, 4, 3), "choose an even width"),
    "sigma not positive": (lambda: symmetric_network(KEY, 4, 2, sigma=0.0), "must be positive"),
    "sigma not positive, limit": (lambda: softmax_ntk_limit(X[0], X[0], -1.0), "must be positive"),
    "time outside": (
        lambda: require_times(make_noise_schedule(1.0, T=2.0), 3.0, 0.1),
        r"time 3.0 is outside \[0.1, 2.0\]",
    ),
    "time before T0": (
        lambda: require_times(make_noise_schedule(1.0, T=2.0), 0.05, 0.1),
        r"time 0.05 is outside \[0.1, 2.0\]",
    ),
    "kernel memory below one row": (lambda: softmax_ntk(NETWORK, X[0], memory=8), "one row"),
    "network of another dimension": (
        lambda: softmax_ntk(NETWORK, X[0, :, :2]),
        r"X has shape \(3, 2\): give \[n d\] with d = 4",
    ),
    "kernel with NaN": (lambda: regression_flow(np.eye(2) * np.nan, np.ones((2, 1))), "NaN"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_line(case):
    act, words = REFUSED[case]
    with pytest.raises(UserError, match=words) as caught:
        act()
    assert "\n" not in str(caught.value)


def test_data_that_no_direction_separates_are_named_so():
    found = kernel_svm(np.ones((2, 2)), np.asarray(Y))  # one feature, both labels
    assert found.result == Result.INFEASIBLE.value
    with pytest.raises(NotConverged, match="INFEASIBLE"):
        found.unwrap()


def test_a_singular_kernel_leaves_its_null_space_alone():
    flow = regression_flow(np.ones((2, 2)), np.array([[1.0], [-1.0]]))
    np.testing.assert_allclose(flow.train(np.array([1e9]))[0], np.zeros((2, 1)), atol=1e-6)
