"""How much faster four ensembles train on two cores than on one, and what two cores can give.

Two processes hold the same compiled programs: one may use the first core only, the other both.
They work in turn, round by round, and the ratio of their durations by the clock is reported with
its range. What the machine can give at most is measured in the same rounds: the process of the
first core and a third one, of the second core, train at once; `limit` is twice the duration of one
alone over the duration of the two at once. Cores that share caches, memory and power stay below 2.

The third process is asked the same work, so the limit holds for this work and not in general.
Results of one and two cores agree to `difference`.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.asked_process import AskedProcess
from benchmarks.interleave import write_results

ROUNDS, AIM = 5, 1.8
CORES = {"first": (0,), "second": (1,), "both": (0, 1)}


def ensembles() -> dict[str, Callable[[], np.ndarray]]:
    """Work of each name; what it returns is compared."""
    import jax
    import jax.numpy as jnp

    from attlas.data.sparse_majority import MajorityDesign, make_sparse_majorities
    from attlas.data.token_selection import make_token_selection
    from attlas.models.attention.multi_head import make_multi_head
    from attlas.models.networks.softmax_network import SoftmaxNetwork
    from deora2023optimization.library.training.leave_one_out import leave_one_out
    from gu2024exploring.library.training.softmax_regression import train_softmax_networks
    from julistiono2024optimizing.library.token_selection.training import train_selection_ensemble
    from trauger2023sequence.library.models.majority_attention import make_majority_attention
    from trauger2023sequence.library.sparse_majority.training import RELEASED, train_majority

    rng = np.random.default_rng(0)

    def normal(*shape: int, scale: float = 1.0) -> jax.Array:
        return jnp.asarray(rng.normal(0, scale, shape).astype(np.float32))

    key = jax.random.key(0)
    data = jax.vmap(make_token_selection)(jax.random.split(key, 1000))
    starts = jax.random.normal(key, (1000, 10, 10))
    signs = np.array([-1, 1], np.float32)
    networks = SoftmaxNetwork(normal(200, 5, 256), jnp.asarray(rng.choice(signs, (200, 1, 256))))
    points, values = normal(20, 5, scale=0.4), normal(20, 1)
    model = jax.tree.map(lambda a: normal(*a.shape, scale=0.3), make_multi_head(4, 10, 10))
    X, y = normal(200, 10, 10, scale=0.3), jnp.asarray(rng.choice(signs, 200))
    keys = jax.random.split(key, 8)
    majorities = make_sparse_majorities(keys, 20, MajorityDesign(validation=1000))
    models = jax.tree.map(
        lambda *parts: jnp.stack(parts), *(make_majority_attention(k, 64, 2, 32) for k in keys)
    )
    settings = RELEASED._replace(stop_accuracy=2.0)
    return {
        "selection: 1000 models, 600 steps": lambda: np.asarray(
            train_selection_ensemble(data, starts, p=1.75, learning_rate=0.1, steps=600).loss
        ),
        "softmax networks: 200 of width 256, 300 steps": lambda: np.asarray(
            train_softmax_networks(networks, points, values, step_size=1e-4, steps=300).loss
        ),
        "sparse majority: 8 runs, 100 epochs": lambda: np.asarray(
            train_majority(models, majorities, keys, 100, settings, chunk=100).history
        ),
        "leave-one-out: 200 trainings, 100 steps": lambda: np.asarray(
            leave_one_out(model, X, y, step_size=0.5, steps=100, record_at=(100,)).distance
        ),
    }


def serve() -> None:
    """Write the names; run the work that a line of input names; answer with seconds and numbers."""
    works = ensembles()
    print(json.dumps(list(works)), flush=True)
    for line in sys.stdin:
        work = works[line.strip()]
        started = time.perf_counter()
        found = work()
        took = time.perf_counter() - started
        print(json.dumps([took, np.asarray(found, float).ravel()[:1000].tolist()]), flush=True)


def measure(name: str, on: dict[str, AskedProcess]) -> dict[str, Any]:
    """One row: ratio, its range, and the limit of the machine."""
    for process in on.values():  # compiles
        process.run(name)
    ratios, limits, alone, difference = [], [], [], 0.0
    for _ in range(ROUNDS):
        one, expected = on["first"].run(name)
        two, found = on["both"].run(name)
        pair = [on["first"], on["second"]]
        for process in pair:
            process.ask(name)
        together = max(process.answer()[0] for process in pair)
        ratios.append(one / two)
        limits.append(2 * one / together)
        alone.append(one)
        difference = max(difference, float(np.max(np.abs(np.subtract(found, expected)))))
    row = {
        "case": name,
        "seconds": statistics.median(alone),
        "ratio": statistics.median(ratios),
        "ratio_range": [min(ratios), max(ratios)],
        "goal": AIM,
        "limit": statistics.median(limits),
        "limit_range": [min(limits), max(limits)],
        "difference": difference,
        "rounds": ROUNDS,
    }
    print(json.dumps(row), flush=True)
    return row


def main() -> None:
    """All rows, to results/two_cores.json."""
    if not {0, 1} <= os.sched_getaffinity(0):
        raise SystemExit("two_cores: this process may not use cores 0 and 1")
    os.environ["JAX_PLATFORMS"] = "cpu"  # whose cores are compared
    on = {
        name: AskedProcess("benchmarks.two_cores", json.dumps(cores))
        for name, cores in CORES.items()
    }
    *_, names = (process.answer() for process in on.values())
    rows = [measure(name, on) for name in names]
    for process in on.values():
        process.end()
    write_results("two_cores", rows)


if __name__ == "__main__":
    if sys.argv[1:]:  # the cores of one of its own processes
        os.sched_setaffinity(0, json.loads(sys.argv[1]))
        serve()
    else:
        main()
