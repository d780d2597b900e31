"""Environment compatibility: whether a remote worker computes the same numbers as the driver."""

import importlib.metadata
import platform
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from attlas.experiments.environment import code_hash
from attlas.experiments.worker import import_refusal, package_sources

LIBRARIES = ("jax", "jaxlib", "numpy")
"""Another version of these may round differently or draw other random numbers."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Compatibility:
    """Code, versions of libraries and sources that must agree."""

    code: str
    versions: tuple[str, ...]
    modules: tuple[str, ...]
    sources: str


@dataclass(frozen=True)
class Incompatible:
    """A worker's reason for not computing a result."""

    why: str
    host: str


def compatibility(modules: Collection[str]) -> Compatibility:
    """The code, versions and sources of this process, which workers must share.

    Args:
        modules: dotted names or files of the user's that workers import.

    Examples:
        >>> compatibility(["json"]).modules
        ('json',)
    """
    named = tuple(sorted(modules))
    return Compatibility(code_hash(), _versions(), named, package_sources(named))


@cache
def incompatibility(driver: Compatibility) -> str:
    """How this process differs from the driver, with a remedy; empty if they are compatible.

    Examples:
        >>> incompatibility(compatibility(["json"]))
        ''
        >>> from dataclasses import replace
        >>> incompatibility(replace(compatibility(["json"]), modules=("gone",)))
        "cannot import gone (No module named 'gone'): put the package on its PYTHONPATH"
    """
    if driver.code != code_hash():
        return (
            f"runs other code of attlas ({code_hash():.12}, the driver {driver.code:.12}): install "
            "the driver's version there"
        )
    others = [
        f"{name} {there} (the driver has {local})"
        for name, there, local in zip(LIBRARIES, _versions(), driver.versions, strict=True)
        if there != local
    ]
    if others:
        return f"has {', '.join(others)}: install the driver's versions there"
    refusal = import_refusal(driver.modules)
    if refusal:
        return f"cannot import {refusal}: put the package on its PYTHONPATH"
    sources = package_sources(driver.modules)
    if sources != driver.sources:
        return (
            f"has other sources of {', '.join(driver.modules)} ({sources:.12}, the driver "
            f"{driver.sources:.12}): copy the files there and restart the worker"
        )
    return ""


def run_if_compatible(
    driver: Compatibility | None, function: Callable[..., Result], *args: object
) -> Result | Incompatible:
    """Call a function on a worker if it is compatible with the driver, also if it joined late.

    Args:
        driver: what the driver has; None if the workers are the driver's own processes.

    Examples:
        >>> run_if_compatible(compatibility(["json"]), abs, -1)
        1
        >>> from dataclasses import replace
        >>> run_if_compatible(replace(compatibility(["json"]), sources="0" * 64), abs, -1).why
        'has other sources of json (..., the driver 000000000000): copy the files there and ...'
    """
    why = incompatibility(driver) if driver else ""
    return Incompatible(why, platform.node()) if why else function(*args)


def _versions() -> tuple[str, ...]:
    return tuple(importlib.metadata.version(name) for name in LIBRARIES)
