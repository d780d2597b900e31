"""How many attention weights can be pruned after mirror descent, beside AdamW, at equal accuracy.

A small p leaves more weights near zero, which should make them easier to prune. One encoder layer
(four heads, d = 32, GELU, mean over tokens) classifies digits (16 patches of 8 x 8 pixels) and
film reviews (64 words). The queries, keys, values and outputs are trained by l_p mirror descent in
relative steps, p = 1.1, 2 and 3, or by AdamW; all other weights by AdamW in every case, through
one `SplitOptimizer` and OneCycleLR, which turns rates, momentum and betas. `preconditioned` is a
form that is no part of attlas: its momentum is divided by the root of Adam's mean square before
the norm is taken.

The rate of all other weights is AdamW's best of three; then every way has four rates of the
attention weights, a factor 3 apart, the one of least validation loss on a seed of its own
(`chosen_on_seed`). All runs have the same number of steps, and per seed the same weights and
batches. Each of the attention's matrices is then pruned by magnitude. *Removed at equal accuracy*
is the largest share up to which validation accuracy stays within one point of that of AdamW's
unpruned model of the same seed; test accuracy, which no choice saw, is reported there, and where
half, 90 % or all of the attention's weights are removed. Means and 95 % intervals of Student's t
over seeds.

`python -m benchmarks.torch_pruning [digits|reviews]` reads IMDB where ATTLAS_DATA has it, else
generated reviews.
"""

import copy
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import torch
from torch import Tensor

from attlas.data.digits import cut_tokens, load_digits
from attlas.torch import LpMirrorDescent, attention_groups
from attlas.torch.attention_weights import PARTS
from attlas.torch.blocks import block_views
from attlas.torch.split_optimizer import SplitOptimizer
from benchmarks.interleave import write_results
from benchmarks.torch_reviews import VOCABULARY, interval, reviews

BATCH, WIDTH, HEADS, WORDS, HELD = 50, 32, 4, 64, 1250
CHOSEN_ON_SEED = 1000
REST_RATES = (1e-3, 3e-3, 1e-2)
MIRROR_RATES = (0.003, 0.01, 0.03, 0.1)
SHARES = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
ALLOWED = 0.01
TASKS = {
    "digits": ("AdamW", "l_p, p = 1.1", "l_p, p = 2", "l_p, p = 3", "preconditioned, p = 1.1"),
    "reviews": ("AdamW", "l_p, p = 1.1", "l_p, p = 3"),
}


class Preconditioned(LpMirrorDescent):
    """Momentum over the root of Adam's mean square; a norm takes the corrections of bias out."""

    def _pushes(self, group: dict[str, Any], params: list[Tensor]) -> list[Tensor]:
        pushes = []
        for w, momentum in zip(params, super()._pushes(group, params), strict=True):
            square = self.state[w].setdefault("square", torch.zeros_like(momentum))
            square.mul_(0.999).addcmul_(w.grad, w.grad, value=0.001)
            pushes.append(momentum / (square.sqrt() + 1e-8))
        return pushes


class Task(NamedTuple):
    """Inputs and labels of the three parts; words where `vocabulary` is not 0, else pixels."""

    parts: dict[str, tuple[Tensor, Tensor]]
    vocabulary: int
    classes: int
    steps: int
    seeds: int
    source: str


class Classifier(torch.nn.Module):
    """Tokens, positions, one encoder layer, and the mean over tokens that are no padding."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        inputs, words = task.parts["train"][0], task.vocabulary
        self.words = bool(words)
        self.tokens = (
            torch.nn.Embedding(words, WIDTH, padding_idx=0)
            if words
            else torch.nn.Linear(inputs.shape[2], WIDTH)
        )
        self.positions = torch.nn.Parameter(0.02 * torch.randn(inputs.shape[1], WIDTH))
        self.layer = torch.nn.TransformerEncoderLayer(
            WIDTH, HEADS, 2 * WIDTH, dropout=0.0, activation="gelu", batch_first=True
        )
        self.readout = torch.nn.Linear(WIDTH, task.classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [n, classes]."""
        padding = inputs == 0 if self.words else None
        hidden = self.layer(self.tokens(inputs) + self.positions, src_key_padding_mask=padding)
        if padding is None:
            return self.readout(hidden.mean(1))
        present = (~padding)[..., None].float()
        return self.readout((hidden * present).sum(1) / present.sum(1))


def digits() -> Task:
    """The digits as patches."""
    splits, parts = load_digits(), {}
    for name in ("train", "validation", "test"):
        part = getattr(splits, name)
        patches = cut_tokens(np.asarray(part.inputs), "patches") / 16
        parts[name] = (
            torch.tensor(patches).float(),
            torch.tensor(np.asarray(part.labels)).long(),
        )
    return Task(parts, 0, 10, 400, 4, "digits, part of attlas")


def short_reviews() -> Task:
    """The reviews of `torch_reviews`, their first words."""
    data, source = reviews()
    parts = {
        name: (data[name][:most, :WORDS], data[f"{name}_labels"][:most].long())
        for name, most in (("train", None), ("validation", HELD), ("test", HELD))
    }
    return Task(parts, VOCABULARY, 2, 200, 3, source)


def optimiser(model: Classifier, way: str, rate: float, rest_rate: float) -> torch.optim.Optimizer:
    """The optimiser of a way to train."""
    kind, _, p = way.partition(", p = ")
    groups = attention_groups(model, float(p or 2), parts=PARTS, show=None)
    rest = torch.optim.AdamW(groups[-1]["params"], rest_rate)
    if kind == "AdamW":
        matrices = [w for group in groups[:-1] for w in group["params"]]
        rest.add_param_group({"params": matrices, "lr": rate})
        return rest
    rule = Preconditioned if kind == "preconditioned" else LpMirrorDescent
    return SplitOptimizer(rule(groups[:-1], rate, momentum=0.9), rest)


