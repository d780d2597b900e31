r"""Does multi-head attention find the informative rows of real digits, and do more heads help?

Gradient descent on handwritten digits cut into rows, as two digits or as odd against even ones:
losses and accuracies for several numbers of heads, the margins of the theory on a subsample, and
where the attention goes, beside how much each row alone separates the classes.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.bounds.optimisation.deora2023_initialisation import SEPARATOR_NORM
from attlas.data.digit_pairs import load_digit_pairs
from attlas.data.digit_tokens import row_information
from attlas.data.digits import DIGITS
from attlas.data.mnist import MNIST
from attlas.data.sources import is_present
from attlas.data.token_sequences import TokenSequences
from attlas.kernels.multi_head_ntk import ntk_gram
from attlas.measures.attention.attention_profile import attention_profile
from attlas.measures.attention.margins import decoder_margin, normalised_margin
from attlas.measures.statistics.logistic_scores import logistic_scores
from attlas.measures.statistics.rank_correlation import rank_correlation
from attlas.models.attention.multi_head import MultiHead, make_multi_head
from attlas.optim.attention_starts import gaussian_heads
from attlas.optim.one_step import one_step_initialisation
from attlas.panels.lines import Lines
from attlas.panels.panel import Panel
from attlas.panels.plot import Plot
from attlas.panels.points import Points
from attlas.panels.reference import Reference
from attlas.panels.summary import mean_only, only
from attlas.panels.table import Column, Table
from attlas.runs.experiment import Experiment
from attlas.runs.grid import Grid
from attlas.runs.settings import Settings
from attlas.solvers.kernel_svm import kernel_svm
from attlas.solvers.known_margin import known_margin
from attlas.solvers.linear_margin import linear_margin
from attlas.training.gradient_descent import gradient_descent_ensemble
from attlas.training.trajectory import log_spaced

STARTS = ("zero", "one step", "Gaussian")
TASKS = {"3 or 8": (3, 8), "odd or even": None}
RECORDS = 16
NOTE = (
    "Tokens are the rows of an image, all divided by one number so that the longest has norm R. "
    "No token is marked as relevant: attention is compared with the row information, Fisher's "
    "discriminability of each row alone on the training images. Trained in float32; margins in "
    "float64, on the first images of the training set: NTK margins and margins on the sphere for "
    "parameters of norm $\\sqrt 2$, decoder and linear margins for decoders of norm 1. The "
    "one-step start reads images that are not trained on; Gaussian: independent entries in U and "
    "W. Effective rows: exp of a query's attention entropy. MNIST at paper scale where its files "
    "are in the data folder."
)
EMBEDDED = {"n": 100, "first": 60, "steps": 30_000, "subsample": 100}
IMAGES = {"source": "mnist", "n": 1000, "first": 1000, "steps": 5000, "subsample": 200}
GRID = Grid(
    each={"task": list(TASKS), "H": [1, 4, 16, 64]},
    fixed={
        "source": "digits", "tokens": "rows", "R": 2.0, "rate": 1.0, "deviation": 0.3,
        "members": 1, "block": 1,
    },
    smoke={
        "task": ["3 or 8"], "H": [1, 2], "n": 20, "first": 20, "steps": 20, "subsample": 10,
    },
    quick={"H": [1, 4, 16], "n": 80, "first": 80, "steps": 600, "subsample": 40},
    paper=lambda: (IMAGES if is_present(MNIST) else EMBEDDED) | {"members": 5},
    data=lambda s: MNIST if s.source == "mnist" else DIGITS,
    choices={"source": ("digits", "mnist"), "tokens": ("rows", "patches")},
)  # fmt: skip


def starts(s: Settings, key: Array, X: Array, y: Array) -> MultiHead:
    """Zero, one randomised step on the given images, independent Gaussian entries: stacked."""
    zero = make_multi_head(s.H, X.shape[1], X.shape[2], dtype=X.dtype)
    gaussian = gaussian_heads(zero, s.deviation, [s.seed, 1])
    each = zero, one_step_initialisation(key, X, y, s.H), gaussian
    return jax.tree.map(lambda *leaves: jnp.stack([a.astype(X.dtype) for a in leaves]), *each)


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train from every start and measure losses, margins and attention."""
    both = load_digit_pairs(
        TASKS[s.task], s.tokens, R=s.R, count=s.n + s.first, source=s.source, seed=s.seed,
        dtype=jnp.float32,
    )  # fmt: skip
    n, schedule = s.n, log_spaced(s.steps, RECORDS)
    X, y = both.X_train[:n], both.y_train[:n]
    path = gradient_descent_ensemble(
        starts(s, key, both.X_train[n:], both.y_train[n:]), X, y, step_size=s.rate, steps=s.steps,
        record_at=schedule,
    )  # fmt: skip
    profile = attention_profile(path.params, jnp.concatenate([X, both.X_test]))
    mass, rows = (np.asarray(a[:, :, :n], np.float64) for a in profile[1:])
    test = logistic_scores(profile.outputs[..., n:], both.y_test)
    accuracy = logistic_scores(profile.outputs[..., :n], y).accuracy
    images = TokenSequences(
        np.asarray(X, float), np.ones(X.shape[:2], bool), np.asarray(y > 0, float)
    )
    information = row_information(images)
    # Margins on the subsample in float64.
    part, labels = (jnp.asarray(a[: s.subsample], jnp.float64) for a in (X, y))
    models = jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), path.params)
    first, last = (jax.tree.map(lambda a, k=k: a[:, k], models) for k in (0, -1))
    each = [jax.tree.map(lambda a, k=k: a[k], first) for k in range(len(STARTS))]
    ntk = [known_margin(kernel_svm(ntk_gram(start, part), labels)) for start in each]
    reached = {
        name: jax.jit(jax.vmap(margin, (0, None, None)))(last, part, labels)
        for name, margin in (("sphere", normalised_margin), ("decoder", decoder_margin))
    }
    along, attended = ("set", "start", "step"), mass.mean(axis=2)
    return xr.Dataset(
        {
            "loss": (along, np.stack([path.loss, test.loss])),
            "accuracy": (along, np.stack([accuracy, test.accuracy])),
            "mass": (("start", "step", "row"), attended),
            "effective_rows": (along[1:], rows.mean(axis=2)),
            "information": ("row", information),
            "correlation": ("start", rank_correlation(attended[:, -1], information)),
            "ntk": ("start", SEPARATOR_NORM * np.array(ntk)),
            "linear": known_margin(linear_margin(part, labels)),
        }
        | {name: ("start", margin) for name, margin in reached.items()},
        {"set": ["training", "test"], "start": list(STARTS), "step": list(schedule),
         "row": 1 + np.arange(len(information))},
    )  # fmt: skip


