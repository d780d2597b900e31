r"""Does multi-head attention find the telling rows of real digits, and do more heads help?

Gradient descent on handwritten digits cut into rows, as two digits or as odd against even ones:
losses and accuracies for several numbers of heads, the margins of the theory on a subsample, and
where the attention goes, beside how much each row alone tells about the class.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import stats

from attlas.core.solution import Solution
from attlas.data.digit_pairs import DigitPairs, load_digit_pairs
from attlas.data.digit_tokens import row_information
from attlas.data.digits import DIGITS
from attlas.data.mnist import MNIST
from attlas.data.sources import is_present
from attlas.data.token_sequences import TokenSequences
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.measures.attention.margins import decoder_margin, normalised_margin
from attlas.models.attention.multi_head import MultiHead, make_multi_head
from attlas.optim.one_step import one_step_initialisation
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.solvers.kernel_svm import kernel_svm
from attlas.solvers.linear_margin import linear_margin
from attlas.training.gradient_descent import gradient_descent_ensemble
from attlas.training.risk_gradient import model_outputs
from attlas.training.trajectory import log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

STARTS = ("zero", "one step", "Gaussian")
COLOURS = dict(zip(STARTS, ("#0072b2", "#d55e00", "#009e73"), strict=True))
MARKERS = dict(zip(STARTS, "os^", strict=True))
SIZES = dict(zip(STARTS, (8, 5, 3), strict=True))
"""Points of the starts often coincide: nested sizes keep all of them visible."""
HEAD_COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
TASKS = {"3 or 8": (3, 8), "odd or even": None}
RADIUS = 2.0**0.5
"""The norm of P3 and of section 7; margins of unit vectors are multiplied by it."""
RECORDS = 16
NOTE = (
    "Tokens are the rows of an image, all divided by one number so that the longest has norm R. "
    "No token is marked as relevant: attention is compared with the row information, Fisher's "
    "discriminability of each row alone on the training images. Trained in float32; margins in "
    "float64, on the first images of the training set: NTK margins and margins on the sphere for "
    "parameters of norm sqrt(2), decoder and linear margins for decoders of norm 1. The one-step "
    "start reads images that are not trained on; Gaussian: independent entries in U and W. "
    "Effective rows: exp of a query's attention entropy. MNIST at paper scale where its files are "
    "in the data folder."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each task and number of heads (and seed, at paper scale)."""
    settings = {"source": "digits", "tokens": "rows", "R": 2.0, "rate": 1.0, "deviation": 0.3}
    settings |= {
        Scale.SMOKE: {"n": 20, "first": 20, "steps": 20, "subsample": 10},
        Scale.QUICK: {"n": 80, "first": 80, "steps": 600, "subsample": 40},
        Scale.PAPER: {"n": 100, "first": 60, "steps": 30_000, "subsample": 100},
    }[scale]
    heads = {Scale.SMOKE: (1, 2), Scale.QUICK: (1, 4, 16), Scale.PAPER: (1, 4, 16, 64)}[scale]
    tasks = ("3 or 8",) if scale is Scale.SMOKE else tuple(TASKS)
    data_hash = DIGITS.data_hash
    if scale is Scale.PAPER and is_present(MNIST):
        settings |= {"source": "mnist", "n": 1000, "first": 1000, "subsample": 200, "steps": 5000}
        data_hash = MNIST.data_hash
    return tuple(
        Cell({**settings, "task": task, "H": H}, seed, data_hash=data_hash)
        for task in tasks
        for H in heads
        for seed in range(5 if scale is Scale.PAPER else 1)
    )


def _starts(cell: Cell, X: Array, y: Array) -> MultiHead:
    """Zero, one randomised step on the given images, independent Gaussian entries: stacked."""
    s = cell.settings
    zero = make_multi_head(s["H"], X.shape[1], X.shape[2], dtype=X.dtype)
    one_step = one_step_initialisation(jax.random.key(cell.seed), X, y, s["H"])
    rng = np.random.default_rng([cell.seed, 1])
    U, W = (
        jnp.asarray(s["deviation"] * rng.normal(size=a.shape), X.dtype) for a in (zero.U, zero.W)
    )
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), zero, one_step, MultiHead(U, W))


