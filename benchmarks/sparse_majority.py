"""Sparse-majority training, five seeds, beside PyTorch: its own layers, and the same algebra.

The released settings (SGD with momentum, batches of 128 of 300 sequences, d = 64, two heads),
float32, with heads of width 32, since nn.MultiheadAttention has no wider ones: its dense work is
then half of the paper's, ours is the same. Both sides train on the same batches; nn's layers train
one seed for one epoch and are charged for all. The strongest peer is the algebra of attlas in
PyTorch, the table of positions and the joint readout with an axis of seeds, for one epoch of all
seeds, in eager mode and compiled: algebra that anyone may copy. Times are processor time.
`difference` is the largest relative difference of training loss, validation loss and sum of
absolute weights after that epoch; it must stay below one rounding per token, or the benchmark
fails.
"""

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import time  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

from attlas.data.sparse_majority import MajorityDesign, make_sparse_majorities  # noqa: E402
from benchmarks.torch_closed_forms import MajorityEnsemble  # noqa: E402
from trauger2023sequence.library.models.majority_attention import make_majority_attention  # noqa: E402
from trauger2023sequence.library.sparse_majority.training import (  # noqa: E402
    RELEASED,
    epoch_order,
    train_majority,
)

SEEDS, HEADS, HEAD_WIDTH, D = 5, 2, 32, 64
SETTINGS = RELEASED._replace(stop_accuracy=2.0)
KEYS = jax.random.split(jax.random.key(0), SEEDS)


class Peer(torch.nn.Module):
    """The plain model from PyTorch's own layers, with our start."""

    def __init__(self, model, cls_only: bool) -> None:
        super().__init__()
        self.cls_only = cls_only
        self.attention = torch.nn.MultiheadAttention(D, HEADS, batch_first=True)
        self.dense, self.readout = torch.nn.Linear(D, D), torch.nn.Linear(D, 2)
        inward = (model.query, model.key, model.value)
        rows = [np.asarray(kernel).reshape(D, D).T for kernel, _ in inward]
        start = {
            "attention.in_proj_weight": np.concatenate(rows),
            "attention.in_proj_bias": np.concatenate([np.ravel(b) for _, b in inward]),
            "attention.out_proj.weight": np.asarray(model.output[0]).reshape(D, D).T,
            "attention.out_proj.bias": np.asarray(model.output[1]),
        }
        for name, (kernel, bias) in {"dense": model.dense, "readout": model.readout}.items():
            start |= {f"{name}.weight": np.asarray(kernel).T, f"{name}.bias": np.asarray(bias)}
        self.load_state_dict({name: torch.tensor(a) for name, a in start.items()})

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        """Logits of a batch of sequences."""
        queries = X[:, -1:] if self.cls_only else X
        mixed = self.attention(queries, X, X, need_weights=False)[0]
        return self.readout(self.dense(torch.relu(mixed))[:, -1])


