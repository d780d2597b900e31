import numpy as np
import pytest

from liu2021analyzing.library.audit.audit_dataset import AUDIT_DIMS, audit_arrays, audit_dataset
from liu2021analyzing.library.audit.head_audit import ASKED, COMPARED
from liu2021analyzing.library.audit.head_rows import head_rows, theorem_2_applies
from liu2021analyzing.library.audit.ranked_bounds import PAPERS, ranked_bounds, ranked_dataset

SIZES = {
    "member": 2, "step": 3, "set": 2, "part": 2, "alpha": 9, "predictor": 2, "version": 2,
    "theorem": len(ASKED), "bound": len(COMPARED),
}  # fmt: skip
RISKS = (("error", "error"), ("ramp", "ramp risk"), ("risk", "logistic risk"))


@pytest.fixture
def audit():
    """An audit whose numbers are all different and positive."""
    draw = np.random.default_rng(0)
    return {
        name: draw.uniform(1, 2, [SIZES[dim] for dim in dims]) for name, dims in AUDIT_DIMS.items()
    }


def test_a_data_set_gives_back_the_arrays_of_the_audit(audit):
    data = audit_dataset(audit, np.array([0, 1, 9]))
    found = audit_arrays(data.expand_dims(n=[12]).sel(n=12).transpose())
    assert set(found) == set(audit)
    assert all(np.array_equal(found[name], audit[name]) for name in audit)
    assert np.array_equal(data.gap.sel(bound="log m"), audit["gap"][:, COMPARED.index("log m")])


def test_every_row_stands_at_its_paper_alone(audit):
    rows, data = ranked_bounds(audit), ranked_dataset(audit)
    for name, own in (("margins", rows.margins), ("gaps", rows.gaps)):
        assert np.all(np.isfinite(data[name]).sum("paper") == 1)
        for k, row in enumerate(own):
            assert np.array_equal(data[name].values[PAPERS.index(row.paper), k], row.values)
    assert {row.paper for each in rows for row in each} == set(PAPERS)


def test_theorem_2_needs_its_heads_and_its_step(audit):
    for name in ("bound_stability_heads", "bound_stability_heads_sharp"):
        audit[name] = -audit[name]
    audit["rate"] = np.array(0.5)
    assert theorem_2_applies(audit).all()
    assert ranked_dataset(audit).applies.all()
    audit["bound_step"] = np.zeros_like(audit["bound_step"])
    applies = ranked_dataset(audit).applies
    assert applies.where(~applies, drop=True).bound.values.tolist() == ["Theorem 2, printed"]


def test_rows_have_remarks_and_ordered_spreads(audit):
    rows = head_rows(audit, 12, 0.5)
    assert {row.paper for row in rows} == set(PAPERS)
    assert all(row.remark for row in rows)
    assert all(least <= median <= most for median, least, most in (row.spread for row in rows))
    lost = rows[0]._replace(values=np.full(2, np.nan))
    assert np.isnan(lost.spread).all()


def test_the_orbit_swings_from_its_least_to_its_largest_curvature(audit):
    (row,) = [row for row in head_rows(audit, 12, 0.5) if "along the orbit" in row.quantity]
    expected = [max(member) / min(member) for member in audit["land_orbit"].tolist()]
    np.testing.assert_allclose(row.values, expected, rtol=1e-15)