def last(name: str, **labels: str) -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity after the last step."""
    return lambda data: data[name].isel(step=-1).sel(labels)


def losses_caption(data: xr.Dataset) -> str:
    """Test loss and accuracy by number of heads."""
    ends = data[["loss", "accuracy"]].sel(set="test", start="zero").isel(step=-1).mean("member")
    told = []
    for task in ends.task.values:
        own = ends.sel(task=task).dropna("H")
        pairs = zip(own.loss.values, own.accuracy.values, strict=True)
        shown = ", ".join(f"{loss:.3f} ({accuracy:.1%})" for loss, accuracy in pairs)
        told.append(f"on '{task}' {shown} with {', '.join(map(str, own.H.values))} heads")
    return (
        f"Do more heads help on real digits? After {data.attrs['steps']} steps of one size the "
        f"test loss (and accuracy) is {'; '.join(told)}."
    )


def attention_caption(data: xr.Dataset) -> str:
    """Whether the most informative row is the most attended one."""
    ends = data.isel(step=-1)[["mass", "information", "correlation", "effective_rows"]]
    told = []
    for task in ends.task.values:
        own = ends.sel(task=task).mean("member").dropna("H", how="all")
        best = own.information.mean("H").idxmax("row")
        hits = own.mass.sel(start="zero").idxmax("row") == best
        told.append(
            f"'{task}': row {int(best)} is the most informative, and is attended most, from zero, "
            f"with {int(hits.sum())} of {hits.size} numbers of heads"
        )
        for H in own.H.values:
            ranks = ", ".join(f"{rank:.2f}" for rank in own.correlation.sel(H=H).values)
            rows = float(own.effective_rows.sel(H=H, start="zero"))
            told.append(f"$H = {H}$: {ranks} ({rows:.1f} rows)")
    return (
        "Does the attention turn to the rows that separate the classes? With the rank "
        f"correlation of attention and row information from {', '.join(STARTS)}, and the "
        f"effective rows that a query attends to from zero: {'; '.join(told)}."
    )


def margins_caption(data: xr.Dataset) -> str:
    """How many starts separate the subsample, by their NTK and after training."""
    told = []
    for task in data.task.values:
        own = (
            data.sel(task=task)[["ntk", "decoder", "linear"]].mean("member").dropna("H", how="all")
        )
        counts = (own.ntk > 0).sum("H")
        separable = ", ".join(f"{int(counts.sel(start=start))} from {start}" for start in STARTS)
        told.append(
            f"On '{task}', with {own.sizes['H']} numbers of heads, the NTK of the start separates "
            f"the subsample {separable}; training separates it in {int((own.decoder > 0).sum())} "
            f"of {own.decoder.size} runs and exceeds the linear margin in "
            f"{int((own.decoder > own.linear).sum())}."
        )
    return f"Which margins do real digits have, and which are reached? {' '.join(told)}"


def few_heads(name: str) -> Callable[[xr.Dataset], xr.DataArray]:
    """A quantity after the last step with the fewest heads."""
    return lambda data: data[name].isel(H=0).isel(step=-1, missing_dims="ignore")


def information(data: xr.Dataset) -> xr.DataArray:
    """Row information as a share of the sum over rows."""
    own = few_heads("information")(data)
    return own / own.sum("row").where(own.notnull().any("row"))


def margins(name: str, label: str) -> Panel:
    """Margins on the subsample by number of heads."""
    return Points(
        name, "H", colour="start", names="from {start}", dodge=0.08, line="-", panel="task",
        title="{task}", xscale="log2", xlabel="heads $H$", ylabel=label, shared=False,
    ) + Reference(y=0)  # fmt: skip


LOSSES = Lines(
    "loss", lambda data: data.step + 1, at={"start": "zero"}, colour="H", dash="set",
    band=mean_only, panel="task", title="{task}", xscale="log", yscale="log", xlabel="step $k + 1$",
    ylabel="logistic loss, from zero", shared=False, width=1.2,
)  # fmt: skip
ATTENTION = (
    Points(
        few_heads("mass"), "row", colour="start", names="attention, from {start}", dodge=0.2,
        panel="task", title="{task}, fewest heads", xlabel="row of the image, from the top",
        ylabel="mean attention at the last step", width=1.3,
    )
    + Lines(information, "row", band=mean_only, style="--", label="row information (share)")
    + Reference(y=lambda data: 1 / data.row.size, label="uniform attention")
)  # fmt: skip
REACHED = margins("decoder", "reached, decoders of norm 1") + Lines(
    "linear", "H", band=mean_only, style="--", label="linear margin"
)
TANGENT = margins("ntk", "NTK of the start, norm $\\sqrt{2}$")
EXPERIMENT = Experiment(
    title="Multi-head attention on real digits",
    question=__doc__,
    grid=GRID,
    run=run,
    table=Table(
        ["task", "H", "start"],
        [
            Column("seeds", "decoder", lambda margin: int(np.isfinite(margin).sum())),
            Column("steps", lambda data: xr.DataArray(data.attrs["steps"]), only),
            Column("loss", last("loss", set="training")),
            Column("test loss", last("loss", set="test")),
            Column("accuracy", last("accuracy", set="training")),
            Column("test accuracy", last("accuracy", set="test")),
            Column("NTK margin (0: not separable)", "ntk"),
            Column("linear margin", "linear"),
            Column("decoder margin reached", "decoder"),
            Column("margin reached on the sphere", "sphere"),
            Column("effective rows", last("effective_rows")),
            Column(
                "mass on the most attended row",
                lambda data: data["mass"].isel(step=-1).mean("member").max("row"),
            ),
            Column("rank correlation with information", "correlation"),
        ],
    ),
    figures=[
        Plot("Losses on digits", LOSSES, losses_caption),
        Plot("Where the attention goes", ATTENTION, attention_caption),
        Plot("Margins on digits", [REACHED, TANGENT], margins_caption),
    ],
    note=NOTE,
)
