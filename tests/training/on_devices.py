"""Ensembles on 1, 2 and 8 CPU devices: writes the largest difference from one device, by name."""

import json
import sys
from itertools import islice

import jax

if __name__ == "__main__":  # before JAX starts
    jax.config.update("jax_num_cpu_devices", 8)
    jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import optax

from attlas.data.sparse_majority import MajorityDesign, make_sparse_majorities
from attlas.data.token_selection import make_support_selection
from attlas.models.attention.multi_head import make_multi_head
from attlas.models.networks.softmax_network import SoftmaxNetwork
from attlas.training import ensemble
from attlas.training.epochs import epoch_orders, fit_epochs
from deora2023optimization.library.training.leave_one_out import leave_one_out
from gu2024exploring.library.training.softmax_regression import train_softmax_networks
from julistiono2024optimizing.library.token_selection.training import train_selection_ensemble
from trauger2023sequence.library.models.majority_attention import make_majority_attention
from trauger2023sequence.library.sparse_majority.training import train_majority

RNG = np.random.default_rng(3)


def stacked(parts):
    return jax.tree.map(lambda *each: jnp.stack(each), *parts)


def selection():
    data = stacked([make_support_selection(jax.random.key(k)) for k in range(5)])
    start = jnp.asarray(RNG.normal(size=(5, 4, 4)))
    path = train_selection_ensemble(data, start, p=1.75, learning_rate=0.1, steps=9)
    return path.W


def softmax_networks():
    signs = jnp.asarray(RNG.choice([-1.0, 1.0], (5, 1, 6)))
    networks = SoftmaxNetwork(jnp.asarray(RNG.normal(size=(5, 3, 6))), signs)
    X, Y = jnp.asarray(RNG.normal(size=(4, 3))), jnp.asarray(RNG.normal(size=(4, 1)))
    path = train_softmax_networks(networks, X, Y, step_size=jnp.full(5, 0.05), steps=9)
    return path.loss


def left_out():
    X = jnp.asarray(RNG.normal(size=(5, 3, 2)))
    y = jnp.asarray(RNG.choice([-1.0, 1.0], 5))
    start = make_multi_head(2, 3, 2)
    return leave_one_out(start, X, y, step_size=0.5, steps=9, record_at=(3, 9)).distance


def majority():
    keys = jax.random.split(jax.random.key(0), 3)
    data = make_sparse_majorities(keys, 2, MajorityDesign(train=8, validation=20, indices=1,
                                                          dimension=4))  # fmt: skip
    models = stacked([make_majority_attention(key, 4, 1, 2) for key in keys])
    return train_majority(models, data, keys, 3, chunk=3).history


def by_epochs():
    """Classifiers of six points, each with an order of its own."""
    X, y = jnp.asarray(RNG.normal(size=(6, 3))), jnp.asarray(RNG.choice([0.0, 1.0], 6))

    def loss(w, data, rows):
        scores = data[0][rows] @ w
        hits = jnp.sum((scores > 0) == (data[1][rows] > 0.5))
        return jnp.mean(jnp.logaddexp(0, scores) - data[1][rows] * scores), hits

    keys = jax.random.split(jax.random.key(1), 4)
    return fit_epochs(
        loss, optax.adam(0.1), jnp.asarray(RNG.normal(size=(4, 3))), (X, y),
        islice(epoch_orders(keys, 6, 2), 5), batch=2, width=4,
        evaluate=lambda w, data: {"validation": jnp.mean((data[0] @ w > 0) == (data[1] > 0.5))},
    ).last  # fmt: skip


def differences(count):
    """Of each ensemble on so many devices from one, relative to the largest number."""
    found = {}
    for each in (selection, softmax_networks, left_out, majority, by_epochs):
        results = []
        for devices in (jax.local_devices()[:1], jax.local_devices()[:count]):
            ensemble.member_devices = lambda devices=devices: devices
            RNG.bit_generator.state = START
            results.append(np.asarray(each()))
        one, many = results
        found[each.__name__] = float(np.max(np.abs(one - many)) / np.max(np.abs(one)))
    return found


START = RNG.bit_generator.state
if __name__ == "__main__":
    sys.stdout.write(json.dumps({count: differences(count) for count in (1, 2, 8)}))