def test_rows_are_the_audit_s_numbers_at_the_last_record(audit):
    """Each row by the name of its array, logarithms and shares by hand."""
    audit["norms"], audit["svm_locally_optimal"] = audit["norms"] + 3, np.array([1.0, 0.0])
    audit["rate"] = np.array(0.3)
    rows = {row.quantity: row for row in head_rows(audit, 12, 0.7)}
    last = {name: a[:, -1] for name, a in audit.items() if a.ndim > 1}
    log10 = {"R_delta": np.log10(audit["svm_radius"])}
    expected = {
        **{f"{text}, {side}": last[name][:, k]
           for name, text in RISKS
           for k, side in enumerate(("training", "fresh samples"))},
        **{f"{text}, true gap": last[name][:, 1] - last[name][:, 0]
           for name, text in RISKS},
        "largest attention margin of the selected tokens": audit["svm_margin"],
        "attention margin of W / ||W||": last["selection"],
        "divergence from the attention SVM": last["svm_divergence"],
        "selected tokens that have the largest score": audit["svm_best_scores"],
        "largest attention margin of the best tokens": audit["svm_optimal_margin"],
        "log10 of the norm R_delta of the local theorem": log10["R_delta"],
        "margin of the trained head over the best found at its norm":
            audit["margin_reached"] / audit["margin_reachable"],
        "leave-one-out stability": last["stability"],
        "gap by measured stability (Lemma 3)": last["stability_gap"],
        "certified step times the largest curvature":
            [0.3 * max(member) for member in audit["land_curvature"].tolist()],
        "least eigenvalue of the tangent kernel at the start": audit["margin_smallest"][:, 0],
        "change of the kernel over its norm": last["margin_drift"],
        "change of the kernel over lambda / 2": last["margin_moved"],
        "error of kernel regression": audit["margin_errors"][:, 0],
        "error of the NTK's max-margin classifier": audit["margin_errors"][:, 1],
        "weights that hold 90% of a row's norm": last["land_s0"],
        "l2 norm of the top sqrt(T) weights": last["land_top"],
        "the same over the norm of the row": last["land_relative_top"],
        "attention on the relevant token": last["relevant_mass"],
        "(A3): variance of the labels' units unexplained": last["land_unexplained"],
        "largest Hessian eigenvalue": last["land_curvature"],
    }  # fmt: skip
    for k, v in enumerate(("printed", "corrected")):
        expected[f"log10 of the width of Theorem 4.2, {v}"] = audit["width"][:, k]
    for v, text in (("", "printed"), ("_sharp", "sharp")):
        expected[f"log10 of the heads that Theorem 2 requires, {text}"] = last[
            f"bound_stability_heads{v}"
        ]
        expected[f"training bound of Theorem 1, {text}"] = last[f"bound_training{v}"]
        expected[f"gap by Theorem 2, {text}"] = last[f"bound_gap{v}"]
    for k, name in enumerate(ASKED):
        expected[f"log10 of the samples of {name}"] = np.log10(audit["asked"][:, k])
    for k, name in enumerate(COMPARED):
        where = f"Theorem 4.1, {name}" if "," in name else name
        expected[f"gap of the ramp risk: {where}"] = audit["gap"][:, k]
        expected[f"log10 of the samples needed: {where}"] = np.log10(audit["needed"][:, k])
    for name, values in expected.items():
        np.testing.assert_allclose(rows[name].values, values, rtol=1e-14, err_msg=name)


def test_remarks_are_computed_from_the_audit(audit):
    audit["norms"], audit["svm_locally_optimal"] = audit["norms"] + 3, np.array([1.0, 0.0])
    rows = {row.quantity: row.remark for row in head_rows(audit, 12, 0.7)}
    middle = {name: np.median(a[:, -1]) for name, a in audit.items() if a.ndim == 2}
    assert rows["largest attention margin of the selected tokens"].endswith(
        f"{max(audit['svm_gap']):.0e}"
    )
    share = np.median(audit["selection"][:, -1] / audit["svm_margin"])
    assert f"median {share:.0%}" in rows["attention margin of W / ||W||"]
    start = np.median(audit["svm_divergence"][:, 0])
    assert rows["divergence from the attention SVM"].startswith(f"{start:.2f} at the start")
    assert "in 50% of the seeds" in rows["selected tokens that have the largest score"]
    norm = np.median(audit["norms"][:, -1, 1])
    assert f"||W|| = {norm:.1f} was" in rows["log10 of the norm R_delta of the local theorem"]
    kernel = rows["least eigenvalue of the tangent kernel at the start"]
    assert kernel == f"{middle['margin_smallest']:.2g} at the end"
    error = np.median(audit["error"][:, -1, 1])
    for name in ("error of kernel regression", "error of the NTK's max-margin classifier"):
        assert rows[name] == f"the trained head: {error:.3f}"
    assert (
        rows["weights that hold 90% of a row's norm"]
        == f"{audit['land_s0'][:, 0].mean():.1f} at first"
    )
    assert "squared error 0.49," in rows[f"log10 of the samples of {ASKED[0]}"]
    last = audit["ramp"][:, -1]
    gaps = last[:, 1] - last[:, 0]
    # Two values: Student's quantile with one degree of freedom times half their distance.
    half = np.tan(np.pi * 0.475) * abs(gaps[1] - gaps[0]) / 2
    expected = f"mean {gaps.mean():.3f} +- {half:.3f}, 95% over seeds"
    assert rows["ramp risk, true gap"] == expected