def train_classifier(task: Task, way: str, rate: float, rest_rate: float, seed: int) -> Classifier:
    """One run."""
    torch.manual_seed(seed)
    model = Classifier(task)
    optimizer = optimiser(model, way, rate, rest_rate)
    rates = [group["lr"] for group in optimizer.param_groups]
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=task.steps + 1)
    draw = torch.Generator().manual_seed(seed)
    inputs, labels = task.parts["train"]
    for _ in range(task.steps):
        rows = torch.randint(len(labels), (BATCH,), generator=draw)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
        scheduler.step()
    return model.eval()


@torch.no_grad()
def loss_and_accuracy(model: Classifier, task: Task, part: str) -> tuple[float, float]:
    """Loss and accuracy."""
    inputs, labels = task.parts[part]
    logits = torch.cat([model(rows) for rows in inputs.split(500)])
    loss = torch.nn.functional.cross_entropy(logits, labels).item()
    return loss, (logits.argmax(1) == labels).double().mean().item()


@torch.no_grad()
def without_smallest(model: Classifier, share: float) -> Classifier:
    """A copy whose attention's matrices have lost a share of their entries, the smallest."""
    model = copy.deepcopy(model)
    for group in attention_groups(model, 2.0, parts=PARTS, show=None)[:-1]:
        for w in group["params"]:
            for view in block_views(w, group["block"]):
                order = view.abs().flatten().argsort()
                mask = torch.ones_like(order, dtype=view.dtype)
                mask[order[: round(share * len(order))]] = 0
                view.mul_(mask.view(view.shape))
    return model


def curve(model: Classifier, task: Task) -> dict[str, dict[float, float]]:
    """Accuracy at every share that is removed."""
    models = {share: without_smallest(model, share) for share in SHARES}
    return {
        part: {share: loss_and_accuracy(pruned, task, part)[1] for share, pruned in models.items()}
        for part in ("validation", "test")
    }


def removable(accuracies: dict[float, float], least: float) -> float:
    """The largest share up to which every accuracy is at least that; 0 where none is."""
    largest = 0.0
    for share, accuracy in accuracies.items():
        if accuracy < least:
            break
        largest = share
    return largest


def best_rates(task: Task, way: str, pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """The pair of rates of least validation loss."""
    losses = {}
    for pair in pairs:
        loss = loss_and_accuracy(
            train_classifier(task, way, *pair, CHOSEN_ON_SEED), task, "validation"
        )[0]
        losses[pair] = loss if math.isfinite(loss) else math.inf
    return min(losses, key=lambda pair: losses[pair])


def case_of(name: str, way: str, task: Task, rates: tuple[float, float], runs: Any, adamw: Any):
    """What is reported of one way to train."""
    shares, there = [], []
    for run, peer in zip(runs, adamw, strict=True):
        shares.append(removable(run["validation"], peer["validation"][0.0] - ALLOWED))
        there.append(run["test"][shares[-1]])
    inputs = task.parts["train"][0]
    return {
        "case": f"{name}: {way} on attention weights, AdamW elsewhere",
        "rate": rates[0],
        "rate_elsewhere": rates[1],
        "chosen_on_seed": CHOSEN_ON_SEED,
        "seeds": task.seeds,
        "accuracy": interval([run["test"][0.0] for run in runs]),
        "less_adamw": interval(
            [run["test"][0.0] - peer["test"][0.0] for run, peer in zip(runs, adamw, strict=True)]
        ),
        "removed": interval(shares),
        "removed_less_adamw": interval(
            [
                share - removable(peer["validation"], peer["validation"][0.0] - ALLOWED)
                for share, peer in zip(shares, adamw, strict=True)
            ]
        ),
        "accuracy_there": interval(there),
        "accuracy_without": {
            f"{share:g}": interval([run["test"][share] for run in runs])
            for share in (0.5, 0.9, 1.0)
        },
        "setting": f"{len(inputs)} for training, {task.steps} steps of {BATCH} ({task.source})",
    }


def benchmark(name: str, load: Callable[[], Task]) -> None:
    """Choose rates, train, prune, and write the results of one task."""
    started, cases, adamw, task = time.process_time(), [], None, load()
    _, rest = best_rates(task, "AdamW", [(rate, rate) for rate in REST_RATES])
    for way in TASKS[name]:
        choices = [rest * 3.0**k for k in (-2, -1, 0, 1)] if way == "AdamW" else MIRROR_RATES
        rates = best_rates(task, way, [(rate, rest) for rate in choices])
        runs = [
            curve(train_classifier(task, way, *rates, seed), task) for seed in range(task.seeds)
        ]
        adamw = adamw or runs
        cases.append(case_of(name, way, task, rates, runs, adamw))
        print(cases[-1], f"{time.process_time() - started:.0f} s", flush=True)
    cases[-1]["core_seconds_of_all"] = time.process_time() - started
    write_results(f"torch_pruning_{name}", cases)


def main() -> None:
    """The tasks that are named, or both."""
    torch.set_num_threads(1)
    loads = {"digits": digits, "reviews": short_reviews}
    for name in sys.argv[1:] or loads:
        benchmark(name, loads[name])


if __name__ == "__main__":
    sys.exit(main())
