"""How the duration of each speed row grows with its size: the slope in a log-log plot.

Every size of a row is timed once a round, all sizes in turn, in processor time of one core, so
that other work on the machine falls on all of them alike. The slope is that of the medians over
the rounds, with the bootstrap interval of `loglog_slope`. Where a method changes on the way (a
small SVM is one dense system, a large one is not) the slope is that of the whole range, and
`curvature`, zero for a power law, says so. `from_largest` is the exponent between the two largest
sizes, by which to extrapolate.
"""

from benchmarks.interleave import RESULTS, environment, pin_to_one_core, write_results

pin_to_one_core()

import json  # noqa: E402
import math  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any, NamedTuple  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402

from attlas.data.token_selection import make_token_selection  # noqa: E402
from attlas.data.token_sequences import TokenSequences  # noqa: E402
from attlas.losses.empirical_risk import empirical_risk  # noqa: E402
from attlas.measures.curvature.extreme_eigenvalues import hessian_extremes  # noqa: E402
from attlas.measures.statistics.loglog_slope import loglog_slope  # noqa: E402
from attlas.models.attention.multi_head import make_multi_head  # noqa: E402
from attlas.solvers.attention_svm import attention_svm, attention_svm_batch  # noqa: E402
from deora2023optimization.library.training.leave_one_out import leave_one_out  # noqa: E402
from julistiono2024optimizing.library.token_selection.training import train_selection_ensemble  # noqa: E402
from liu2021analyzing.library.data.distinct_words import distinct_words  # noqa: E402
from liu2021analyzing.library.models.self_attention_mlp import make_self_attention_mlp  # noqa: E402
from liu2021analyzing.library.models.word_classifier import make_word_classifier  # noqa: E402
from liu2021analyzing.library.reviews.distinct_word_training import train_word_classifiers  # noqa: E402

ROUNDS = 5


class Row(NamedTuple):
    """What grows, its sizes over two decades, and the work of one size."""

    name: str
    size: str
    sizes: tuple[int, ...]
    prepare: Callable[[int], Callable[[], Any]]


