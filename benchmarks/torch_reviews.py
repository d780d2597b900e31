"""The review encoder in PyTorch: mirror descent on attention weights, AdamW on all else.

A post-norm encoder (two layers, four heads, d = 32, GELU, mean over words) on reviews of at most
96 words. Four ways to train the queries, keys, values and outputs: l_p mirror descent with
p = 1.1, 2 and 3, and AdamW like the rest. Every way starts from the same weights and sees the same
batches, per seed. The learning rate of the attention weights, AdamW's too, is the one of least
validation loss with another seed (`chosen_on_seed`), on a grid of factors 3 that goes on until its
best rate is not its end. Reported per way on test reviews, which no choice saw: accuracy, the
share of attention weights below a hundredth of their matrix's root mean square and the excess
kurtosis (sparsity), and what the Monitor sees at the end, as mean and 95 % interval of Student's t
over seeds (one number per seed). Differences to AdamW are paired by seed.

`python -m benchmarks.torch_reviews` reads IMDB where ATTLAS_DATA has it, else generated reviews.
"""

import math
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np
import torch
from scipy.stats import t as student

from attlas.torch import LpMirrorDescent, Monitor, attention_groups
from attlas.torch.attention_weights import PARTS
from benchmarks.interleave import write_results
from liu2021analyzing.library.reviews.review_words import load_review_words

TRAIN, HELD, WORDS, BATCH, EPOCHS, SEEDS = 10_000, 2500, 96, 50, 3, 4
WIDTH, HEADS, LAYERS, VOCABULARY, RATE = 32, 4, 2, 10_000, 1e-3
MIDDLE = {None: 1e-3, 1.1: 0.5, 2.0: 1.0, 3.0: 0.2}  # of the first three rates
FACTOR, MOST_RATES = 3, 9
CHOSEN_ON_SEED = 1000


class Encoder(torch.nn.Module):
    """Words, positions, encoder layers, and the mean over words."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        self.positions = torch.nn.Parameter(0.02 * torch.randn(WORDS, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, HEADS, 2 * WIDTH, dropout=0.0, activation="gelu", batch_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.readout = torch.nn.Linear(WIDTH, 1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits of a batch."""
        padding = tokens == 0
        hidden = self.layers(self.words(tokens) + self.positions, src_key_padding_mask=padding)
        kept = (~padding)[..., None].float()
        return self.readout((hidden * kept).sum(1) / kept.sum(1))[:, 0]


def reviews() -> tuple[dict[str, torch.Tensor], str]:
    """Tokens and labels of the three parts, and what they are."""
    found = load_review_words(sizes=(TRAIN, HELD, HELD))
    parts = {}
    for name in ("train", "validation", "test"):
        part = getattr(found, name)
        tokens = np.asarray(part.tokens)[:, :WORDS]
        parts[name] = torch.tensor(np.where(tokens < VOCABULARY, tokens, 1)).long()
        parts[f"{name}_labels"] = torch.tensor(np.asarray(part.labels)).float()
    return parts, found.source


def attention_matrices(model: Encoder) -> list[torch.Tensor]:
    """The matrices that mirror descent trains."""
    groups = attention_groups(model, 3.0, parts=PARTS, show=None)[:-1]
    return [w for group in groups for w in group["params"]]


def trained(data: dict[str, torch.Tensor], seed: int, p: float | None, rate: float, path: Path):
    """One run: the numbers of its end on test reviews, and its validation loss."""
    torch.manual_seed(seed)
    model = Encoder()
    order = torch.Generator().manual_seed(seed)
    groups = attention_groups(model, p or 2.0, parts=PARTS, show=None)
    first: torch.optim.Optimizer
    if p is None:
        first = torch.optim.AdamW(attention_matrices(model), rate)
    else:
        first = LpMirrorDescent(groups[:-1], rate, scaling="plain")
    optimizers = [first, torch.optim.AdamW(groups[-1]["params"], RATE)]
    steps = EPOCHS * TRAIN // BATCH
    probe = data["validation"][:100]
    monitor = Monitor(model, probe, path, every=steps // 4, rows=probe != 0)
    monitor(0)
    step = 0
    for _ in range(EPOCHS):
        for rows in torch.randperm(TRAIN, generator=order).split(BATCH):
            model.zero_grad()
            logits = model(data["train"][rows])
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                logits, data["train_labels"][rows]
            )
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            step += 1
            monitor(step)
    return {**numbers(model, data), **attention_numbers(monitor.measure(step))}


