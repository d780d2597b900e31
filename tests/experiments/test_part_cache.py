"""Parts of a cell that no training makes: computed once, also over two processes."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr

from attlas.core.checkpoint import checkpointed
from attlas.experiments.checkpoint_files import CheckpointFiles
from attlas.experiments.part_cache import cached_part
from attlas.training.fit import fit
from julistiono2024optimizing.experiments.path import EXPERIMENT


def square(w, _):
    return jnp.sum(w**2)


CALLS: list[int] = []


def part(n: int, name: str = "") -> xr.Dataset:
    CALLS.append(n)
    # A training of its own: it takes no number of those that follow the part.
    last = fit(square, optax.sgd(0.1), jnp.full(2, float(n)), steps=3).last
    arrays = {"w": ("entry", np.asarray(last)), "even": ((), n % 2 == 0)}
    return xr.Dataset(arrays, {"entry": ["a", "b"], "n": n}).expand_dims("n")


def other(n: int) -> xr.Dataset:
    return part(n)


@pytest.fixture(autouse=True)
def _no_calls():
    CALLS.clear()


def cell() -> xr.Dataset:
    parts = [cached_part(part, n) for n in range(4)]
    last = fit(square, optax.sgd(0.1), jnp.asarray(parts[3].w.values[0]), steps=5).last
    return xr.concat(parts, "n").assign(last=("entry", np.asarray(last)))


@pytest.mark.thorough
def test_parts_that_are_kept_are_not_computed_again(tmp_path):
    plain = cell()
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0) as first:
        whole = cell()
    assert CALLS == [0, 1, 2, 3] * 2
    xr.testing.assert_identical(whole, plain)
    # As if it had been killed within the third part.
    for lost in sorted((tmp_path / "k").glob("*.json"))[2:]:
        lost.unlink()
    CALLS.clear()
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0) as second:
        again = cell()
    assert CALLS == [2, 3]
    xr.testing.assert_identical(again, whole)
    assert again.entry.dtype == plain.entry.dtype
    assert (second.resumed, second.made) == (2, first.made - 2)


@pytest.mark.parametrize("again", [(part, 2, "a"), (part, 1, "b"), (other, 1)])
def test_a_part_of_other_arguments_or_another_function_is_not_used(tmp_path, again):
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0):
        cached_part(part, 1, "a")
    for arguments, calls in (((part, 1, "a"), []), (again, [again[1]])):
        CALLS.clear()
        with checkpointed(CheckpointFiles(tmp_path / "k", {}), 1e9):
            found = cached_part(*arguments)
        assert calls == CALLS
        assert found.n.values.tolist() == [arguments[1]]


def test_attributes_are_refused_not_lost(tmp_path):
    with (
        checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0),
        pytest.raises(ValueError, match="attributes"),
    ):
        cached_part(lambda: xr.Dataset(attrs={"models": 1}))


@pytest.mark.thorough
def test_a_path_goes_on_from_the_scope_that_was_kept(tmp_path):
    (own,) = EXPERIMENT.cells("smoke")
    plain, layout = EXPERIMENT.computed(own)
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0):
        EXPERIMENT.computed(own)
    files = sorted((tmp_path / "k").glob("*.json"))
    assert len(files) == 2
    files[1].unlink()
    with checkpointed(CheckpointFiles(tmp_path / "k", {}), 0.0) as second:
        arrays, resumed = EXPERIMENT.computed(own)
    assert (second.resumed, second.made) == (1, 1)
    assert resumed == layout
    for name, array in plain.items():
        np.testing.assert_array_equal(arrays[name], array)
    assert jax.config.jax_enable_x64