def margins(b: int, n: int, T: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gaussian tokens and queries; the tokens chosen are the best of a planted matrix."""
    draws = np.random.default_rng(1)
    X, z = draws.normal(size=(b, n, T, d)), draws.normal(size=(b, n, d))
    W = draws.normal(size=(b, d, d))
    return X, z, np.argmax(np.einsum("bntd,bde,bne->bnt", X, W, z), axis=2)


def selection(count: int) -> Callable[[], Any]:
    """Models of the released settings, 300 steps."""
    data_key, start_key = jax.random.split(jax.random.key(0))
    data = jax.vmap(make_token_selection)(jax.random.split(data_key, count))
    starts = jax.random.normal(start_key, (count, 10, 10))
    return lambda: jax.block_until_ready(
        train_selection_ensemble(data, starts, p=1.75, learning_rate=0.1, steps=300).loss
    )


def one_svm(p: float) -> Callable[[int], Callable[[], Any]]:
    """One attention SVM of d = 20 with ten constraints a sample."""

    def prepare(constraints: int) -> Callable[[], Any]:
        X, z, tokens = (a[0] for a in margins(1, constraints // 10, 11, 20))
        return lambda: attention_svm(X, z, tokens, p).unwrap()

    return prepare


def svms(count: int) -> Callable[[], Any]:
    """Attention SVMs with 42 constraints and 100 variables, p = 2."""
    X, z, tokens = margins(count, 6, 8, 10)
    return lambda: attention_svm_batch(X, z, tokens, 2.0).unwrap()


def multi_head(n: int, heads: int) -> tuple[Any, jax.Array, jax.Array]:
    """Small random weights and Gaussian samples of ten tokens in ten dimensions."""
    draws = np.random.default_rng(2)
    zero = make_multi_head(heads, 10, 10)
    model = jax.tree.map(lambda a: jnp.asarray(draws.normal(0, 0.3, a.shape)), zero)
    X = jnp.asarray(draws.normal(size=(n, 10, 10)) / 10**0.5)
    return model, X, jnp.asarray(draws.choice([-1.0, 1.0], n))


def left_out(n: int) -> Callable[[], Any]:
    """As many trainings of 20 steps as samples: the work is quadratic in their number."""
    model, X, y = multi_head(n, 2)
    return lambda: jax.block_until_ready(
        leave_one_out(model, X, y, step_size=0.1, steps=20, record_at=(20,)).distance
    )


def extremes(heads: int) -> Callable[[], Any]:
    """Three eigenvalues at each end of a Hessian of 200 parameters a head, 50 samples."""
    model, X, y = multi_head(50, heads)
    return lambda: hessian_extremes(empirical_risk, model, X, y, count=3, exact_below=0)


def reviews(count: int) -> Callable[[], Any]:
    """One epoch of one self-attention model over reviews drawn from Zipf's law."""
    draws, share = np.random.default_rng(0), 1 / np.arange(2.0, 10_001)
    tokens = 1 + draws.choice(9_999, (count + 1, 130), p=share / share.sum()).astype(np.int32)
    labels = draws.integers(0, 2, count + 1).astype(float)
    parts = (slice(0, count), slice(count, None))
    train, held = (
        distinct_words(TokenSequences(tokens[part], tokens[part] > 0, labels[part]))
        for part in parts
    )
    keys = jax.random.split(jax.random.key(0), 1)
    network = make_self_attention_mlp(
        keys[0], 130, 100, 100, 100, 64, biases=True, dtype=jnp.float32
    )
    model = make_word_classifier(keys[0], 10_000, 100, network, jnp.float32)
    stack = jax.tree.map(lambda a: a[None], model)
    descent = optax.adam(1e-3)
    return lambda: np.asarray(train_word_classifiers(stack, descent, train, held, keys, 32, 1).loss)


ROWS = {
    "selection": Row(
        "selection ensemble, 300 steps, p = 1.75", "models", (10, 32, 100, 320, 1000), selection
    ),
    "one_svm_2": Row(
        "one attention SVM, d = 20, p = 2", "constraints", (50, 160, 500, 1600, 5000), one_svm(2.0)
    ),
    "one_svm_1.75": Row(
        "one attention SVM, d = 20, p = 1.75",
        "constraints",
        (50, 160, 500, 1600, 5000),
        one_svm(1.75),
    ),
    "svms": Row(
        "attention SVMs of 42 constraints, p = 2", "problems", (10, 32, 100, 320, 1000), svms
    ),
    "leave_one_out": Row(
        "leave-one-out, H = 2, T = d = 10, 20 steps", "samples", (4, 13, 40, 130, 400), left_out
    ),
    "reviews": Row(
        "one epoch of the IMDB self-attention model", "reviews", (32, 100, 320, 1000, 3200), reviews
    ),
    "extremes": Row("Hessian extremes, three at each end", "heads", (1, 3, 10, 30, 100), extremes),
}


def measure(row: Row) -> dict[str, Any]:
    """Time every size of a row in turn, and fit the slope."""
    works = [row.prepare(size) for size in row.sizes]
    for work in works:
        work()
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for spent, work in zip(times, works, strict=True):
            spent.append(processor_seconds(work))
    found = loglog_slope(row.sizes, times, jax.random.key(0), centre="median")
    medians = [float(np.median(spent)) for spent in times]
    case = {
        "case": row.name,
        "size": row.size,
        "sizes": list(row.sizes),
        "core_seconds": medians,
        "exponent": found.slope,
        "interval": [found.low, found.high],
        "curvature": found.curvature,
        "from_largest": math.log(medians[-1] / medians[-2])
        / math.log(row.sizes[-1] / row.sizes[-2]),
        "rounds": ROUNDS,
    }
    print(case, flush=True)
    return case


def processor_seconds(work: Callable[[], Any], least: float = 0.05) -> float:
    """Processor time of one call; short ones are repeated."""
    start, calls = time.process_time(), 0
    while True:
        work()
        calls += 1
        passed = time.process_time() - start
        if passed >= least:
            return passed / calls


def main() -> None:
    """Measure all rows, or those named, and write `results/growth.json`; the others stay there."""
    kept = {}
    if (found := RESULTS / "growth.json").exists():
        kept = {case["case"]: case for case in json.loads(found.read_text())["cases"]}
    for name in sys.argv[1:] or ROWS:
        with jax.enable_x64(True):
            case = measure(ROWS[name]) | {"commit": environment()["commit"]}
        kept[case["case"]] = case
        rows = (kept[row.name] for row in ROWS.values() if row.name in kept)
        write_results("growth", list(rows))


if __name__ == "__main__":
    main()
