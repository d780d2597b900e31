"""What a worker elsewhere has in common with the driver, so that it computes the same."""

import importlib.metadata
import platform
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from attlas.experiments.environment import code_hash
from attlas.experiments.worker import import_refusal, own_sources

LIBRARIES = ("jax", "jaxlib", "numpy")
"""Whose other version may round in another way, or have other random numbers."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Likeness:
    """What must be alike.

    Attributes:
        code: see `attlas.experiments.environment.code_hash`.
        versions: of `LIBRARIES`, in their order.
        modules: that the worker imports.
        sources: see `attlas.experiments.worker.own_sources`.
    """

    code: str
    versions: tuple[str, ...]
    modules: tuple[str, ...]
    sources: str


@dataclass(frozen=True)
class Unlike:
    """What a worker gives in place of a result.

    Attributes:
        why: see `unlikeness`.
        host: its machine.
    """

    why: str
    host: str


def likeness(modules: Collection[str]) -> Likeness:
    """What workers must have in common with this process.

    Args:
        modules: that they import; dotted names, or files of the user's own.

    Returns:
        The code, versions and sources of this process.

    Examples:
        >>> likeness(["json"]).modules
        ('json',)
    """
    named = tuple(sorted(modules))
    return Likeness(code_hash(), _versions(), named, own_sources(named))


@cache
def unlikeness(driver: Likeness) -> str:
    """What this process lacks or has otherwise; found out once.

    Args:
        driver: what the driver has.

    Returns:
        A few words with a remedy; empty where the processes are alike.

    Examples:
        >>> unlikeness(likeness(["json"]))
        ''
        >>> from dataclasses import replace
        >>> unlikeness(replace(likeness(["json"]), modules=("gone",)))
        "cannot import gone (No module named 'gone'): put the package on its PYTHONPATH"
    """
    if driver.code != code_hash():
        return (
            f"has other code of attlas ({code_hash():.12}, here {driver.code:.12}): install there "
            "what runs here"
        )
    others = [
        f"{name} {there} (here {here})"
        for name, there, here in zip(LIBRARIES, _versions(), driver.versions, strict=True)
        if there != here
    ]
    if others:
        return f"has {', '.join(others)}: install there what runs here"
    refusal = import_refusal(driver.modules)
    if refusal:
        return f"cannot import {refusal}: put the package on its PYTHONPATH"
    sources = own_sources(driver.modules)
    if sources != driver.sources:
        return (
            f"has other sources of {', '.join(driver.modules)} ({sources:.12}, here "
            f"{driver.sources:.12}): copy the files there and restart it"
        )
    return ""


def alike(
    driver: Likeness | None, function: Callable[..., Result], *args: object
) -> Result | Unlike:
    """A function on a worker that is like the driver: also one that joined after the door.

    Args:
        driver: what the driver has; None where workers are processes of its own.
        function: what to compute.
        args: its arguments.

    Returns:
        The result, or why there is none.

    Examples:
        >>> alike(likeness(["json"]), abs, -1)
        1
        >>> from dataclasses import replace
        >>> alike(replace(likeness(["json"]), sources="0" * 64), abs, -1).why
        'has other sources of json (..., here 000000000000): copy the files there and restart it'
    """
    why = unlikeness(driver) if driver else ""
    return Unlike(why, platform.node()) if why else function(*args)


def _versions() -> tuple[str, ...]:
    return tuple(importlib.metadata.version(name) for name in LIBRARIES)