def test_bounds_are_vacuous_from_the_trivial_level(audit):
    """At the median; conditions are those of the last record alone, of all heads."""
    audit["rate"] = np.array(0.5)
    for v in ("", "_sharp"):
        audit[f"bound_stability_heads{v}"] *= -1
    audit["bound_stability_heads_sharp"][:, -1] = [-1.0, 1.0]
    audit["bound_gap"][:, -1] = audit["stability_gap"][:, -1] = [0.4, 0.9]
    audit["bound_gap_sharp"][:, -1] = np.log(2)
    audit["gap"] = np.full_like(audit["gap"], 1.0)
    audit["gap"][:, 1] = [0.3, 1.6]
    audit["needed"][0, 1] = np.inf
    rows = {row.quantity: row.remark for row in head_rows(audit, 12, 0.5)}
    assert rows["gap by measured stability (Lemma 3)"] == "non-vacuous"
    assert rows["gap by Theorem 2, printed"] == "non-vacuous"
    assert rows["gap by Theorem 2, sharp"] == "vacuous, and its conditions fail"
    assert rows[f"gap of the ramp risk: {COMPARED[0]}"] == "vacuous"
    assert rows[f"gap of the ramp risk: Theorem 4.1, {COMPARED[1]}"] == "non-vacuous"
    assert f"log10 of the samples needed: Theorem 4.1, {COMPARED[1]}" not in rows
    remarks = {row.quantity: row.remark for row in ranked_bounds(audit).gaps}
    assert remarks["Theorem 2, printed"] == ""
    assert remarks["Theorem 2, sharp"] == "conditions fail"


def test_the_share_of_records_where_theorem_2_says_something_leaves_the_start_out(audit):
    audit["rate"] = np.array(0.5)
    audit["bound_stability_heads_sharp"] = np.array([[-1.0, 0.0, -1.0], [-1.0, 1.0, -2.0]])
    audit["bound_step_sharp"] = np.array([[1.0, 0.5, 0.4], [1.0, 1.0, 1.0]])
    audit["bound_gap_sharp"] = np.array([[0.1, 0.6, 0.1], [0.1, 0.1, np.log(2)]])
    (row,) = [row for row in head_rows(audit, 12, 0.5) if "below log 2" in row.quantity]
    assert row.values.tolist() == [0.5, 0.0]


def test_ranked_rows_are_the_audit_s_numbers_at_the_last_record(audit):
    ranked = ranked_bounds(audit)
    rows = {row.quantity: row.values for part in ranked for row in part}
    expected = {
        "W, selected tokens": audit["selection"][:, -1],
        "measured stability, Lemma 3": audit["stability_gap"][:, -1],
        "Theorem 2, printed": audit["bound_gap"][:, -1],
        "Theorem 2, sharp": audit["bound_gap_sharp"][:, -1],
        "heads: Theorem 2, printed": audit["bound_stability_heads"][:, -1],
        "heads: Theorem 2, sharp": audit["bound_stability_heads_sharp"][:, -1],
        "units: Theorem 4.2, printed": audit["width"][:, 0],
        "units: Theorem 4.2, corrected": audit["width"][:, 1],
        "Theorem 4.1, (1,inf)": audit["gap"][:, COMPARED.index("1,inf sharp")],
        "parameter counting": audit["gap"][:, COMPARED.index("parameters")],
        **{f"true gap, {text}": audit[name][:, -1, 1] - audit[name][:, -1, 0]
           for name, text in RISKS},
        **{f"samples: {name}": np.log10(audit["asked"][:, k]) for k, name in enumerate(ASKED)},
        "samples: (2,1) corrected": np.log10(audit["needed"][:, COMPARED.index("2,1 corrected")]),
        "samples: log T": np.log10(audit["needed"][:, COMPARED.index("log T")]),
    }  # fmt: skip
    for name, values in expected.items():
        np.testing.assert_allclose(rows[name], values, rtol=1e-14, err_msg=name)


def test_a_stability_gap_from_log_2_on_is_vacuous_and_each_record_is_judged_by_its_own_bound(audit):
    audit["stability_gap"][:, -1] = 0.8
    audit["rate"], audit["bound_step_sharp"] = np.array(0.5), np.ones((2, 3))
    audit["bound_stability_heads_sharp"] = np.zeros((2, 3))
    audit["bound_gap_sharp"] = np.array([[0.1, 0.9, 0.1], [0.1, 0.1, 0.1]])
    rows = {row.quantity: row for row in head_rows(audit, 12, 0.5)}
    assert rows["gap by measured stability (Lemma 3)"].remark == "vacuous"
    (useful,) = [row.values for name, row in rows.items() if "below log 2" in name]
    assert useful.tolist() == [0.5, 1.0]
