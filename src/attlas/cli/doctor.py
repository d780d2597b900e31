"""`attlas doctor`: the state of this machine, what is missing, and commands that fix it."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer

from attlas.cli.session import jax_refusal, session_of

Row = tuple[str, str, str]
"""An item, its value here, and the command that fixes it (empty when fine)."""


def doctor(context: typer.Context) -> None:
    """Show versions, devices, precision, data, folders, and what is missing."""
    from attlas.display.terminal import show_table

    rows = [*_versions(), *_arithmetic(), *_folders(session_of(context).results), *_data()]
    show_table(("item", "value", "fix"), rows, always=("value", "fix"))


def _versions() -> Iterator[Row]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    yield "python", platform.python_version(), ""
    for package in ("attlas", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "clarabel"):
        yield package, version(package), ""
    optional = {"torch": "pip install torch==2.13.0", "cvxpy": "pip install cvxpy"}
    for package, fix in optional.items():
        try:
            yield f"{package} (benchmarks)", version(package), ""
        except PackageNotFoundError:
            yield f"{package} (benchmarks)", "missing", fix


def _arithmetic() -> Iterator[Row]:
    refusal = jax_refusal()
    if refusal:
        yield "device", refusal, "unset the variable"
        return
    import jax

    from attlas.core.memory import device_memory

    for device in jax.devices():
        yield "device", f"{device.platform} {device.device_kind}", ""
    if memory := device_memory():
        yield "device memory", f"{memory.limit / 2**30:.1f} GiB for this process", ""
    yield "cores", str(os.cpu_count()), ""
    precision = str(jax.numpy.ones(()).dtype)
    yield "precision", precision, "" if precision == "float64" else "unset JAX_ENABLE_X64"


def _folders(results: Path) -> Iterator[Row]:
    from attlas._jax.processes import compile_cache

    for name, folder, fix in (
        ("results folder", results, "name another with --results DIR"),
        ("compilation cache", compile_cache(), "name another with ATTLAS_CACHE=DIR"),
    ):
        refusal = _write_refusal(folder)
        value = f"{folder}, writable" if refusal is None else f"{folder}: {refusal}"
        yield name, value, "" if refusal is None else fix


def _write_refusal(folder: Path) -> str | None:
    """Why the folder, or the nearest existing one above it, cannot be written; else None."""
    existing = folder.absolute()
    try:
        while not existing.exists():
            existing = existing.parent
        with tempfile.TemporaryFile(dir=existing):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _data() -> Iterator[Row]:
    from attlas.data.sources import data_folder, is_present, list_sets

    yield "data folder", str(data_folder()), ""
    for data_set in list_sets():
        if is_present(data_set):
            yield f"data: {data_set.name}", "present", ""
        else:
            fetch = f"attlas data fetch {data_set.name}"
            yield (
                f"data: {data_set.name}",
                "absent",
                fetch if data_set.remotes else "set ATTLAS_DATA",
            )
