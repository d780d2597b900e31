"""Ten replications of the IMDB self-attention model beside ten runs of the same model in PyTorch.

130 words of 100 dimensions, W_Q, W_K, W_V of 100 x 100, a hidden layer of 64 units, a vocabulary
of 10,000, Adam at 1e-3, batches of 32 of 1000 reviews, float32. Both sides start from the same
parameters and see the same batches. A peer trains one replication (two where it runs two at
once) for one epoch and is charged for all; ours trains all of them, compilation included. There
is one validation review: the peers evaluate none.
`core_second_ratio` compares processor time in place of wall time: the two say the same on an idle
machine, and only the first means something where other work shares the cores.
With two cores the peer that counts is the one that runs two replications at once: one run on two
threads makes them wait for each other at every operation, on a busy machine by a factor of ten.
`difference` is the largest relative difference, after the first epoch of the first replication,
of its mean loss and of the sum of absolute parameters. optax corrects Adam's bias in float32,
exact to eps / (1 - 0.999), PyTorch in float64: the difference must stay below that.

The words are those of IMDB where the data folder holds it, else draws from Zipf's law; the result
says which. `python -m benchmarks.review_ensemble 2` uses two cores, without argument one.
`... workers` trains two ensembles at once in two processes of one core each, as the two workers of
`attlas run` do, beside two runs of PyTorch at once: the same number of replications on both sides.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.asked_process import AskedProcess
from benchmarks.interleave import compare, pin_to_one_core, write_results

MODE = sys.argv[1] if len(sys.argv) > 1 else "1"
CORES = 2 if MODE in {"2", "workers"} else 1
ALLOWED = sorted(os.sched_getaffinity(0))
GRANTED = [int(sys.argv[2])] if MODE == "worker" else ALLOWED[:CORES]
pin_to_one_core()
os.sched_setaffinity(0, set(GRANTED))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
import torch  # noqa: E402

from attlas.data.imdb import IMDB  # noqa: E402
from attlas.data.sources import is_present  # noqa: E402
from attlas.data.token_sequences import TokenSequences  # noqa: E402
from attlas.training.epochs import epoch_orders  # noqa: E402
from liu2021analyzing.library.data.distinct_words import distinct_words  # noqa: E402
from liu2021analyzing.library.models.self_attention_mlp import make_self_attention_mlp  # noqa: E402
from liu2021analyzing.library.models.word_classifier import make_word_classifier  # noqa: E402
from liu2021analyzing.library.reviews.distinct_word_training import train_word_classifiers  # noqa: E402
from liu2021analyzing.library.reviews.review_words import load_review_words  # noqa: E402

MEMBERS, REVIEWS, BATCH, EPOCHS, RATE = 10, 1000, 32, 8, 1e-3
P, T, HIDDEN, VOCABULARY = 130, 100, 64, 10_000
TOLERANCE = float(np.finfo(np.float32).eps) / (1 - 0.999)
KEYS = jax.random.split(jax.random.key(0), MEMBERS)


def reviews() -> tuple[TokenSequences, TokenSequences, str]:
    """Training and validation reviews, and what they are."""
    if is_present(IMDB):
        found = load_review_words(sizes=(REVIEWS, 1, 1))
        return found.train, found.validation, found.source
    draw = np.random.default_rng(0)
    share = 1 / np.arange(2.0, VOCABULARY + 1)
    tokens = 1 + draw.choice(VOCABULARY - 1, (REVIEWS + 1, P), p=share / share.sum())
    labels = draw.integers(0, 2, REVIEWS + 1).astype(float)
    both = TokenSequences(tokens.astype(np.int32), tokens > 0, labels)
    parts = (slice(0, REVIEWS), slice(REVIEWS, None))
    train, held = (jax.tree.map(lambda a, s=part: a[s], both) for part in parts)
    return train, held, "draws from Zipf's law"


def make(key: jax.Array):
    """One replication at its start."""
    first, second = jax.random.split(key)
    network = make_self_attention_mlp(second, P, T, T, T, HIDDEN, biases=True, dtype=jnp.float32)
    return make_word_classifier(first, VOCABULARY, T, network, jnp.float32)


class Peer(torch.nn.Module):
    """The model as one writes it in PyTorch, with our start."""

    def __init__(self, model, fused_attention: bool) -> None:
        super().__init__()
        self.fused_attention = fused_attention
        own = model.network
        self.words = torch.nn.Embedding(VOCABULARY, T, padding_idx=0)
        self.query, self.key, self.value = (torch.nn.Linear(T, T, bias=False) for _ in range(3))
        self.first, self.second = torch.nn.Linear(P * T, HIDDEN), torch.nn.Linear(HIDDEN, 1)
        start = {
            "words.weight": np.array(model.embedding) * (np.arange(VOCABULARY) > 0)[:, None],
            "query.weight": own.W_Q,
            "key.weight": own.W_K,
            "value.weight": own.W_V,
            "first.weight": own.W1.T,
            "first.bias": own.b1,
            "second.weight": own.w2[None],
            "second.bias": own.b2[None],
        }
        self.load_state_dict({name: torch.tensor(np.array(a)) for name, a in start.items()})

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of a batch."""
        x = self.words(tokens)
        q, k, v = self.query(x), self.key(x), self.value(x)
        if self.fused_attention:
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        else:
            mixed = torch.softmax(q @ k.transpose(1, 2) / T**0.5, dim=2) @ v
        return self.second(torch.relu(self.first(mixed.flatten(1))))[:, 0]


