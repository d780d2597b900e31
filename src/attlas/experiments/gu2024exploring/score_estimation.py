r"""How well do a softmax network and its tangent kernel learn a score, and when must they stop?

Section 6 of gu2024exploring on a Gaussian mixture, whose true label f_* = E[x(0) | x(t) = x] is
known in closed form. The four terms of Claim G.1 are measured on fresh points at every step:
coupling (network - kernel regression), label mismatch (regression on labels - on pseudo-labels
f_H + noise), early stopping (that regression - f_H) and approximation (f_H - f_*).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_score import gu2024_score_error
from attlas.experiments.gu2024exploring.instances import (
    MIXTURE,
    SIGMA,
    STEP,
    MixtureRegression,
    draw_mixture_regression,
    mixture_kernel,
)
from attlas.kernels.regression_flow import RegressionFlow, regression_flow
from attlas.models.networks.softmax_network import symmetric_network
from attlas.runs.cell import Cell, Scale
from attlas.runs.experiment import Experiment, Panel
from attlas.runs.record import Record
from attlas.tasks.softmax_regression import train_softmax_networks
from attlas.training.trajectory import Trajectory, log_spaced

if TYPE_CHECKING:  # workers compute and draw nothing
    import pandas

LONGER = 1000
"""How many times longer than the network kernel regression is followed."""
FURTHER = 10
DELTA = 0.1
TERMS = ("coupling", "mismatch", "early", "approximation")
SHOWN = {
    "coupling": ("$Z_1$ coupling", "#0072b2", "o-"),
    "mismatch": ("$Z_2$ label mismatch", "#e69f00", "s-"),
    "early": ("$Z_3$ early stopping", "#d55e00", "^-"),
    "approximation": ("$Z_4$ approximation", "#009e73", "D-"),
}
NOTE = (
    "The kernel is that of infinite width. f_H is kernel regression on the true labels of an "
    "independent reference set, stopped at its least error on validation points: a fixed element "
    "of the RKHS, of squared norm R_H. Pseudo-labels are f_H + (label - f_*), as in the paper's "
    "[59], so that the label mismatch is the regression of f_* - f_H. Training sets are nested "
    "and share the scale of the largest. A network step has m eta = .9 / lambda_max, and kernel "
    "regression takes the same steps. Stopped where the validation loss on noisy labels is least. "
    "Theorem 6.6's sum has c_1 = 1, delta = .1, no constant in front, and lambda at least at the "
    "level of rounding, where it is a lower bound."
)


def cells(scale: Scale) -> tuple[Cell, ...]:
    """One cell for each seed."""
    settings = {
        Scale.SMOKE: {"n": (12, 24), "widths": (32,), "steps": 20, "records": 6, "test": 40,
                      "reference": 48},
        Scale.QUICK: {"n": (32, 64, 128, 256), "widths": (512,), "steps": 600, "records": 16,
                      "test": 500, "reference": 512},
        Scale.PAPER: {"n": (64, 128, 256, 512, 1024, 2048), "widths": (256, 2048, 16384),
                      "steps": 20000, "records": 40, "test": 4000, "reference": 4096},
    }[scale]  # fmt: skip
    return tuple(Cell(settings, seed) for seed in range(5 if scale is Scale.PAPER else 1))


class _Ball(NamedTuple):
    """f_H: values on the training and the further pairs, and its squared norm."""

    train: np.ndarray
    further: np.ndarray
    squared_norm: float


def _ball(p: MixtureRegression) -> _Ball:
    """Kernel regression on true labels, at its best time on the validation pairs."""
    Z = p.inputs(p.reference)
    K = mixture_kernel(Z, Z)
    flow = regression_flow(K, np.asarray(p.reference.truth))
    times = np.geomspace(1, 1e8, 25) / flow.eigenvalues[-1]
    values = flow.test(mixture_kernel(p.inputs(p.further), Z), times)
    half = values.shape[1] // 2
    away = _mean_square(values[:, :half] - np.asarray(p.further.truth)[None, :half])
    best = int(np.argmin(away))
    rows = flow.test(np.eye(len(K)), times[best : best + 1])[0]
    inside = mixture_kernel(p.inputs(p.train), Z) @ rows
    squared = float(np.einsum("ik,ij,jk->", rows, K, rows)) / float(p.scale.labels) ** 2
    return _Ball(inside, values[best], squared)


def _mean_square(gap: np.ndarray) -> np.ndarray:
    """Mean over points of the squared length of the last axis."""
    return np.asarray(np.mean(np.sum(gap**2, axis=-1), axis=-1))


def _flow(p: MixtureRegression, ball: _Ball, n: int) -> tuple[RegressionFlow, np.ndarray]:
    """Regression on labels, on f_H and on the noise of the labels at once, for n pairs."""
    Z, labels = p.inputs(p.train)[:n], np.asarray(p.train.labels)[:n]
    noise = labels - np.asarray(p.train.truth)[:n]
    columns = np.concatenate([labels, ball.train[:n], noise], axis=1)
    return regression_flow(mixture_kernel(Z, Z), columns), mixture_kernel(p.inputs(p.further), Z)


def _trained(cell: Cell, p: MixtureRegression, width: int, largest: np.ndarray) -> Trajectory:
    """One start trained on every n: rows of zeros fill up the smaller sets."""
    s, sizes = cell.settings, np.asarray(cell.settings["n"])
    key = jax.random.fold_in(jax.random.key(cell.seed), 10)
    d = p.train.x.shape[1]
    start = symmetric_network(key, d + 1, width, d, sigma=SIGMA)
    networks = jax.tree.map(lambda a: jnp.stack([a] * len(sizes)), start)
    kept = jnp.asarray(np.arange(sizes[-1])[None] < sizes[:, None])[:, :, None]
    X = jnp.where(kept, p.inputs(p.train)[None], 0)
    Y = jnp.where(kept, (p.train.labels / p.scale.labels)[None], 0)
    return train_softmax_networks(
        networks, X, Y, step_size=jnp.asarray(STEP / (width * largest)), steps=s["steps"],
        record_at=log_spaced(s["steps"], s["records"]), X_test=p.inputs(p.further),
    )  # fmt: skip


def _regressed(
    p: MixtureRegression, ball: _Ball, n: int, steps: np.ndarray
) -> dict[str, np.ndarray]:
    """Kernel regression on n pairs at all steps, and the terms that do not need a network."""
    flow, cross = _flow(p, ball, n)
    largest = flow.eigenvalues[-1]
    found = flow.test(cross, steps, STEP / largest)
    labels, pseudo, noise = np.split(found, 3, axis=2)
    half, truth = found.shape[1] // 2, np.asarray(p.further.truth)
    f_H, fresh = ball.further[half:], slice(half, None)
    return {
        "largest": np.asarray(largest),
        "smallest": np.asarray(np.maximum(flow.eigenvalues[0], n * np.finfo(float).eps * largest)),
        "predicted": labels,
        "kernel_validation": _mean_square(labels[:, :half] - np.asarray(p.further.labels)[:half]),
        "kernel_error": _mean_square(labels[:, fresh] - truth[fresh]),
        "mismatch": _mean_square((labels - pseudo - noise)[:, fresh]),
        "early": _mean_square((pseudo + noise)[:, fresh] - f_H),
        "bias": _mean_square(pseudo[:, fresh] - f_H),
        "noise": _mean_square(noise[:, fresh]),
    }


def run(cell: Cell) -> Mapping[str, np.ndarray]:
    """Networks and kernel regression for every n, and the four terms at every step."""
    s = cell.settings
    p = draw_mixture_regression(cell.seed, s["n"][-1], s["test"], s["reference"])
    ball, half = _ball(p), s["test"]
    step = np.asarray(log_spaced(s["steps"], s["records"]), float)
    further = np.geomspace(s["steps"], LONGER * s["steps"], FURTHER + 1)[1:].round()
    each = [_regressed(p, ball, n, np.concatenate([step, further])) for n in s["n"]]
    kernel = {name: np.stack([e[name] for e in each]) for name in each[0]}
    predicted = kernel.pop("predicted")
    paths = [_trained(cell, p, width, kernel["largest"]) for width in s["widths"]]
    outputs = np.stack([np.asarray(path.test_outputs) for path in paths]) * float(p.scale.labels)
    labels, truth = (np.asarray(a) for a in (p.further.labels, p.further.truth))
    validation = _mean_square(outputs[..., :half, :] - labels[:half])
    fresh = outputs[..., half:, :]
    return {
        "step": step,
        "kernel_step": np.concatenate([step, further]),
        **kernel,
        "approximation": _mean_square(ball.further[half:] - truth[half:]),
        "squared_norm": np.asarray(ball.squared_norm),
        "label_scale": np.asarray(p.scale.labels),
        "network_validation": validation,
        "network_error": _mean_square(fresh - truth[half:]),
        "coupling": _mean_square(fresh - predicted[None, :, : len(step), half:]),
        "moved": np.stack([np.asarray(path.movement) for path in paths]),
        "stop_kernel": np.argmin(kernel["kernel_validation"], axis=-1),
        "stop_network": np.argmin(validation, axis=-1),
    }


class _AtStop(NamedTuple):
    """The terms and errors where the widest network stops, by seed and n, in one record each."""

    terms: dict[str, np.ndarray]
    network: np.ndarray
    kernel: np.ndarray
    step: np.ndarray


def _at_stop(records: Sequence[Record], width: int = -1) -> _AtStop:
    def taken(values: np.ndarray, stops: np.ndarray) -> np.ndarray:
        return np.take_along_axis(values, stops[:, None], axis=1)[:, 0]

    rows = []
    for record in records:
        a, stop = record.arrays, record.arrays["stop_network"][width]
        known = [taken(a[name], stop) for name in ("mismatch", "early")]
        known += [np.full(len(stop), float(a["approximation"]))]
        rows.append(np.stack([
            taken(a["coupling"][width], stop), *known, taken(a["network_error"][width], stop),
            taken(a["kernel_error"], a["stop_kernel"]), a["step"][stop],
        ]))  # fmt: skip
    *terms, network, kernel, step = np.stack(rows, axis=1)
    return _AtStop(dict(zip(TERMS, terms, strict=True)), network, kernel, step)


def _bound(record: Record, row: int, early: float) -> float:
    """The sum of Theorem 6.6's terms with the measured lambda, R_H and Z_3, unit labels."""
    s, a = record.cell.settings, record.arrays
    d, unit = len(MIXTURE["means"][0]), float(a["label_scale"]) ** 2
    terms = gu2024_score_error(
        s["n"][row], d, float(a["smallest"][row]), DELTA, float(a["squared_norm"]), early / unit
    )
    return float(sum(np.asarray(term) for term in terms.values()))