@jax.jit
def _seen(path: MultiHead, X: Array) -> tuple[Array, Array, Array]:
    """Output, mass on each row and effective number of rows: (start, record, image, ...)."""

    def one(model: MultiHead) -> tuple[Array, Array, Array]:
        attention = jax.vmap(model.attention)(X)
        entropy = jnp.sum(jax.scipy.special.entr(attention), axis=-1)
        rows = jnp.mean(jnp.exp(entropy), axis=(1, 2))
        return model_outputs(model, X), jnp.mean(attention, axis=(1, 2)), rows

    return jax.vmap(lambda models: jax.lax.map(one, models))(path)


def _scores(outputs: np.ndarray, y: Array) -> tuple[np.ndarray, np.ndarray]:
    """Logistic loss and accuracy, by start and record."""
    signed = np.asarray(y, np.float64) * outputs
    return np.logaddexp(0, -signed).mean(axis=-1), (signed > 0).mean(axis=-1)


@jax.jit
def _margins(models: MultiHead, X: Array, y: Array) -> tuple[Array, Array]:
    """Margin on the sphere and decoder margin, by start."""
    return jax.vmap(lambda model: (normalised_margin(model, X, y), decoder_margin(model, X, y)))(
        models
    )


def _known(found: Solution) -> float:
    """The margin for norm 1; 0 where nothing separates, NaN without a certificate."""
    if bool(found.converged):
        return float(found.value)
    return 0.0 if float(found.certificate["lower"]) == 0 else np.nan


def _measured(cell: Cell, data: DigitPairs, path: MultiHead) -> dict[str, object]:
    """Margins on the subsample in float64: of the start's NTK, linear, and reached."""
    size = cell.settings["subsample"]
    X, y = (jnp.asarray(a[:size], jnp.float64) for a in (data.X_train, data.y_train))
    models = jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), path)
    last = jax.tree.map(lambda a: a[:, -1], models)
    sphere, decoder = _margins(last, X, y)
    firsts = [jax.tree.map(lambda a, k=k: a[k, 0], models) for k in range(len(STARTS))]
    return {
        "sphere": sphere,
        "decoder": decoder,
        "ntk": [RADIUS * _known(kernel_svm(ntk_gram(model, X), y)) for model in firsts],
        "linear": _known(linear_margin(X, y)),
    }


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train from every start and measure losses, margins and attention."""
    s = cell.settings
    both = load_digit_pairs(
        TASKS[s["task"]], s["tokens"], R=s["R"], count=s["n"] + s["first"], source=s["source"],
        seed=cell.seed, dtype=jnp.float32,
    )  # fmt: skip
    n = s["n"]
    data = DigitPairs(both.X_train[:n], both.y_train[:n], both.X_test, both.y_test)
    path = gradient_descent_ensemble(
        _starts(cell, both.X_train[n:], both.y_train[n:]),
        data.X_train,
        data.y_train,
        step_size=s["rate"],
        steps=s["steps"],
        record_at=log_spaced(s["steps"], RECORDS),
    )
    everything = jnp.concatenate([data.X_train, data.X_test])
    outputs, mass, rows = (np.asarray(a, np.float64) for a in _seen(path.params, everything))
    test_loss, test_accuracy = _scores(outputs[..., n:], data.y_test)
    _, accuracy = _scores(outputs[..., :n], data.y_train)
    tokens = np.asarray(data.X_train, np.float64)
    labels = (np.asarray(data.y_train) > 0).astype(float)
    found = {
        "step": path.steps,
        "loss": path.loss,
        "accuracy": accuracy,
        "test_loss": test_loss,
        "test_accuracy": test_accuracy,
        "mass": mass[..., :n, :].mean(axis=-2),
        "effective_rows": rows[..., :n].mean(axis=-1),
        "information": row_information(
            TokenSequences(tokens, np.ones(tokens.shape[:2], bool), labels)
        ),
        **_measured(cell, data, path.params),
    }
    return {name: np.asarray(value) for name, value in found.items()}


def _by_task(records: Sequence[Record]) -> dict[str, dict[int, list[Record]]]:
    """Records of each task, by number of heads."""
    found: dict[str, dict[int, list[Record]]] = {}
    for record in records:
        s = record.cell.settings
        found.setdefault(s["task"], {}).setdefault(s["H"], []).append(record)
    return {task: dict(sorted(heads.items())) for task, heads in found.items()}


def _mean(records: Sequence[Record], name: str) -> np.ndarray:
    """An array averaged over the seeds."""
    return np.asarray(np.mean([r.arrays[name] for r in records], axis=0))


def _rank_correlation(records: Sequence[Record], start: int) -> float:
    """Spearman's correlation of final attention mass and row information, mean over seeds."""
    ranks = (
        [stats.rankdata(r.arrays["mass"][start, -1]), stats.rankdata(r.arrays["information"])]
        for r in records
    )
    return float(np.mean([np.corrcoef(pair)[0, 1] for pair in ranks]))


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """Losses, accuracies, margins and attention at the last step, means over the seeds."""
    rows = []
    for task, heads in _by_task(records).items():
        for H, group in heads.items():
            for k, start in enumerate(STARTS):
                row = {"task": task, "H": H, "start": start, "seeds": len(group)}
                row["steps"] = int(group[0].arrays["step"][-1])
                for name in ("loss", "test_loss", "accuracy", "test_accuracy"):
                    row[name.replace("_", " ")] = float(_mean(group, name)[k, -1])
                row["NTK margin (0: not separable)"] = float(_mean(group, "ntk")[k])
                row["linear margin"] = float(_mean(group, "linear"))
                row["decoder margin reached"] = float(_mean(group, "decoder")[k])
                row["margin reached on the sphere"] = float(_mean(group, "sphere")[k])
                row["effective rows"] = float(_mean(group, "effective_rows")[k, -1])
                row["mass on the most attended row"] = float(_mean(group, "mass")[k, -1].max())
                row["rank correlation with information"] = _rank_correlation(group, k)
                rows.append(row)
    import pandas as pd

    return pd.DataFrame(rows)


