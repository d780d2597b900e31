"""What the table and the caption make of uncertified points."""

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from julistiono2024optimizing.experiments.path import EXPERIMENT

EXPONENTS = [1.75, 2.0, 3.0]


def dataset(exponents: list[float]) -> xr.Dataset:
    """Two problems, three radii; the last radius of the second problem is not certified."""
    radius = np.array([4.0, 8.0, 16.0])
    certified = np.array([[True, True, True], [True, True, False]])
    parts = []
    for p in exponents:
        divergence = np.full((3, 2, 3), 0.5)
        divergence[EXPONENTS.index(p)] = 1 / radius**2
        divergence[:, ~certified] = np.nan
        along = ("member", "radius")
        one = xr.Dataset(
            {
                "divergence": (("q", *along), divergence),
                "to_global": (along, np.where(certified, 1.0, np.nan)),
                "on_border": (along, ~certified),
                "certified": (along, certified),
                "gap": (along, np.where(certified, 1e-9, 0.1)),
            },
            {"q": EXPONENTS, "radius": radius, "member": [0, 1]},
        )
        parts += [one.expand_dims(p=[p], scope=["global"]), one.expand_dims(p=[p], scope=["local"])]
    whole = xr.combine_by_coords(parts)
    assert isinstance(whole, xr.Dataset)
    return whole


def test_uncertified_points_are_left_out_and_counted():
    rows = EXPERIMENT.table(dataset([2.0])).to_dict("records")
    assert [row["path"] for row in rows] == ["global", "local"]
    for row in rows:
        assert row["not certified"] == "1 of 6"
        assert row["own p nearest"] == "2 of 2"
        assert row["D to own, R = 4 norms"] == 1 / 16
        # The last certified ones are at 16 and at 8.
        assert row["D to own, last"] == (1 / 16**2 + 1 / 8**2) / 2
        assert row["largest gap kept"] == 1e-9
    # The point on the border is not certified, hence not counted.
    assert rows[1]["on the border of the cone"] == 0
    (figure,) = EXPERIMENT.drawn(dataset(EXPONENTS))
    assert "leave out 6 of 36 points" in figure.caption
    assert "6 of 6 global paths" in figure.caption
    plt.close(figure.figure)