def table(records: Sequence[Record]) -> "pandas.DataFrame":
    """The four terms at the stop of every network, with its error and that of regression."""
    import pandas as pd

    rows = []
    for record in records:
        s, unit = record.cell.settings, float(record.arrays["label_scale"]) ** 2
        for w, width in enumerate(s["widths"]):
            at = _at_stop([record], w)
            for k, n in enumerate(s["n"]):
                row = {"seed": record.cell.seed, "m": width, "n": n, "stop": at.step[0, k]}
                row |= {name: at.terms[name][0, k] for name in TERMS}
                early = float(at.terms["early"][0, k])
                row |= {
                    "network error": at.network[0, k], "NTK error at its stop": at.kernel[0, k],
                    "network error, unit labels": at.network[0, k] / unit,
                    "Theorem 6.6, sum": _bound(record, k, early),
                }  # fmt: skip
                rows.append(row)
    return pd.DataFrame(rows)


def _positive(values: np.ndarray) -> np.ndarray:
    return np.where(values > 0, values, np.nan)


def _terms_panel(records: Sequence[Record]) -> Panel:
    """The terms against the step at the largest n, against n at the stop, and the stop."""
    import matplotlib.pyplot as plt

    n, at = records[0].cell.settings["n"], _at_stop(records)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 4.4), layout="constrained")
    _draw_along(left, records)
    for name, (label, colour, style) in SHOWN.items():
        middle.loglog(n, _positive(at.terms[name]).mean(axis=0), style, color=colour, ms=4,
                      label=label)  # fmt: skip
    middle.loglog(n, at.network.mean(axis=0), "k*-", lw=2, ms=8, zorder=1, label="network error")
    middle.loglog(n, at.kernel.mean(axis=0), "s--", color="0.5", ms=4, label="NTK error, its stop")
    middle.set_title("at the stop", fontsize=10)
    for name, (values, style, colour) in _stops(records).items():
        right.loglog(n, values.mean(axis=0), style, color=colour, ms=5, label=name)
    right.set_title("when to stop", fontsize=10)
    right.set_ylabel(r"step, of $m\eta = .9/\lambda_{max}$")
    for axis in (middle, right):
        axis.set_xlabel("training pairs $n$")
        axis.set_xticks(n, [str(size) for size in n])
        axis.minorticks_off()
    left.set_ylabel("mean square on fresh points")
    for axis in (left, middle, right):
        axis.legend(frameon=False, fontsize=7.5, ncols=2, loc="upper center",
                    bbox_to_anchor=(0.5, -0.16))  # fmt: skip
    return Panel("Four terms of the score error", _terms_caption(records), figure)