def _loss_panel(tasks: Mapping[str, Mapping[int, list[Record]]]) -> Panel:
    """Training and test loss against the step from zero, for every number of heads."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator

    figure, axes = plt.subplots(
        1, len(tasks), figsize=(2 + 3.6 * len(tasks), 3.6), layout="constrained", squeeze=False
    )
    said = []
    for axis, (task, heads) in zip(axes[0], tasks.items(), strict=True):
        for (H, group), colour in zip(heads.items(), HEAD_COLOURS, strict=False):
            step = group[0].arrays["step"]
            axis.loglog(step, _mean(group, "test_loss")[0], "o-", color=colour, ms=3, lw=1.2,
                        label=f"test, H = {H}")  # fmt: skip
            axis.loglog(step, _mean(group, "loss")[0], "--", color=colour, lw=1.2,
                        label=f"training, H = {H}")  # fmt: skip
        axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.set_title(task, fontsize=10)
        axis.set_xlabel("step $k$")
        ends = [f"{_mean(g, 'test_loss')[0, -1]:.3f} ({_mean(g, 'test_accuracy')[0, -1]:.1%})"
                for g in heads.values()]  # fmt: skip
        said.append(f"on '{task}' {', '.join(ends)} with {', '.join(map(str, heads))} heads")
    axes[0, 0].set_ylabel("logistic loss, from zero")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, fontsize=8,
                  loc="outside right center")  # fmt: skip
    steps = int(next(iter(next(iter(tasks.values())).values()))[0].arrays["step"][-1])
    caption = (
        f"Do more heads help on real digits? After {steps} steps of one size the test loss (and "
        f"accuracy) is {'; '.join(said)}."
    )
    return Panel("Losses on digits", caption, figure)


def _attention_panel(tasks: Mapping[str, Mapping[int, list[Record]]]) -> Panel:
    """Mass on each row from every start with the fewest heads, beside the row information."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(tasks), figsize=(2.2 + 3.6 * len(tasks), 3.6), layout="constrained",
        squeeze=False, sharey=True,
    )  # fmt: skip
    said = []
    for axis, (task, heads) in zip(axes[0], tasks.items(), strict=True):
        H, group = next(iter(heads.items()))
        information = _mean(group, "information")
        rows = np.arange(1, len(information) + 1)
        axis.bar(
            rows, information / information.sum(), color="0.8", label="row information (share)"
        )
        axis.axhline(1 / len(rows), color="0.4", ls=":", lw=1.2, label="uniform attention")
        for k, start in enumerate(STARTS):
            axis.plot(rows, _mean(group, "mass")[k, -1], MARKERS[start] + "-", color=COLOURS[start],
                      ms=SIZES[start], lw=1.2, label=f"attention, from {start}")  # fmt: skip
        best = int(np.argmax(information))
        hits = [int(np.argmax(_mean(g, "mass")[0, -1])) == best for g in heads.values()]
        said.append(f"'{task}': row {best + 1} tells most and is attended most, from zero, with "
                    f"{sum(hits)} of {len(hits)} numbers of heads")  # fmt: skip
        axis.set_title(f"{task}, H = {H}", fontsize=10)
        axis.set_xlabel("row of the image, from the top")
        for count, found in heads.items():
            correlations = ", ".join(f"{_rank_correlation(found, k):.2f}" for k in range(3))
            rows_used = _mean(found, "effective_rows")[0, -1]
            said.append(f"H = {count}: {correlations} ({rows_used:.1f} rows)")
    axes[0, 0].set_ylabel("mean attention at the last step")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, fontsize=8,
                  loc="outside right center")  # fmt: skip
    caption = (
        "Does the attention turn to the rows that tell the classes apart? With the rank "
        f"correlation of attention and row information from {', '.join(STARTS)}, and the "
        f"effective rows a query attends to from zero: {'; '.join(said)}."
    )
    return Panel("Where the attention goes", caption, figure)


