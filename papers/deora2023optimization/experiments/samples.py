r"""How far is the stability bound from the generalisation gap? Is the gap $O(1/n)$?

Many independent training sets of each size from one start (one-step initialisation, two groups
of equal heads), with all leave-one-out trainings of some of them. The expected gap needs no test
set: within a group of sets it is the loss of each set under the models of the others, less the
loss under its own model, which cancels the noise of the sets.
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attlas.bounds.generalisation.deora2023_generalisation import deora2023_stability_gap
from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_1
from attlas.bounds.optimisation.deora2023_training import Setting
from attlas.data.tokenized_mixture import sample_mixture
from attlas.display.numbers import large_number
from attlas.experiments import panels
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.panels import Column, Lines, Points
from attlas.experiments.settings import Settings
from attlas.measures.statistics.power_law import PowerLaw, power_law_of_means
from attlas.measures.statistics.stability import model_distances
from attlas.measures.statistics.student_interval import student_interval
from attlas.optim.one_step import one_step_initialisation
from deora2023optimization.experiments.instances import MIXTURE, draw_mixture
from deora2023optimization.library.bounds.deora2023_corollary_2 import (
    TARGETS,
    deora2023_gap_by_target,
)
from deora2023optimization.library.measures.repeated_start import start_constants
from deora2023optimization.library.repeated_heads import repeat_signed_head
from deora2023optimization.library.training.fresh_sets import crossed_losses, fresh_sets
from deora2023optimization.library.training.leave_one_out import LeftOut, left_out

BOUNDS = {
    "Lemma 3, measured G": "Lemma 3, measured Lipschitz constant",
    "Lemma 3, G = beta_1": "Lemma 3, Lipschitz constant bounded sharply",
    **{f"Theorem 2, target {name}": f"Theorem 2, target {name}" for name in TARGETS},
}
IN_LEGEND = {
    "Lemma 3, measured G": "bound by stability, Lipschitz constant measured (Lemma 3)",
    "Lemma 3, G = beta_1": "bound by stability, Lipschitz constant bounded (Lemma 3)",
    "Theorem 2, target last step": "bound along training, target: the last step (Theorem 2)",
    "Theorem 2, target of Corollary 2": "bound along training, target of the paper (Theorem 2)",
}
"""The bounds by what they are made from, for a figure, which has no statement beside it."""
LOG_2 = float(np.log(2))
GRID = Grid(
    each={"n": [8, 20, 50]},
    fixed=MIXTURE | {
        "heads": 16, "first": 64, "test": 200, "rate": 0.1, "steps": 200, "group_size": 4,
    },
    smoke={"n": [4, 8], "sets": 8, "left_out": 1, "steps": 20},
    quick={"sets": 48, "left_out": 2},
    paper={"n": [8, 16, 32, 64, 128, 256], "sets": 256, "left_out": 8},
)  # fmt: skip


def run(s: Settings, key: Array) -> xr.Dataset:
    """Train on all sets, and without each sample on some; gap, stability and bounds."""
    keys = [jax.random.fold_in(key, k) for k in range(6)]
    mixture, (first, test) = draw_mixture(s, keys, (s.first, s.test))
    head = one_step_initialisation(keys[3], first.X, first.y, 1)
    start = repeat_signed_head(keys[4], head, s.heads)
    samples = sample_mixture(jax.random.fold_in(keys[5], s.n), mixture, s.sets * s.n, s.T)
    # Slices of NumPy arrays cost nothing; each shape of a JAX slice is compiled.
    X = np.asarray(samples.X).reshape(s.sets, s.n, s.T, s.d)
    y = np.asarray(samples.y).reshape(s.sets, s.n)
    sets, settings = (jnp.asarray(X), jnp.asarray(y)), {"step_size": s.rate, "steps": s.steps}
    trained = fresh_sets(start, *sets, test.X, test.y, record_at=(s.steps,), **settings)
    last = trained.path.last
    crossed = crossed_losses(last, X, y, s.group_size)
    some = [
        left_out(start, jnp.asarray(X[k]), jnp.asarray(y[k]), test.X, test.y, **settings)
        for k in range(s.left_out)
    ]
    measured = dict(zip(LeftOut._fields, np.array(some).T, strict=True))
    copies = np.broadcast_to(start.copies, (s.sets, 1, 2))
    constants = start_constants([head] * s.sets, X, y, copies)
    T, d, R = map(float, (s.T, s.d, mixture.R))
    numbers = constants.B_Phi.max(), float(s.n), s.rate, float(s.steps)
    distance = model_distances((start.U, start.W), (last.U, last.W), recorded=0)
    theorem_2 = deora2023_gap_by_target(
        Setting(T, d, max(1.0, R), 0.0, constants.B_2.max()), jnp.asarray(constants.margin),
        distance, trained.path.loss[:, 0], *numbers,
    )  # fmt: skip
    beta_1 = deora2023_beta_1(T, R, measured["largest_head"].max(), "sharp")
    slopes, stability = (measured["lipschitz"].max(), beta_1), measured["stability"].mean()
    lemma_3 = [float(deora2023_stability_gap(slope, stability)) for slope in slopes]
    return xr.Dataset(
        {
            "loss": (("kind", "group"), [crossed.training, crossed.crossed]),
            "common_test": ("set", trained.test_loss[:, 0]),
            "margin": ("set", constants.margin),
            "theorem_2": (("target", "set"), theorem_2.gap),
            "heads_ratio": (("target", "set"), theorem_2.heads / s.heads),
            "bound": ("by", [*lemma_3, *np.mean(theorem_2.gap, axis=1)]),
        }
        | {name: ("trial", values) for name, values in measured.items()},
        {"kind": ["training loss", "test loss"], "target": list(TARGETS), "by": list(BOUNDS)},
    )


def gap(data: xr.Dataset) -> xr.DataArray:
    """The measured gap, by group of sets."""
    return data.loss.sel(kind="test loss") - data.loss.sel(kind="training loss")


def over_gap(data: xr.Dataset) -> xr.DataArray:
    """Bounds over the measured gap."""
    return data.bound / gap(data).mean("group")


def power(data: xr.Dataset) -> xr.DataArray:
    """A gap that falls like 1/n from the first one."""
    return gap(data).mean("group").isel(n=0) * data.n[0] / data.n


def with_interval(values: xr.DataArray) -> str:
    """Mean over groups with half of Student's 95 % interval."""
    mean, half = student_interval(values.values)
    return f"{mean:.4f} ± {half:.4f}"


