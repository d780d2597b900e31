r"""Can a bound say something at an accuracy of 90%, if training stays in norm balls?

One layer is trained on sparse majority by projected gradient descent on the balls of Theorem 4.1.
Its class is fixed before the data are seen; the bound on the error is then compared with the error,
and solved for the number of samples from which it says something.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.data.sparse_majority import (
    BitEmbedding,
    MajorityDesign,
    SparseMajority,
    make_sparse_majority,
)
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.sparse_majority.outputs import majority_outputs
from attlas.tasks.sparse_majority.projected import ProjectedSettings, train_projected

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas
    from matplotlib.axes import Axes

DELTA = 0.05
ACCURACY = 0.9
THRESHOLDS = (1.0, 0.5, 0.1)
"""Bounds on the error that say something, that beat a coin, and that certify 90%."""
MARGINS = np.geomspace(0.01, 0.5, 18)
FAMILIES = (
    "Theorem 4.1 corrected",
    "Theorem 4.1 sharp",
    "log T",
    "parameters",
    "Theorem 4.1, fixed [CLS]",
    "parameters, fixed [CLS]",
)
"""With a [CLS] token that is the same in every sequence, W_QK x_CLS is all that W_QK does."""
COLOURS = ("#56b4e9", "#0072b2", "#e69f00", "#cc79a7", "#009e73", "#000000")
SHOWN = ((5, None, "s-"), (5, 1e7, "s--"), (1, 1e10, "^--"))
"""Family, samples (None: those trained on) and style of the certified accuracies shown."""
TASKS = {
    ("one-hot", 1): "majority of 1 (a decisive token)",
    ("one-hot", 3): "majority of 3",
    ("released", 3): "majority of 3, released embedding",
}
NOTE = (
    "Tokens x_t = (e_t + s_t e_T) / sqrt(2) with a sign s_t for the bit and [CLS] = e_{T+1}, so "
    "that B_x = 1 and a sparse W_QK suffices; the released embedding, scaled to B_x = 1, is run "
    "beside it. The model is that of Theorem 4.1 (ReLU, k = 8) with ||w||_1, ||W_c||_{1,inf}, "
    "||W_v||_{1,inf} <= 1 and ||W_QK||_{1,1} <= r by projection after every step. Bound on the "
    "error: ramp loss at margin gamma, 1 / gamma-Lipschitz, plus 2 R / gamma plus the term of "
    "confidence, at 95% for all radii and 18 margins at once (union bound). The radii are fixed "
    "before the data, hence nothing is read off after training. 'Fixed [CLS]': the token [CLS] is "
    "the same in every sequence, so that attention depends on v = W_QK x_CLS alone, a vector of "
    "d numbers with ||v||_1 <= r; its covers take the place of those of a d x d matrix."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each task (and, at paper scale, seed)."""
    sizes = {
        Scale.SMOKE: {"T": 8, "train": 512, "test": 500, "steps": 20, "radii": [0, 4, 16]},
        Scale.QUICK: {"train": 2**19, "test": 20_000, "steps": 600},
        Scale.PAPER: {"train": 2**22, "test": 200_000, "steps": 4000},
    }[scale]
    usual = {"T": 32, "radii": [0, 2, 4, 6, 8, 12, 16, 24], "batch": 64}
    return tuple(
        Cell({**usual, **sizes, "embedding": embedding, "s": s}, seed)
        for seed in range(5 if scale is Scale.PAPER else 1)
        for embedding, s in TASKS
    )


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Train in every ball; accuracies, ramp risks, and the complexity at many sample sizes."""
    s = cell.settings
    T, d = s["T"], s["T"] + 2
    start, draw = jax.random.split(jax.random.key(cell.seed))
    data = _data(draw, s)
    settings = ProjectedSettings(steps=s["steps"], batch=s["batch"])
    radii = np.asarray(s["radii"], float)
    models = train_projected(start, data, jax.device_put(radii.astype("float32")), settings)
    sets = (data.bits, data.labels), (data.validation_bits, data.validation_labels)
    risks = [np.asarray(_risks(models, data.embedding, *each)) for each in sets]
    samples = np.append(np.geomspace(1e3, 1e13, 81), s["train"])
    complexity = np.asarray(_complexities(d, T)(radii, samples))
    return {
        "radius": radii,
        "norm": np.abs(np.asarray(models.query_key)).sum(axis=(1, 2, 3)),
        "accuracy": np.stack([risk[:, 0] for risk in risks], axis=1),
        "ramp": np.stack([risk[:, 1:] for risk in risks], axis=1),
        "samples": samples,
        "complexity": complexity,
    }


def _data(key: Array, s: Mapping) -> SparseMajority:
    """Sparse majority with tokens of norm at most one."""
    d = s["T"] + 2
    design = MajorityDesign(s["train"], s["test"], s["s"], d)
    data = make_sparse_majority(key, s["T"], design)
    if s["embedding"] == "one-hot":
        eye, half = np.eye(d, dtype="float32"), np.float32(math.sqrt(0.5))
        places = np.concatenate([half * eye[: s["T"]], np.zeros((1, d), "float32")])
        sign = half * eye[s["T"]]
        new = BitEmbedding(*(jax.device_put(a) for a in (-sign, sign, eye[-1], places)))
    else:
        e = jax.tree.map(np.asarray, data.embedding)
        tokens = np.concatenate([*(e.positions + c for c in (e.zero, e.one, e.cls))])
        largest = np.float32(np.linalg.norm(tokens, axis=1).max())
        new = jax.tree.map(lambda a: a / largest, data.embedding)
    parts = (data.bits, data.labels, data.validation_bits, data.validation_labels)
    return SparseMajority(*parts, new, data.indices)


@jax.jit
def _risks(
    models: SingleLayerTransformer, embedding: BitEmbedding, bits: Array, labels: Array
) -> Array:
    """Accuracy, an output of 0 counting half, and ramp risk at each margin, of each model."""

    def one(model: SingleLayerTransformer) -> Array:
        out = majority_outputs(model, embedding, bits)
        signed = jnp.where(labels > 0, out, -out)
        right = jnp.mean((jnp.sign(signed) + 1) / 2)
        # one margin at a time: all at once would need eighteen times the memory
        margins = jnp.asarray(MARGINS, out.dtype)
        ramp = jax.lax.map(lambda g: jnp.mean(jnp.clip(1 - signed / g, 0, 1)), margins)
        return jnp.append(right, ramp)

    return jax.lax.map(one, models)


@functools.cache
def _complexities(d: int, T: int) -> Callable[[np.ndarray, np.ndarray], Array]:
    """The program of all bounds on the complexity at all radii and sample sizes."""

    def one(r: Array, m: Array) -> Array:
        covers = [
            trauger2023_cover("1,1", r, 1.0, d, d),
            edelman2022_cover(r, 1.0, m * T, d, m),  # the sum of row norms is at most r
            trauger2023_cover("1,1", r, 1.0, 1, d),
        ]
        chain = jax.vmap(lambda C: trauger2023_single(1.0, C, 1.0, d, m))
        sharp, log_t, fixed = chain(jnp.stack(covers))
        corrected = trauger2023_single(1.0, covers[0], 1.0, d, m, constants="corrected")
        full, few = (parameter_counting_single(1.0, r, 1.0, p, d, m) for p in (d * d, d))
        return jnp.minimum(jnp.stack([corrected, sharp, log_t, full, fixed, few]), 1.0)

    def every(radii: Array, samples: Array) -> Array:
        # at radius 0 nothing is covered; the tiny value keeps the logarithms finite
        row = jax.vmap(one, in_axes=(None, 0))
        return jax.lax.map(lambda r: row(jnp.maximum(r, 1e-9), samples), radii)

    return jax.jit(every)


class _Certified(NamedTuple):
    """Bounds on the error of one record, minimised over the margins."""

    samples: np.ndarray
    error: np.ndarray
    margin: np.ndarray

    def needed(self, radius: int, family: int, threshold: float) -> float:
        """Samples from which the bound is below the threshold; infinite if never."""
        error = self.error[radius, :-1, family]
        above = np.flatnonzero(error >= threshold)
        if above.size == 0:
            return float(self.samples[0])
        last = above[-1]
        if last == error.size - 1:
            return math.inf
        logs = np.log(self.samples[[last, last + 1]])
        place = np.interp(-threshold, -error[[last, last + 1]], logs)
        return float(np.exp(place))


def _certify(record: Record) -> _Certified:
    """Ramp risk on the sample + 2 R / gamma + confidence, the smallest over gamma."""
    a = record.arrays
    delta = DELTA / (a["radius"].size * MARGINS.size)
    m = a["samples"]
    tail = np.array([float(generalisation_gap(0.0, size, delta)) for size in m])
    ramp = a["ramp"][:, 0][:, None, None]
    gap = 2 * a["complexity"][..., None] / MARGINS + tail[None, :, None, None]
    error = ramp + gap
    return _Certified(m, error.min(axis=-1), error.argmin(axis=-1))


def _task(record: Record) -> str:
    s = record.cell.settings
    return TASKS[s["embedding"], s["s"]]


def _learnt(record: Record) -> list[int]:
    """Radii, by number, of the wanted accuracy on fresh data."""
    return np.flatnonzero(record.arrays["accuracy"][:, 1] >= ACCURACY).tolist()


def _best(record: Record, found: _Certified, family: int, threshold: float) -> tuple[float, int]:
    """Fewest samples among the radii of the wanted accuracy, and that radius."""
    sizes = [(found.needed(k, family, threshold), k) for k in _learnt(record)]
    return min(sizes, default=(math.inf, -1))


def _chosen(record: Record, found: _Certified, family: int) -> int:
    """The radius of the smallest bound at the samples trained on, of the wanted accuracy if any."""
    radii = _learnt(record) or list(range(record.arrays["radius"].size))
    return radii[int(found.error[radii, -1, family].argmin())]


def _number(m: float) -> str:
    return f"{m:.1e}" if math.isfinite(m) else "never"


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """By task and radius: accuracy, true gap and bounds on it, and samples that bounds need."""
    import pandas as pd

    rows = []
    for record in records:
        found = _certify(record)
        for k in range(record.arrays["radius"].size):
            rows.append({"task": _task(record), **_row(record, found, k)})
    return pd.DataFrame(rows)


def _row(record: Record, found: _Certified, k: int) -> dict[str, object]:
    """One radius; gaps are those of the ramp loss at the margin that parameter counting takes."""
    a, last = record.arrays, len(FAMILIES) - 1
    margin = int(found.margin[k, -1, last])
    train, test = a["ramp"][k, :, margin]
    m, delta = int(a["samples"][-1]), DELTA / (a["radius"].size * MARGINS.size)
    row: dict[str, object] = {
        "radius": a["radius"][k],
        "trained norm": a["norm"][k],
        "accuracy, train": a["accuracy"][k, 0],
        "accuracy, test": a["accuracy"][k, 1],
        "m": m,
        "margin": MARGINS[margin],
        "ramp, train": train,
        "gap": test - train,
    }
    for family in (0, 1, last):
        slope = float(a["complexity"][k, -1, family]) / MARGINS[margin]
        row[f"bound on gap, {FAMILIES[family]}"] = float(generalisation_gap(slope, m, delta))
    row["bound on error"] = min(float(found.error[k, -1, last]), 1.0)
    for family, name in enumerate(FAMILIES):
        sizes = (_number(found.needed(k, family, threshold)) for threshold in THRESHOLDS)
        row[f"m for error < 1, .5, .1: {name}"] = " / ".join(sizes)
    return row


def _first(records: Sequence[Record]) -> list[Record]:
    """One record a task."""
    return list({_task(record): record for record in reversed(records)}.values())[::-1]


def _radius_panel(records: Sequence[Record]) -> Panel:
    """Accuracy and what is certified of it, against the radius."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(records), figsize=(1.2 + 3.2 * len(records), 3.6), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    said = []
    for axis, record in zip(axes[0], records, strict=True):
        a, found = record.arrays, _certify(record)
        axis.plot(a["radius"], a["accuracy"][:, 1], "o-", color="0.6", lw=2, ms=4, label="accuracy")
        for family, m, style in SHOWN:
            at = -1 if m is None else int(np.abs(found.samples[:-1] / m - 1).argmin())
            certified = np.maximum(1 - found.error[:, at, family], 0)
            size = "trained on" if m is None else f"$m = 10^{{{math.log10(m):.0f}}}$"
            axis.plot(a["radius"], certified, style, color=COLOURS[family], ms=4,
                      label=f"certified: {FAMILIES[family]}, {size}")  # fmt: skip
        axis.axhline(ACCURACY, color="0.5", ls=":", lw=1)
        axis.set_title(_task(record), fontsize=10)
        axis.set_xlabel(r"radius $r$ of $\|W_{QK}\|_{1,1}$")
        best = max(1 - float(found.error[_chosen(record, found, 5), -1, 5]), 0.0)
        said.append(
            f"{_task(record)}: accuracy up to {a['accuracy'][:, 1].max():.3f}, certified "
            + (f"{best:.3f}" if best > 0 else "nothing")
        )
    axes[0, 0].set_ylabel("share of sequences")
    axes[0, 0].set_ylim(-0.03, 1.03)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    m = int(records[0].arrays["samples"][-1])
    caption = (
        f"What does projection do to accuracy and bound? At the m = {m} trained on, by parameter "
        f"counting with a fixed [CLS]: {'; '.join(said)}. Certified is one minus the bound on the "
        "error; Theorem 4.1 certifies nothing there and is shown for more samples, at the ramp "
        "risks of the same models. Small balls leave too little attention for the tokens that "
        "decide and no margin; large ones cost complexity, in parameter counting only a logarithm."
    )
    return Panel("Accuracy and certified accuracy", caption, figure)


