"""The command line answers in one line, with the right exit code, and answers at once."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import attlas.__main__ as module_entry
from attlas.cli import main as command_line
from attlas.cli.manual import manual_page
from attlas.core.errors import UserError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def attlas(capsys):
    """Run the command line in this process: exit code, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            command_line.main(arguments)
        shown = capsys.readouterr()
        return int(left.value.code or 0), shown.out, shown.err

    return run


def app_that_raises(error: BaseException) -> typer.Typer:
    app = typer.Typer()

    @app.command()
    def only() -> None:
        raise error

    return app


def test_bad_input_is_one_line_and_code_2(attlas, monkeypatch):
    refusal = UserError("p = 1 is not above 1:\n choose 1 < p < inf")
    monkeypatch.setattr(command_line, "build_app", lambda _: app_that_raises(refusal))
    assert attlas() == (2, "", "attlas: p = 1 is not above 1: choose 1 < p < inf\n")


def test_debug_shows_the_traceback(monkeypatch):
    monkeypatch.setattr(command_line, "build_app", lambda _: _with_debug(UserError("wrong")))
    with pytest.raises(UserError, match="wrong"):
        command_line.main(["--debug"])


def _with_debug(error: BaseException) -> typer.Typer:
    app = typer.Typer()

    @app.command()
    def only(debug: bool = False) -> None:
        raise error

    return app


def test_interrupt_is_code_130(attlas, monkeypatch):
    monkeypatch.setattr(command_line, "build_app", lambda _: app_that_raises(KeyboardInterrupt()))
    assert attlas() == (130, "", "attlas: interrupted\n")


def test_an_interrupted_run_says_that_the_same_command_resumes(attlas, monkeypatch):
    app = typer.Typer()

    @app.command()
    def only(words: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "build_app", lambda _: app)
    again = "attlas: interrupted; the same command resumes\n"
    assert attlas("run", "all") == (130, "", again)
    assert attlas("check", "all") == (130, "", "attlas: interrupted\n")


def test_the_list_of_commands_cuts_no_line(attlas):
    _, out, _ = attlas("--help")
    assert "..." not in out.partition("Commands:")[2]
    assert max(map(len, out.splitlines())) <= 80


def test_a_shell_completes_the_names_of_commands():
    line = {"COMP_WORDS": "attlas ch", "COMP_CWORD": "1", "_ATTLAS_COMPLETE": "complete_bash"}
    command = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'attlas'; from attlas.cli.main import main; main()",
    ]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **line})
    assert done.stdout.split() == ["challenge", "check"]


def test_a_defect_of_ours_is_not_swallowed(monkeypatch):
    monkeypatch.setattr(command_line, "build_app", lambda _: app_that_raises(KeyError("ours")))
    with pytest.raises(KeyError):
        command_line.main([])


def test_unknown_command_option_and_value_are_one_line_and_code_2(attlas):
    for arguments, said in (
        (["chek"], "check"),
        (["list", "--colour"], "--colour"),
        (["list", "theorems"], "theorems"),
        (["check", "--instances", "0"], "--instances"),
    ):
        code, out, err = attlas(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith("attlas: ")
        assert said in err


def test_bare_command_shows_help(attlas):
    code, out, err = attlas()
    assert (code, err) == (2, "")
    assert "Commands:" in out


def test_version(attlas):
    assert attlas("--version")[:2] == (0, "attlas 0.1.0\n")


def test_every_command_of_the_contract_is_there():
    named = {command.name for command in command_line.build_app().registered_commands}
    assert named >= {"check", "challenge", "data", "doctor", "list", "report", "run"}


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (("check", "list"), "check"),
        (("--results", "check", "run", "all"), "run"),
        (("--debug", "check"), ""),  # all commands are there
        (("--help",), ""),
        (("chek",), ""),
        ((), ""),
    ],
)
def test_a_command_that_is_named_first_is_built_alone(arguments, command):
    assert command_line.command_of(arguments) == command
    assert len(command_line.build_app(command).registered_commands) == 1 or not command


def test_a_file_that_is_no_command_is_refused_as_any_other_word(attlas):
    code, _, err = attlas("tables")
    assert code == 2
    assert "No such command 'tables'" in err


def test_help_imports_nothing_heavy_and_takes_less_than_half_a_second():
    """Processor time, not wall time: another load on the machine must not decide."""
    program = (
        "import sys\n"
        "from attlas.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'jax', 'numpy', 'pandas', 'matplotlib', 'scipy'} & set(sys.modules)\n"
        "sys.exit(','.join(sorted(heavy)) or 0)\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert "Commands:" in done.stdout
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


def test_the_manual_is_the_one_of_this_program():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == manual_page(), "run: python -m attlas.cli.manual docs/cli.md"


@pytest.mark.parametrize("module", ["attlas", "attlas.cli.main"])
def test_the_command_line_is_a_module_too(module):
    def left(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False
        )

    assert module_entry.main is command_line.main
    shown = left("--version")
    assert (shown.returncode, shown.stdout.split()[0]) == (0, "attlas")
    refused = left("no-such-command")
    assert refused.returncode == 2
    assert "no-such-command" in refused.stderr
