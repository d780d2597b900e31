"""What every command begins with: the global options, and a machine on which JAX starts."""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

import typer

from attlas._files.file_changes import make_folder
from attlas.core.errors import UserError

PLACES = "local|dask|dask://HOST:PORT|tls://HOST:PORT"
"""Values of `--on`."""
EFFORT = typer.Option(
    min=0.01, metavar="X", help="Multiply the budget of each search, two processor seconds, by X."
)
"""The option that grants a search more or less."""
EXIT_INTERRUPTED = 130
"""The exit code that shells expect after Ctrl-C."""


@dataclass(frozen=True)
class Session:
    """The global options; the folder `results` need not exist."""

    results: Path = Path("attlas-results")
    debug: bool = False


def session_of(context: typer.Context, opened: Session | None = None) -> Session:
    """The session of a command; the application sets it with `opened`."""
    if opened is not None:
        context.obj = opened
    return context.obj if isinstance(context.obj, Session) else Session()


USUAL = {
    "JAX_PLATFORMS": ("", "cpu"),
    "XLA_FLAGS": ("",),
}
"""Values of variables under which JAX is known to start; others are tried first."""
_START = """
import sys
try:
    import jax
    jax.devices()
except Exception as error:
    sys.exit(str(error) or type(error).__name__)
"""


def require_machine() -> None:
    """Refuse, in one line, a machine on which every claim and cell would fail.

    Raises:
        UserError: if the cache of compiled programs belongs to another user, if it or the folder of
            temporary files cannot be written, or if JAX does not start under the variables that the
            user has set.
    """
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        _require_cache()
    if "TMPDIR" in os.environ:
        folder = Path(os.environ["TMPDIR"])
        if not folder.is_dir():
            raise UserError(f"TMPDIR {folder} is not a folder: name one that is, or unset it")
        _require_folder("TMPDIR", folder, "name another, or unset it")
    refusal = jax_refusal()
    if refusal:
        raise UserError(f"{refusal}: unset the variable")


def _require_cache() -> None:
    """Prepare the cache of compiled programs, which are code: that of another user is refused."""
    from attlas._files.bounded_cache import tidy_entries
    from attlas._jax.processes import CACHE_BYTES, CACHE_END, compile_cache, is_whole_program
    from attlas.projects.places import current_users, is_theirs

    folder, remedy = compile_cache(), "name another with ATTLAS_CACHE=DIR"
    _require_folder("the cache of compiled programs", folder, remedy)
    if not is_theirs(folder, current_users()):
        raise UserError(
            f"the cache of compiled programs {folder} belongs to another user, whose programs "
            f"would run here: {remedy}, or say `attlas --trust`"
        )
    tidy_entries(folder, CACHE_END, CACHE_BYTES, is_whole_program)


def _require_folder(what: str, folder: Path, remedy: str) -> None:
    try:
        make_folder(folder)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = error.strerror or str(error)
        raise UserError(f"{what} {folder} cannot be written ({why}): {remedy}") from error


def jax_refusal() -> str:
    """Why JAX does not start under the user's variables; empty if it starts or has started."""
    unusual = [n for n, usual in USUAL.items() if os.environ.get(n, usual[0]) not in usual]
    if not unusual or "jax" in sys.modules:
        return ""
    # In another process: a wrong flag ends the process, and this one should not hold a device.
    done = subprocess.run(
        [sys.executable, "-c", _START], capture_output=True, text=True, errors="replace"
    )
    if not done.returncode:
        return ""
    settings = " and ".join(f"{name}={os.environ[name]}" for name in unusual)
    lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
    why = shorten(lines[-1], 160, placeholder=" ...")
    return f"JAX does not start with {settings} ({why})"
