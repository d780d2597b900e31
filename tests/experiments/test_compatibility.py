"""A worker is asked for all that could make its results others than those of the driver."""

from dataclasses import replace
from importlib.metadata import version

import pytest

from attlas.experiments.compatibility import (
    LIBRARIES,
    Incompatible,
    compatibility,
    incompatibility,
    run_if_compatible,
)

HERE = compatibility(["json"])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"code": "f" * 64}, "runs other code of attlas"),
        ({"modules": ("json", "gone")}, "cannot import gone"),
        ({"sources": "f" * 64}, "has other sources of json"),
    ],
)
def test_what_is_otherwise_is_a_few_words(changed, said):
    assert incompatibility(replace(HERE, **changed)).startswith(said)
    assert incompatibility(HERE) == ""


def test_all_versions_that_differ_are_in_one_line():
    assert HERE.versions == tuple(version(name) for name in LIBRARIES)
    said = incompatibility(replace(HERE, versions=("0.1", HERE.versions[1], "1.0")))
    jax, numpy = version("jax"), version("numpy")
    assert said.startswith(
        f"has jax {jax} (the driver has 0.1), numpy {numpy} (the driver has 1.0)"
    )


def test_an_unlike_worker_computes_nothing():
    def never():
        raise AssertionError

    found = run_if_compatible(replace(HERE, code="f" * 64), never)
    assert isinstance(found, Incompatible)
    assert found.host
    assert run_if_compatible(None, max, 1, 2) == run_if_compatible(HERE, max, 1, 2) == 2