def embedded(data, bits, labels) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and one-hot labels of the first seed."""
    own = jax.tree.map(lambda a: a[0], data.embedding)
    X = np.asarray(jax.jit(jax.vmap(own))(bits[0]))
    classes = torch.tensor(np.asarray(labels[0])).long()
    return torch.tensor(X), torch.nn.functional.one_hot(classes, 2)


class Problem:
    """Five draws of one length and their models."""

    def __init__(self, T: int, validation: int, epochs: int) -> None:
        self.epochs = epochs
        self.data = make_sparse_majorities(KEYS, T, MajorityDesign(validation=validation))
        starts = [make_majority_attention(key, D, HEADS, HEAD_WIDTH) for key in KEYS]
        self.models = jax.tree.map(lambda *parts: jnp.stack(parts), *starts)
        self.start = starts[0]
        data = self.data
        self.train = embedded(data, data.bits, data.labels)
        self.held = embedded(data, data.validation_bits, data.validation_labels)
        count = self.train[0].shape[0]
        order = epoch_order(jax.random.fold_in(KEYS[0], 0), count)
        self.batches = torch.tensor(np.asarray(order)).long().split(SETTINGS.batch)
        orders = [np.asarray(epoch_order(jax.random.fold_in(key, 0), count)) for key in KEYS]
        self.joint = torch.tensor(np.stack(orders)).long().split(SETTINGS.batch, dim=1)
        self.ensembles = {
            name: MajorityEnsemble(self.models, data, SETTINGS, compiled=compiled)
            for name, compiled in (("eager", False), ("compiled", True))
        }

    def ours(self) -> np.ndarray:
        """Row of the first seed after its first epoch, of a training of all seeds."""
        run = train_majority(self.models, self.data, KEYS, self.epochs, SETTINGS, chunk=self.epochs)
        return run.history[0, 0]

    def ensemble(self, name: str) -> np.ndarray:
        """Row of the first seed after one epoch of all seeds, by the same algebra."""
        return self.ensembles[name].epoch(self.joint)[0].astype(float)

    def peer(self, cls_only: bool) -> np.ndarray:
        """One epoch of one seed, in the usual eager loop."""
        net = Peer(self.start, cls_only)
        loss_of = torch.nn.functional.binary_cross_entropy_with_logits
        descent = torch.optim.SGD(net.parameters(), lr=SETTINGS.rate * SETTINGS.decay, momentum=0.9)
        total, hits, (X, y) = 0.0, 0, self.train
        for pick in self.batches:
            descent.zero_grad()
            logits = net(X[pick])
            loss = loss_of(logits, y[pick].float())
            loss.backward()
            descent.step()
            total += loss.item() * len(pick)
            hits += int((logits.argmax(1) == y[pick].argmax(1)).sum())
        with torch.no_grad():
            parts = zip(*(part.split(500) for part in self.held), strict=True)
            found = torch.cat([net(inputs) for inputs, _ in parts])
            held = loss_of(found, self.held[1].float()).item()
            right = (found.argmax(1) == self.held[1].argmax(1)).float().mean().item()
            weight = sum(p.abs().sum().item() for p in net.parameters())
        return np.array([total / len(X), hits / len(X), held, right, weight])


def difference(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Largest relative difference of the two losses and the weights."""
    pick = [0, 2, 4]
    return float(np.max(np.abs(mine - theirs)[pick] / np.abs(theirs[pick])))


def measure(T: int, validation: int, epochs: int, goal: float, rounds: int) -> dict:
    """One length; a validation set of one sequence leaves the steps alone."""
    problem = Problem(T, validation, epochs)
    names = {"PyTorch eager": False, "PyTorch eager, [CLS] query": True}
    peers = {name: lambda flag=flag: problem.peer(flag) for name, flag in names.items()}
    weights = dict.fromkeys(names, 1 / (SEEDS * epochs))
    for form in problem.ensembles:
        peers[f"the same algebra in PyTorch, {form}"] = lambda form=form: problem.ensemble(form)
        weights[f"the same algebra in PyTorch, {form}"] = 1 / epochs
    for work in peers.values():
        work()
    case = compare(
        f"{SEEDS} seeds, T = {T}, {epochs} epochs of 3 steps, validation on {validation}, float32",
        problem.ours,
        peers,
        agree=difference,
        rounds=rounds,
        weights=weights,
        goal=dict.fromkeys(peers, goal),
        clock=time.process_time,
    )
    tolerance = T * float(np.finfo(np.float32).eps)
    for peer, row in case["peers"].items():
        if row.get("difference", 0.0) > tolerance:
            raise AssertionError(f"{peer} is {row['difference']:.1e} away: over {tolerance:.1e}")
    return {
        **case,
        "tolerance": tolerance,
        "steps_per_second": 3 * SEEDS * epochs / case["seconds"],
    }


def main() -> None:
    """Measure and write `results/sparse_majority.json`."""
    torch.set_num_threads(1)
    cases: list[dict] = []
    for settings in (
        (20, 1, 200, 1.5, 3),
        (100, 1, 100, 1.5, 3),
        (200, 1, 60, 1.5, 3),
        (100, 10_000, 20, 1.5, 3),
    ):
        cases.append(measure(*settings))
        # Case by case: a run that is cut short keeps what it measured.
        write_results("sparse_majority", cases)


if __name__ == "__main__":
    main()