def _draw_along(axis, records: Sequence[Record]) -> None:
    """Every term against the step, for the widest network and the largest n."""
    a = records[0].arrays
    step, longer = a["step"][1:], a["kernel_step"][1:]

    def mean(name: str) -> np.ndarray:
        values = [r.arrays[name] for r in records]
        last = [v[-1, -1] if v.ndim == 3 else v[-1] for v in values]
        return _positive(np.mean(last, axis=0))[1:]

    for name, (label, colour, style) in SHOWN.items():
        if name == "approximation":
            level = np.mean([float(r.arrays[name]) for r in records])
            axis.axhline(level, color=colour, lw=1.2, label=label)
        else:
            steps = step if name == "coupling" else longer
            axis.loglog(steps, mean(name), style, color=colour, ms=2.5, lw=1.2, label=label)
    axis.loglog(longer, mean("bias"), ":", color=SHOWN["early"][1], label="bias in $Z_3$")
    axis.loglog(longer, mean("noise"), "--", color=SHOWN["early"][1], lw=1, label="noise in $Z_3$")
    axis.loglog(longer, mean("kernel_error"), "--", color="0.5", label="NTK error")
    axis.loglog(step, mean("network_error"), "k-", lw=2, label="network error")
    axis.axvline(_at_stop(records).step[:, -1].mean(), color="0.7", lw=0.8)
    axis.set_ylim(bottom=max(1e-5, 0.3 * float(np.nanmin(mean("mismatch")))))
    axis.set_xlabel("step (vertical line: the network's stop)")
    axis.set_title(f"$n$ = {records[0].cell.settings['n'][-1]}", fontsize=10)