def law(data: xr.Dataset) -> PowerLaw | None:
    """The slopes of the mean gap in n, where it is positive in every group; sets are fresh."""
    gaps = gap(data).transpose("n", "group").values
    resolved = data.n.size > 1 and (gaps > 0).all()
    return power_law_of_means(data.n.values, gaps, jax.random.key(0)) if resolved else None


def _ends(over: xr.DataArray) -> dict[str, str]:
    return {"least": large_number(float(over.min())), "largest": large_number(float(over.max()))}


def powers(data: xr.Dataset) -> dict[str, object]:
    """The slope of the gap in n, how far the bounds lie above it, and which are non-vacuous."""
    fit = law(data)
    factors = [f"{large_number(float(over.min()))} to {large_number(float(over.max()))} "
               f"({BOUNDS[str(over.by.values)]})"
               for over in over_gap(data).transpose("by", "n")]  # fmt: skip
    below = data.by.values[(data.bound < LOG_2).any("n").values]
    return {
        "power": fit and fit.text(),
        "curved": fit and not fit.straight,
        "slower": fit and fit.end.low > -1,
        "faster": fit and fit.high < -1,
        "factors": ", ".join(factors),
        **_ends(over_gap(data)),
        "useful": "; ".join(BOUNDS[name] for name in below),
    }


def answer(data: xr.Dataset) -> dict[str, object]:
    """The slope in n, and how far the bounds are from the gap."""
    over = over_gap(data)
    return {name: value for name, value in powers(data).items() if name != "factors"} | {
        "fewest": int(data.n[0]),
        "most": int(data.n[-1]),
        "exceeded": int((over < 1).sum()),
    }


LOSSES = Points(
    "loss", "n", colour="kind", line="-", xscale="log2", yscale="log",
    xlabel="training samples $n$", ylabel="mean logistic loss after training", width=1.1,
)  # fmt: skip
GAPS = (
    Points(
        gap, "n", line="-", label="measured", xscale="log2", yscale="log",
        xlabel="training samples $n$", ylabel="test minus training loss, or bound", width=1.75,
    )
    + Points("loo_gap", "n", band=panels.mean_only, marker="D", hollow=True,
             ink=panels.PALETTE[5], label="leave-one-out estimate")
    + Lines("bound", "n", colour="by", names=IN_LEGEND, style="o-")
    + Lines(power, "n", style="--", label="fall like $1/n$ from the first")
    + panels.Reference(y=LOG_2, label="loss of guessing: a bound above is vacuous")
)  # fmt: skip
EXPERIMENT = Experiment(
    title="Generalisation gap against the number of samples",
    question=__doc__,
    grid=GRID,
    run=run,
    answer=answer,
    table=panels.Table(
        ["n"],
        [
            Column("training loss", "loss", at={"kind": "training loss"}),
            Column("test loss", "loss", at={"kind": "test loss"}),
            Column("test loss, common samples", "common_test"),
            Column("gap ± 95 %", gap, with_interval),
            Column("gap, leave-one-out", "loo_gap"),
            Column("stability", "stability"),
            Column("G", "lipschitz", panels.largest),
            *(Column(f"{name} / gap", over_gap, at={"by": name}) for name in BOUNDS),
            *(
                Column(f"heads demanded / used, target {name}", "heads_ratio", panels.median,
                       at={"target": name})
                for name in TARGETS
            ),
        ],
    ),
    figures=[panels.Plot("Generalisation gap against $n$", [LOSSES, GAPS], powers)],
)  # fmt: skip