@torch.no_grad()
def numbers(model: Encoder, data: dict[str, torch.Tensor]) -> dict[str, float]:
    """Both losses, and how sparse the attention weights are."""
    model.eval()
    logits, losses = {}, {}
    for part in ("validation", "test"):
        logits[part] = torch.cat([model(rows) for rows in data[part].split(250)])
        losses[part] = torch.nn.functional.binary_cross_entropy_with_logits(
            logits[part], data[f"{part}_labels"]
        ).item()
    matrices = attention_matrices(model)
    small = [(w.abs() < 0.01 * w.square().mean().sqrt()).float().mean() for w in matrices]
    fourth = [(w**4).mean() / w.square().mean() ** 2 - 3 for w in matrices]
    right = (logits["test"] > 0) == (data["test_labels"] > 0.5)
    return {
        "accuracy": right.float().mean().item(),
        "loss": losses["test"],
        "validation_loss": losses["validation"],
        "share_of_small_weights": torch.stack(small).mean().item(),
        "excess_kurtosis": torch.stack(fourth).mean().item(),
    }


def attention_numbers(line: dict[str, Any]) -> dict[str, float]:
    """The Monitor's statistics, mean over heads."""
    names = ("entropy", "largest_logit", "sink", "gap", "margin")
    return {name: float(np.mean(np.array(line[name], float))) for name in names}


def interval(values: list[float]) -> dict[str, float]:
    """Mean and the half width of its 95 % interval."""
    found = np.array(values)
    half = student.ppf(0.975, len(found) - 1) * found.std(ddof=1) / math.sqrt(len(found))
    return {"mean": float(found.mean()), "half_width": float(half)}


def chosen_rate(data: dict[str, torch.Tensor], p: float | None, path: Path):
    """The rate of least validation loss, and all that were tried with their losses."""
    tried: dict[float, float] = {}
    ahead = [MIDDLE[p] / FACTOR, MIDDLE[p], MIDDLE[p] * FACTOR]
    while ahead and len(tried) < MOST_RATES:
        for rate in ahead:
            loss = trained(data, CHOSEN_ON_SEED, p, rate, path)["validation_loss"]
            tried[rate] = loss if math.isfinite(loss) else math.inf
        best = min(tried, key=lambda each: tried[each])
        ends = {min(tried): best / FACTOR, max(tried): best * FACTOR}
        ahead = [ends[best]] if best in ends else []
    return best, tried


def main() -> None:
    """Choose rates, train, and write the results."""
    torch.set_num_threads(1)
    data, source = reviews()
    started, cases, runs = time.process_time(), [], {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.monitor.jsonl"
        for p in MIDDLE:
            rate, tried = chosen_rate(data, p, path)
            name = f"l_p, p = {p:g}" if p else "AdamW"
            runs[name] = [trained(data, seed, p, rate, path) for seed in range(SEEDS)]
            case = {
                "case": f"{name} on attention weights, AdamW elsewhere",
                "rate": rate,
                "rates_tried": {f"{each:g}": loss for each, loss in tried.items()},
                "chosen_on_seed": CHOSEN_ON_SEED,
                "seeds": SEEDS,
                **{key: interval([run[key] for run in runs[name]]) for key in runs[name][0]},
                "less_adamw": {
                    key: interval(
                        [a[key] - b[key] for a, b in zip(runs[name], runs["AdamW"], strict=True)]
                    )
                    for key in runs[name][0]
                },
                "setting": f"{TRAIN} reviews ({source}), {HELD} for validation, {HELD} for test, "
                f"{WORDS} words, {EPOCHS} epochs of batches of {BATCH}, d = {WIDTH}, "
                f"{HEADS} heads, {LAYERS} layers, float32",
            }
            print(name, rate, {key: case[key] for key in runs[name][0]}, flush=True)
            cases.append(case)
    cases[-1]["core_seconds_of_all"] = time.process_time() - started
    write_results("torch_reviews", cases)


if __name__ == "__main__":
    sys.exit(main())
