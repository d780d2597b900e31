"""The command `attlas`: finds the commands of this folder and runs one.

A file `cli/<name>.py` that defines a function `<name>` (or `<name>_` if Python reserves the
name) is a command. These files import nothing heavy at the top, so that `--help` answers at
once; JAX is imported inside the functions. A command that is named is imported alone.
"""

import contextlib
import errno
import importlib
import io
import os
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
import typer.exceptions

from attlas import cli
from attlas._files.plain_file import printable
from attlas._jax.processes import look_for_cycles_seldom
from attlas.cli.session import EXIT_INTERRUPTED, Session, session_of
from attlas.core.errors import UserError, extra_needed

EXIT_REFUSED = 2
LONGEST_LINE = 1000
NOT_OURS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EIO, errno.ENOMEM),
    *(errno.EMFILE, errno.ENFILE, errno.ENODEV, errno.ENXIO, errno.ESTALE),
)
"""System errors that no check of the input can foresee."""

EXTRAS = {
    "audit": "audit",
    "certify": "site",
    "coverage": "site",
    "explore": "site",
    "list": "experiments",
    "mcp": "mcp",
    "report": "site",
    "run": "experiments",
}
"""The extra of attlas that has what a command needs beside the required dependencies."""

RESUMED = ("run",)
"""Commands that go on where they were interrupted."""

REMEDIES = {
    errno.ENAMETOOLONG: "name a shorter path",
    errno.ELOOP: "name a path without a circle of links",
    errno.ENOTDIR: "name a path through folders",
    errno.EISDIR: "name a file",
    errno.EMFILE: "allow more open files with `ulimit -n`",
    errno.ENOMEM: "free memory, or use fewer processes",
}


def build_app(named: str = "") -> typer.Typer:
    """The command line with every command of this folder, or with the named one alone.

    Examples:
        >>> "check" in [command.name for command in build_app().registered_commands]
        True
    """
    app = typer.Typer(
        help="The executable atlas of attention theory: every theorem runs.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_start)
    for name in (named,) if named else _files():
        module = importlib.import_module(f"{cli.__name__}.{name}")
        function = getattr(module, name, None) or getattr(module, f"{name}_", None)
        if callable(function):
            # A short help of its own is not cut to the width of the list.
            summary = " ".join((function.__doc__ or "").split("\n\n")[0].split())
            app.command(name, short_help=summary)(function)
    # A file of this folder need not define a command.
    return app if app.registered_commands else build_app()


def _files() -> tuple[str, ...]:
    """The modules of this folder that may define a command."""
    return tuple(info.name for info in pkgutil.iter_modules(cli.__path__) if info.name != "main")


def command_of(arguments: Sequence[str]) -> str:
    """The command that arguments name.

    Returns:
        Its name; empty where they do not begin with one, or with the folder of results and one.

    Examples:
        >>> command_of(["check", "lemma-12"]), command_of(["--help"])
        ('check', '')
    """
    skipped = 2 if list(arguments[:1]) == ["--results"] else 0
    first = "".join(arguments[skipped : skipped + 1])
    return first if first in _files() else ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 1 unexpected verdict, 2 refused input, 130 interrupted."""
    # Claims, solvers and bounds use float64; JAX reads this variable on import.
    precision = os.environ.setdefault("JAX_ENABLE_X64", "1")
    if precision.lower() not in ("0", "1", "false", "true", "off", "on", "no", "yes"):
        _refuse(f"JAX_ENABLE_X64={precision} is neither 0 nor 1: unset it", EXIT_REFUSED)
    # Threads that wait for each other sleep: those that spin instead take the core which the last
    # one waits for. OpenMP reads this variable when PyTorch, or another library, is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    # Figures go to files and need no window.
    os.environ["MPLBACKEND"] = "agg"
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path need not be text
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        command = command_of(words)
        with extra_needed(f"`attlas {command}`" if command else "attlas", EXTRAS.get(command, "")):
            code = build_app(command)(args=words, prog_name="attlas", standalone_mode=False)
    except UserError as error:
        if "--debug" in words:
            raise
        _refuse(str(error), EXIT_REFUSED)
    except typer.exceptions.TyperException as error:
        # `attlas` without arguments arrives here with the help as its message.
        if len(words) == 0:
            typer.echo(error.format_message())
            sys.exit(EXIT_REFUSED)
        message = error.format_message().strip().rstrip(".")
        _refuse(f"{message}. See `attlas --help`.", error.exit_code)
    except OSError as error:
        # A full disk or a missing permission is the machine's state, not our defect.
        if "--debug" in words or error.errno not in NOT_OURS:
            raise
        _abandon_output()
        where = f" ({error.filename})" if error.filename else ""
        remedy = REMEDIES.get(error.errno, "free space or rights there")
        _refuse(f"{error.strerror}{where}: {remedy}", EXIT_REFUSED)
    if code == EXIT_INTERRUPTED:
        again = "; the same command resumes" if command in RESUMED else ""
        _refuse(f"interrupted{again}", EXIT_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _refuse(message: str, code: int) -> NoReturn:
    """Print one line about what is wrong, and exit."""
    line = printable(message)
    if len(line) > LONGEST_LINE:
        line = f"{line[: LONGEST_LINE // 2]} ... {line[-LONGEST_LINE // 2 :]}"
    typer.echo(f"attlas: {line}", err=True)
    sys.exit(code)


def _abandon_output() -> None:
    """Discard output that a full disk refused; otherwise Python retries at exit."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"attlas {version('attlas')}")
        raise typer.Exit


def _start(
    context: typer.Context,
    results: Annotated[
        Path,
        typer.Option(
            envvar="ATTLAS_RESULTS",
            file_okay=False,
            metavar="DIR",
            help="Folder of records and verdicts.",
        ),
    ] = Path("attlas-results"),
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run the project here though another user owns it.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    look_for_cycles_seldom()
    if trust:
        from attlas.projects.places import TRUST

        os.environ[TRUST] = "1"  # worker processes read it as well
    session_of(context, Session(results=results, debug=debug))


if __name__ == "__main__":
    main()