def _margin_panel(tasks: Mapping[str, Mapping[int, list[Record]]]) -> Panel:
    """Margins on the subsample against the number of heads: decoders above, NTK below."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        2, len(tasks), figsize=(2.2 + 3.4 * len(tasks), 5), sharex="col", layout="constrained",
        squeeze=False,
    )  # fmt: skip
    said = []
    for (top, bottom), (task, heads) in zip(axes.T, tasks.items(), strict=True):
        counts = list(heads)
        reached, tangent, linear = (
            np.array([_mean(group, name) for group in heads.values()])
            for name in ("decoder", "ntk", "linear")
        )
        for axis, values in ((top, reached), (bottom, tangent)):
            for k, start in enumerate(STARTS):
                axis.plot(counts, values[:, k], MARKERS[start] + "-", color=COLOURS[start],
                          ms=SIZES[start], lw=1.2, label=f"from {start}")  # fmt: skip
            axis.axhline(0, color="0.4", ls=":", lw=1)
        top.plot(counts, linear, color="0.25", ls="--", lw=1.2, label="linear margin")
        bottom.set_xscale("log", base=2)
        bottom.set_xticks(counts, [str(H) for H in counts])
        top.set_title(task, fontsize=10)
        bottom.set_xlabel("heads H")
        said.append(_margin_sentence(task, reached, tangent, linear))
    axes[0, 0].set_ylabel("reached, decoders\nof norm 1")
    axes[1, 0].set_ylabel("NTK margin of the\nstart, norm $\\sqrt{2}$")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, fontsize=8,
                  loc="outside right center")  # fmt: skip
    caption = f"Which margins do real digits have, and which are reached? {' '.join(said)}"
    return Panel("Margins on digits", caption, figure)


def _margin_sentence(
    task: str, reached: np.ndarray, tangent: np.ndarray, linear: np.ndarray
) -> str:
    """How many starts separate, by their NTK and after training."""
    separable = ", ".join(
        f"{int((tangent[:, k] > 0).sum())} from {start}" for k, start in enumerate(STARTS)
    )
    return (
        f"On '{task}', with {len(linear)} numbers of heads, the NTK of the start separates the "
        f"subsample {separable}; training separates it in {int((reached > 0).sum())} of "
        f"{reached.size} runs and passes the linear margin in "
        f"{int((reached > linear[:, None]).sum())}."
    )


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Losses, attention by row, and margins."""
    tasks = _by_task(records)
    return _loss_panel(tasks), _attention_panel(tasks), _margin_panel(tasks)


EXPERIMENT = Experiment(
    name="digits",
    paper="deora2023optimization",
    title="Multi-head attention on real digits",
    question="Does attention find the telling rows of real digits, and do more heads help?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "step": ("step",),
        **dict.fromkeys(
            ("loss", "accuracy", "test_loss", "test_accuracy", "effective_rows"),
            ("start", "step"),
        ),
        "mass": ("start", "step", "row"),
        "information": ("row",),
        "sphere": ("start",),
        "decoder": ("start",),
        "ntk": ("start",),
        "linear": (),
    },
    note=NOTE,
)
