import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.transformers.lazy_tensors import LazyTensors, Unread, tensors_of_files
from attlas.transformers.safetensors_file import SafetensorsFile
from attlas.transformers.write_safetensors import write_safetensors


def lazy(tmp_path, tensors, dtype=None):
    file = SafetensorsFile(write_safetensors(tmp_path / "m.safetensors", tensors))
    return LazyTensors(tensors_of_files([file]), dtype)


@pytest.mark.parametrize(
    ("kinds", "working"),
    [
        (["f2"], "float32"),
        ([jnp.bfloat16, "f2"], "float32"),
        (["f4", "f2"], "float32"),
        (["f8", "f4"], "float64"),
        (["i8"], "float32"),
    ],
)
def test_the_working_type_is_the_widest_and_never_a_half(tmp_path, kinds, working):
    arrays = {str(i): np.ones(2, np.dtype(kind)) for i, kind in enumerate(kinds)}
    tensors = lazy(tmp_path, arrays)
    assert tensors.dtype == working
    for name, array in arrays.items():
        assert tensors[name].dtype == (working if array.dtype.kind != "i" else array.dtype)


def test_halves_become_wider_without_loss(tmp_path):
    numbers = np.arange(2**16, dtype="u2")
    for kind in ("f2", jnp.bfloat16):
        every = numbers.view(np.dtype(kind))
        finite = every[np.isfinite(every.astype("f4"))]
        tensors = lazy(tmp_path, {"W": finite})
        assert tensors["W"].dtype == np.float32
        assert tensors["W"].astype(kind).tobytes() == finite.tobytes()


def test_counting_reads_nothing():
    def read(dtype):
        raise AssertionError("read")

    tensors = LazyTensors(
        {
            "W": Unread((3, 4), np.dtype("f4"), "file", read),
            "scalar": Unread((), np.dtype("f2"), "file", read),
            "ids": Unread((7,), np.dtype("i8"), "file", read),
        }
    )
    assert tensors.parameters == 13
    assert tensors.shapes == {"W": (3, 4), "scalar": (), "ids": (7,)}
    assert "W" in tensors
    assert "V" not in tensors
    assert list(tensors) == ["W", "scalar", "ids"]
    assert "13 numbers" in repr(tensors)
    with pytest.raises(KeyError):
        tensors["V"]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_tensor_with_nan_is_named_when_it_is_read(tmp_path, wrong):
    array = np.ones((2, 3), "f4")
    array[1, 2] = wrong
    tensors = lazy(tmp_path, {"good": np.ones(2, "f4"), "layers.3.bad": array})
    assert tensors["good"].tolist() == [1.0, 1.0]
    with pytest.raises(UserError, match=r"m.safetensors: tensor 'layers.3.bad' has 1 entries"):
        tensors["layers.3.bad"]


def test_numbers_that_overflow_the_working_type_are_refused(tmp_path):
    tensors = lazy(tmp_path, {"W": np.array([1e300, 1.0])}, np.dtype("f4"))
    with (
        np.errstate(over="ignore"),
        pytest.raises(UserError, match="'W' has 1 entries that are NaN or infinite as float32"),
    ):
        tensors["W"]


def test_two_files_with_one_name_are_refused(tmp_path):
    files = [SafetensorsFile(write_safetensors(tmp_path / n, {"W": [1.0]})) for n in "ab"]
    with pytest.raises(UserError, match=r"b holds tensor 'W', and so does .*a: keep one"):
        tensors_of_files(files)