def _curves(axis: "Axes", record: Record, found: _Certified) -> None:
    """Bounds on the error against the samples, each at its own best radius."""
    for family, name in enumerate(FAMILIES):
        error = found.error[_learnt(record), :-1, family].min(axis=0)
        axis.plot(found.samples[:-1], error, color=COLOURS[family], lw=1.7, label=name)
    axis.axvline(found.samples[-1], color="0.5", ls=":", lw=1.2)
    axis.annotate("trained", (found.samples[-1], 0.012), (3, 0), fontsize=8,
                  textcoords="offset points", color="0.35")  # fmt: skip
    axis.axhspan(1, 10, color="0.9")
    for level in THRESHOLDS[1:]:
        axis.axhline(level, color="0.6", lw=0.8, ls="--")
    axis.set(xscale="log", yscale="log", ylim=(0.01, 10), xlabel="samples $m$")
    axis.set_title(_task(record), fontsize=10)


def _samples_panel(records: Sequence[Record]) -> Panel:
    """Bounds on the error against the samples, for the tasks that were learnt."""
    import matplotlib.pyplot as plt

    learnt = [record for record in records if _learnt(record)]
    figure, axes = plt.subplots(1, max(len(learnt), 1), figsize=(1.5 + 4 * max(len(learnt), 1), 4),
                                sharey=True, squeeze=False, layout="constrained")  # fmt: skip
    said = []
    for axis, record in zip(axes[0], learnt, strict=False):
        found = _certify(record)
        _curves(axis, record, found)
        sizes = [
            f"{FAMILIES[family]} {_number(_best(record, found, family, 1.0)[0])} / "
            f"{_number(_best(record, found, family, 0.5)[0])} / "
            f"{_number(_best(record, found, family, 0.1)[0])}"
            for family in (0, 1, 3, 5)
        ]
        said.append(f"{_task(record)}: {'; '.join(sizes)}")
    if learnt:
        axes[0, 0].text(1.5e3, 5, "says nothing", fontsize=9, color="0.35")
        axes[0, 0].set_ylabel("bound on the error")
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    else:
        axes[0, 0].text(0.5, 0.5, "no task reached 90%", ha="center")
    missed = [_task(record) for record in records if not _learnt(record)]
    caption = (
        "From how many samples on does a bound say something of a model that is right on 90%? "
        "Samples for a bound on the error below 1 / below a coin's / below 10%, at the ramp risks "
        f"of the trained models: {'. '.join(said) or 'none was learnt'}."
        + (f" Not learnt under projection: {', '.join(missed)}." if missed else "")
    )
    return Panel("Samples for a bound that says something", caption, figure)


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """Accuracy against the radius, and bounds against the number of samples."""
    firsts = _first(records)
    return _radius_panel(firsts), _samples_panel(firsts)


EXPERIMENT = Experiment(
    name="norm_projection",
    paper="trauger2023sequence",
    title="Training in norm balls",
    question="Can a bound that says something be reached at 90% accuracy, and at which m?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "radius": ("radius",),
        "norm": ("radius",),
        "accuracy": ("radius", "set"),
        "ramp": ("radius", "set", "margin"),
        "samples": ("samples",),
        "complexity": ("radius", "samples", "family"),
    },
    note=NOTE,
)