class Problem:
    """Data, starts and the batches of the first epoch."""

    def __init__(self) -> None:
        train, held, self.source = reviews()
        self.train, self.held = distinct_words(train), distinct_words(held)
        self.models = jax.jit(jax.vmap(make))(KEYS)
        self.starts = [jax.tree.map(lambda a, m=m: a[m], self.models) for m in range(2)]
        self.order = next(epoch_orders(KEYS, REVIEWS, BATCH))
        self.tokens = torch.tensor(np.asarray(train.tokens)).long()
        self.labels = torch.tensor(np.asarray(train.labels)).float()

    def trained(self, epochs: int):
        """All replications, in our program."""
        optimizer = optax.adam(RATE)
        return train_word_classifiers(
            self.models, optimizer, self.train, self.held, KEYS, BATCH, epochs
        )

    def ours(self) -> np.ndarray:
        """Mean loss of the first epoch of the first replication."""
        return np.asarray(self.trained(EPOCHS).loss[0, :1])

    def peer(self, fused: bool, member: int = 0) -> np.ndarray:
        """Mean loss and sum of absolute parameters after one epoch, in the usual eager loop."""
        net = Peer(self.starts[member], fused)
        descent = torch.optim.Adam(net.parameters(), RATE, fused=fused)
        total = 0.0
        for rows in self.order[member]:
            pick = torch.tensor(rows)
            descent.zero_grad()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                net(self.tokens[pick]), self.labels[pick]
            )
            loss.backward()
            descent.step()
            total += loss.item()
        with torch.no_grad():
            weight = sum(p.abs().sum().item() for p in net.parameters())
        return np.array([total / self.order.shape[1], weight])

    def two_at_once(self) -> np.ndarray:
        """Two replications, each on one thread."""
        with ThreadPoolExecutor(2) as pool:
            first, _ = pool.map(lambda member: self.peer(True, member), range(2))
        return first


