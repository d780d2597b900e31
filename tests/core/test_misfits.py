from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import jax
import numpy as np
import pytest
import xarray as xr
from jaxtyping import Float

from attlas.claims.report_text import report_text
from attlas.core.errors import UserError, refuse_misfits, refuse_unreadable
from attlas.core.misfits import misfits
from attlas.experiments.panels.summary import mean
from attlas.verify.check import check


class Limit(NamedTuple):
    value: float
    of: str


@dataclass(frozen=True)
class Summary:
    limits: tuple[Limit, ...]
    level: float | None = None
    kind: Literal["held out", "compressed"] = "held out"
    shares: Float[np.ndarray, " n"] | None = None


GOOD = Summary((Limit(0.5, "a"),), shares=np.ones(2))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"limits": None}, "s.limits is None: give a tuple"),
        ({"limits": (Limit(0.5, 3),)}, "s.limits[0].of is an int: give a str"),
        ({"limits": (None,)}, "s.limits[0] is None: give a Limit"),
        ({"limits": "ab"}, "s.limits is a str: give a tuple"),
        ({"level": "high"}, "s.level is a str: give a float"),
        ({"level": 10**400}, "s.level is beyond the largest float: give a smaller number"),
        ({"shares": ["a"]}, "s.shares is a list: give an array [n]"),
        ({"shares": [1.0]}, "s.shares is a list: give an array [n]"),
        ({"shares": np.ones((2, 2))}, "s.shares is an array of shape (2, 2): give an array [n]"),
        ({"kind": "other"}, "s.kind is a str: give a Literal"),
        ({}, ""),
    ],
)
def test_the_field_of_another_type_is_named(changes, line):
    assert next(misfits(Summary, replace(GOOD, **changes), "s"), "") == line


def test_a_type_that_only_checkers_import_is_compared_by_name():
    assert list(misfits("Limit | None", None, "x")) == []
    assert list(misfits("Limit | None", GOOD.limits[0], "x")) == []
    assert list(misfits("Limit | None", 1, "x")) == ["x is an int: give a Limit | None"]


def test_an_error_of_arguments_that_fit_passes_unchanged():
    @refuse_misfits
    def share(of: dict[str, int]) -> int:
        return 1 // of["n"]

    for arguments, error in (({"n": 0}, ZeroDivisionError), ({}, KeyError)):
        with pytest.raises(error):
            share(arguments)
        with pytest.raises(UserError, match=f"^share cannot use what its .*{error.__name__}"):
            refuse_unreadable(share)(arguments)
    with pytest.raises(UserError, match=r"^share: of\['n'\] is a str: give an int$") as refused:
        share({"n": "a"})
    assert isinstance(refused.value.__cause__, TypeError)


PLANTED = {
    "a lookup in something of its own": lambda data: {"a": 1}["b"] + len(data),
    "an index": lambda data: [1, 2][len(data)],
    "a division": lambda data: len(data) // (len(data) - data["n"]),
    "an attribute": lambda data: None.shape,  # pyright: ignore
    "a conversion": lambda data: int("a") + len(data),
    "axes": lambda data: np.ones((2, 3)) @ np.ones(2),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_fault_of_the_function_itself_passes_with_its_traceback(fault):
    def faulty(data: dict[str, int]) -> object:
        return PLANTED[fault](data)

    good = {"n": 2, "m": 3}
    with pytest.raises(Exception) as plain:  # noqa: PT011 (each has another class)
        faulty(good)
    with pytest.raises(Exception) as wrapped:  # noqa: PT011
        refuse_unreadable(faulty)(good)
    assert type(wrapped.value) is type(plain.value)
    assert str(wrapped.value) == str(plain.value)
    assert not isinstance(wrapped.value, UserError)


def test_arrays_of_other_lengths_are_named_once_a_call_has_failed():
    @refuse_misfits
    def product(A: Float[np.ndarray, "n d"], x: Float[np.ndarray, " d"]) -> np.ndarray:
        return A @ x

    assert product(np.ones((2, 3)), np.ones(3)).tolist() == [3, 3]
    with pytest.raises(UserError, match=r"^product: x has shape \(4,\): give \[d\] with d = 3"):
        product(np.ones((2, 3)), np.ones(4))


def test_an_error_while_a_program_is_traced_is_jaxs_own():
    @refuse_misfits
    def positive(x: Float[np.ndarray, " n"]) -> bool:
        return bool(x[0] > 0)

    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(positive)(np.ones(2))


def test_a_spoilt_report_and_a_spoilt_data_set_are_one_line():
    report = check("lemma-12", count=4)
    with pytest.raises(UserError, match=r"^verdict_text: verdict is None: give a Verdict$"):
        report_text(replace(report, verdict=None))
    with pytest.raises(UserError, match=r"^mean cannot use what .*: values has entries of"):
        mean(xr.DataArray(["a"], dims="k"))