def _stops(records: Sequence[Record]) -> dict[str, tuple[np.ndarray, str, str]]:
    """Stopping steps by seed and n: from noisy labels, from the truth, and in balance."""
    columns: dict[str, list[np.ndarray]] = {}
    for record in records:
        a = record.arrays
        steps, crossed = a["kernel_step"], a["noise"] >= a["bias"]
        balance = np.where(crossed.any(axis=1), crossed.argmax(axis=1), len(steps) - 1)
        for name, chosen in (
            ("network, noisy labels", a["stop_network"][-1]),
            ("NTK, noisy labels", a["stop_kernel"]),
            ("NTK, least true error", a["kernel_error"].argmin(axis=1)),
            ("noise = bias in $Z_3$", balance),
        ):
            columns.setdefault(name, []).append(steps[chosen])
    styles = (("*-", "k"), ("s-", "0.5"), ("^-", "#0072b2"), ("o--", "#d55e00"))
    return {
        name: (np.stack(values), style, colour)
        for (name, values), (style, colour) in zip(columns.items(), styles, strict=True)
    }


def _terms_caption(records: Sequence[Record]) -> str:
    n, at = records[0].cell.settings["n"], _at_stop(records)
    terms = {name: values.mean(axis=0) for name, values in at.terms.items()}
    said = {"coupling": "coupling", "mismatch": "label mismatch", "early": "early stopping",
            "approximation": "approximation"}  # fmt: skip
    largest = [said[max(terms, key=lambda name: terms[name][k])] for k in (0, -1)]
    slack = sum(np.sqrt(values) for values in at.terms.values()) / np.sqrt(at.network)
    stops = {name: values[:, -1].mean() for name, (values, *_) in _stops(records).items()}
    early = [float(v) for v in at.terms["early"][0]]
    bound = [_bound(records[0], k, early[k]) for k in (0, -1)]
    unit = float(records[0].arrays["label_scale"]) ** 2
    dominant = largest[0] if largest[0] == largest[1] else " and ".join(largest)
    return (
        f"Which error dominates? At the stop it is {dominant} (n = {n[0]} and n = {n[-1]}): "
        f"{', '.join(f'{said[t]} {v[0]:.2g} and {v[-1]:.2g}' for t, v in terms.items())}; the "
        f"network's error is {at.network[:, 0].mean():.2g} and {at.network[:, -1].mean():.2g}. "
        f"Roots of the four terms add up to {slack.min():.2f} to {slack.max():.2f} times the root "
        f"of the error, which Claim G.1 bounds by them. At n = {n[-1]} noisy labels stop the "
        f"network at step {stops['network, noisy labels']:.0f}; noise and bias balance at "
        f"{stops['noise = bias in $Z_3$']:.0f}. The sum of Theorem 6.6 with the measured lambda "
        f"is {bound[0]:.1e} and {bound[1]:.1e}, the error of unit labels "
        f"{at.network[0, 0] / unit:.1e} and {at.network[0, -1] / unit:.1e}."
    )


def figures(records: Sequence[Record]) -> tuple[Panel, ...]:
    """The four terms of Claim G.1."""
    return (_terms_panel(records),)


EXPERIMENT = Experiment(
    name="score_estimation",
    paper="gu2024exploring",
    title="Score estimation on a mixture",
    question="Which of the four errors of Claim G.1 limits the learned score, and when to stop?",
    revision=1,
    cells=cells,
    run=run,
    table=table,
    figures=figures,
    dims={
        "step": ("step",),
        "kernel_step": ("kernel_step",),
        **dict.fromkeys(("largest", "smallest", "stop_kernel"), ("n",)),
        **dict.fromkeys(
            ("kernel_validation", "kernel_error", "mismatch", "early", "bias", "noise"),
            ("n", "kernel_step"),
        ),
        **dict.fromkeys(("approximation", "squared_norm", "label_scale"), ()),
        **dict.fromkeys(
            ("network_validation", "network_error", "coupling", "moved"), ("width", "n", "step")
        ),
        "stop_network": ("width", "n"),
    },
    note=NOTE,
)