def main() -> None:
    """Measure and write the results."""
    problem = Problem()
    one = 1 / (MEMBERS * EPOCHS)
    peers = {"PyTorch": lambda: problem.peer(False)}
    peers["PyTorch, fused attention and Adam"] = lambda: problem.peer(True)
    weights = dict.fromkeys(peers, one)
    if CORES == 2:
        torch.set_num_threads(2)
        peers["PyTorch, two runs at once"] = two_runs(problem)
        weights["PyTorch, two runs at once"] = 2 * one
    else:
        torch.set_num_threads(1)
    first = problem.trained(1)
    weight = absolute_weight(problem, first.last)

    def difference(mine: np.ndarray, theirs: np.ndarray) -> float:
        return float(np.max(np.abs(np.array([mine[0], weight]) - theirs) / np.abs(theirs)))

    spent: dict[str, list[float]] = {"ours": []}

    def clocked(name: str, work: Callable[[], np.ndarray]) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            start = time.process_time()
            found = work()
            spent.setdefault(name, []).append((time.process_time() - start) / weights.get(name, 1))
            return found

        return run

    case = compare(
        f"{MEMBERS} replications, {REVIEWS} reviews ({problem.source}), batches of {BATCH}, "
        f"{EPOCHS} epochs, {HIDDEN} hidden units, {CORES} core(s), float32",
        clocked("ours", problem.ours),
        {name: clocked(name, work) for name, work in peers.items()},
        agree=difference,
        weights=weights,
        goal=dict.fromkeys(peers, 2.0),
    )
    ours = spent["ours"][1:]  # the first call came before the rounds
    for name, row in case["peers"].items():
        ratios = [theirs / mine for theirs, mine in zip(spent[name], ours, strict=True)]
        row["core_second_ratio"] = statistics.median(ratios)
        row["core_second_range"] = [min(ratios), max(ratios)]
    print(case["peers"], flush=True)
    far = {name: row["difference"] for name, row in case["peers"].items() if "difference" in row}
    if max(far.values()) > TOLERANCE:
        raise AssertionError(f"the sides disagree: {far}")
    name = "review_ensemble" if CORES == 1 else f"review_ensemble_{CORES}_cores"
    core_seconds = statistics.median(ours)
    write_results(
        name, [{**case, "core_seconds": core_seconds, "cores": CORES, "tolerance": TOLERANCE}]
    )


def absolute_weight(problem: Problem, models: Any) -> float:
    """Sum of absolute parameters of the first replication, but for the word that pads."""
    own = jax.tree.map(lambda a: np.abs(np.asarray(a[0], np.float64)).sum(), models)
    unused = np.abs(np.asarray(problem.starts[0].embedding[0])).sum()
    return float(sum(jax.tree.leaves(own)) - unused)


def two_runs(problem: Problem) -> Callable[[], np.ndarray]:
    """The peer that runs two replications at once, one thread each."""

    def run() -> np.ndarray:
        torch.set_num_threads(1)
        try:
            return problem.two_at_once()
        finally:
            torch.set_num_threads(2)

    return run


def serve() -> None:
    """Train for each line of input: mean loss and weights after the first epoch."""
    problem = Problem()
    first = problem.trained(1)
    weight = absolute_weight(problem, first.last)
    for _ in sys.stdin:
        print(json.dumps([float(problem.ours()[0]), weight]), flush=True)


def with_workers() -> None:
    """Two ensembles at once beside two replications at once."""
    problem, module = Problem(), "benchmarks.review_ensemble"
    workers = [AskedProcess(module, "worker", str(core)) for core in GRANTED]

    def ours() -> np.ndarray:
        for worker in workers:
            worker.ask()
        first, _ = (worker.answer() for worker in workers)
        return np.array(first)

    name = "PyTorch, two runs at once"
    case = compare(
        f"twice 10 replications at once, {REVIEWS} reviews ({problem.source}), batches of {BATCH}, "
        f"{EPOCHS} epochs, {HIDDEN} hidden units, two workers of one core, float32",
        ours,
        {name: two_runs(problem)},
        agree=lambda mine, theirs: float(np.max(np.abs(mine - theirs) / np.abs(theirs))),
        weights={name: 1 / (MEMBERS * EPOCHS)},  # two of twice as many
        goal={name: 2.0},
        rounds=5,
    )
    for worker in workers:
        worker.end()
    if case["peers"][name]["difference"] > TOLERANCE:
        raise AssertionError(f"the sides disagree: {case['peers']}")
    write_results("review_ensemble_workers", [{**case, "cores": CORES, "tolerance": TOLERANCE}])


if __name__ == "__main__":
    {"worker": serve, "workers": with_workers}.get(MODE, main)()
