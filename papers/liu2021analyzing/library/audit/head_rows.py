r"""The audit of a head as a table: one row per measurement, with a remark."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from attlas.measures.statistics.student_interval import student_interval
from liu2021analyzing.library.audit.head_audit import ASKED, COMPARED


class HeadRow(NamedTuple):
    """One measurement.

    Attributes:
        paper: key of the paper, "truth" for observations.
        quantity: name of the measurement.
        values: one number per head.
        remark: a note beside the number.
    """

    paper: str
    quantity: str
    values: np.ndarray
    remark: str

    @property
    def spread(self) -> tuple[float, float, float]:
        """Median, least and largest of the values that are not NaN; NaN without any."""
        numbers = self.values[~np.isnan(self.values)].astype(float)
        if not numbers.size:
            return np.nan, np.nan, np.nan
        return float(np.median(numbers)), float(numbers.min()), float(numbers.max())


def head_rows(a: Mapping[str, np.ndarray], n: int, gamma: float) -> list[HeadRow]:
    r"""The rows of an audit.

    Args:
        a: arrays of `audit_heads`, and `relevant_mass`, the attention on the relevant token.
        gamma: root of the squared error that sample sizes were evaluated at.

    Returns:
        The rows, the truth first and then the papers in the order of the library.

    Examples:
        >>> HeadRow("truth", "error, true gap", np.array([0.25, 0.0, np.nan, 0.5]), "").spread
        (0.25, 0.0, 0.5)
    """
    return [
        *_truth(a), *_paper_1(a), *_paper_2(a), *_paper_3(a), *_paper_4(a), *_paper_5(a, n, gamma)
    ]  # fmt: skip


def theorem_2_applies(a: Mapping[str, np.ndarray], version: str = "_sharp") -> np.ndarray:
    r"""Where one head and the step that was used suffice for Theorem 2 of deora2023optimization.

    Args:
        a: arrays of `audit_heads`.
        version: "_sharp", or "" for the printed constants.

    Returns:
        One boolean per head and record, [H, R].

    Examples:
        >>> audit = {"bound_stability_heads": np.zeros((1, 2)), "rate": np.array(0.1)}
        >>> audit["bound_step"] = np.array([[0.2, 0.05]])
        >>> theorem_2_applies(audit, "").tolist()
        [[True, False]]
    """
    return (a[f"bound_stability_heads{version}"] <= 0) & (a["rate"] <= a[f"bound_step{version}"])


def _verdict(gap: np.ndarray, level: float, applies: bool = True) -> str:
    """Whether a bound on the gap is vacuous, and whether it applies."""
    text = "vacuous" if np.median(gap) >= level else "non-vacuous"
    return text if applies else f"{text}, and its conditions fail"


def _truth(a: Mapping[str, np.ndarray]) -> list[HeadRow]:
    """What happened."""
    rows = []
    for name, text in (("error", "error"), ("ramp", "ramp risk"), ("risk", "logistic risk")):
        last = a[name][:, -1]
        gap = last[:, 1] - last[:, 0]
        half = float(student_interval(gap).half_width)
        rows.append(HeadRow("truth", f"{text}, training", last[:, 0], "after the last step"))
        rows.append(HeadRow("truth", f"{text}, fresh samples", last[:, 1], "the same head"))
        remark = f"mean {gap.mean():.3f} +- {half:.3f}, 95% over seeds"
        rows.append(HeadRow("truth", f"{text}, true gap", gap, remark))
    return rows


def _paper_1(a: Mapping[str, np.ndarray]) -> list[HeadRow]:
    best, norm, gap = a["svm_margin"], a["norms"][:, -1, 1], a["svm_gap"].max()
    local = np.mean(a["svm_locally_optimal"])
    return [
        HeadRow("julistiono2024", "largest attention margin of the selected tokens", best,
             f"attention SVM, duality gap at most {gap:.0e}"),
        HeadRow("julistiono2024", "attention margin of W / ||W||", a["selection"][:, -1],
             f"median {np.median(a['selection'][:, -1] / best):.0%} of the largest"),
        HeadRow("julistiono2024", "divergence from the attention SVM", a["svm_divergence"][:, -1],
             f"{np.median(a['svm_divergence'][:, 0]):.2f} at the start; 0 is the same direction"),
        HeadRow("julistiono2024", "selected tokens that have the largest score",
             a["svm_best_scores"], f"locally optimal in {local:.0%} of the seeds"),
        HeadRow("julistiono2024", "largest attention margin of the best tokens",
             a["svm_optimal_margin"], "positive: the global theorem's SVM is feasible"),
        HeadRow("julistiono2024", "log10 of the norm R_delta of the local theorem",
             np.log10(a["svm_radius"]), f"||W|| = {np.median(norm):.1f} was reached"),
    ]  # fmt: skip


def _paper_2(a: Mapping[str, np.ndarray]) -> list[HeadRow]:
    share = a["margin_reached"] / a["margin_reachable"]
    holds, early = theorem_2_applies(a), a["bound_gap_sharp"] < np.log(2)
    rows = [
        HeadRow("deora2023", f"margin at norm sqrt(2): {text}", a[f"margin_{name}"], remark)
        for name, text, remark in (
            ("uniform", "W = 0", "a linear model on the mean token"),
            ("ntk", "NTK at the start", "of the linearised head, on its own scale"),
            ("best", "global, found", "a search: a lower bound"),
            ("ceiling", "global, ceiling", "certified upper bound"),
            ("flat", "linear on all tokens", "another model: 64 weights"),
        )
    ]
    rows += [
        HeadRow("deora2023", "margin of the trained head over the best found at its norm", share,
             "gradient descent does not reach the global margin"),
        HeadRow("deora2023", "leave-one-out stability", a["stability"][:, -1],
             "mean distance of the parameters"),
        HeadRow("deora2023", "gap by measured stability (Lemma 3)", a["stability_gap"][:, -1],
             _verdict(a["stability_gap"][:, -1], np.log(2))),
    ]  # fmt: skip
    for version in ("", "_sharp"):
        name = "sharp" if version else "printed"
        gap, ok = a[f"bound_gap{version}"][:, -1], bool(theorem_2_applies(a, version)[:, -1].all())
        rows += [
            HeadRow("deora2023", f"log10 of the heads that Theorem 2 requires, {name}",
                 a[f"bound_stability_heads{version}"][:, -1], "there is 1"),
            HeadRow("deora2023", f"training bound of Theorem 1, {name}",
                 a[f"bound_training{version}"][:, -1], "its heads are missing"),
            HeadRow("deora2023", f"gap by Theorem 2, {name}", gap, _verdict(gap, np.log(2), ok)),
        ]  # fmt: skip
    useful = np.mean(holds[:, 1:] & early[:, 1:], axis=1)
    return [
        *rows,
        HeadRow("deora2023", "records where Theorem 2 applies and is below log 2, sharp", useful,
                "as a share"),
        HeadRow("deora2023", "certified step times the largest curvature",
                a["rate"] * a["land_curvature"].max(axis=1), "below 2: stable"),
    ]  # fmt: skip


def _paper_3(a: Mapping[str, np.ndarray]) -> list[HeadRow]:
    error = np.median(a["error"][:, -1, 1])
    return [
        HeadRow("gu2024", "least eigenvalue of the tangent kernel at the start",
             a["margin_smallest"][:, 0],
             f"{np.median(a['margin_smallest'][:, -1]):.2g} at the end"),
        HeadRow("gu2024", "change of the kernel over its norm", a["margin_drift"][:, -1],
             "training is not lazy"),
        HeadRow("gu2024", "change of the kernel over lambda / 2", a["margin_moved"][:, -1],
             "above 1 the proof's induction ends"),
        HeadRow("gu2024", "error of kernel regression", a["margin_errors"][:, 0],
             f"the trained head: {error:.3f}"),
        HeadRow("gu2024", "error of the NTK's max-margin classifier", a["margin_errors"][:, 1],
             f"the trained head: {error:.3f}"),
        HeadRow("gu2024", "log10 of the width of Theorem 4.2, printed", a["width"][:, 0],
             "for a softmax network with this lambda"),
        HeadRow("gu2024", "log10 of the width of Theorem 4.2, corrected", a["width"][:, 1],
             "the same, B for all units"),
    ]  # fmt: skip


def _paper_4(a: Mapping[str, np.ndarray]) -> list[HeadRow]:
    rows = []
    for k, name in enumerate(COMPARED):
        where = f"Theorem 4.1, {name}" if "," in name else name
        gap, needed = a["gap"][:, k], a["needed"][:, k]
        rows.append(
            HeadRow("trauger2023", f"gap of the ramp risk: {where}", gap, _verdict(gap, 1.0))
        )
        if np.isfinite(needed).all():
            rows.append(HeadRow("trauger2023", f"log10 of the samples needed: {where}",
                             np.log10(needed), "for a gap below 1"))  # fmt: skip
    return rows


def _paper_5(a: Mapping[str, np.ndarray], n: int, gamma: float) -> list[HeadRow]:
    last = {name: a[f"land_{name}"][:, -1] for name in
            ("s0", "top", "relative_top", "unexplained", "curvature")}  # fmt: skip
    swing = a["land_orbit"].max(axis=1) / a["land_orbit"].min(axis=1)
    return [
        HeadRow("liu2021", "weights that hold 90% of a row's norm", last["s0"],
             f"{a['land_s0'][:, 0].mean():.1f} at first"),
        HeadRow("liu2021", "l2 norm of the top sqrt(T) weights", last["top"], "rows of sum 1"),
        HeadRow("liu2021", "the same over the norm of the row", last["relative_top"], "(A4)"),
        HeadRow("liu2021", "attention on the relevant token", a["relevant_mass"][:, -1], "fresh"),
        HeadRow("liu2021", "(A3): variance of the labels' units unexplained", last["unexplained"],
             "on fresh samples, as a share; the theorems take it for 0"),
        HeadRow("liu2021", "largest Hessian eigenvalue", last["curvature"], "of the training risk"),
        HeadRow("liu2021", "largest over least along the orbit", swing,
             "the same function, alpha from 0.1 to 10"),
        *(
            HeadRow("liu2021", f"log10 of the samples of {name}", np.log10(a["asked"][:, k]),
                 f"squared error {gamma**2:g}, hidden constant 1; there are {n}")
            for k, name in enumerate(ASKED)
        ),
    ]  # fmt: skip
