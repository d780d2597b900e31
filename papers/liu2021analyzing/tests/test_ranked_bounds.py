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
