"""A machine on which everything would fail for one reason is refused in one line."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from attlas._files.bounded_cache import STAMP
from attlas._jax.processes import is_whole_program, worker_variables
from attlas.cli import main as command_line
from attlas.cli.session import jax_refusal, require_machine
from attlas.core.errors import UserError
from attlas.projects.places import TRUST

PROGRAM = "import jax; print(jax.jit(lambda x: jax.numpy.sin(x) + 1)(jax.numpy.ones(3)))"


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("ATTLAS_CACHE", "cache of compiled programs .* cannot be written .*ATTLAS_CACHE=DIR"),
        ("TMPDIR", "TMPDIR .* is not a folder"),
    ],
)
def test_a_folder_that_cannot_be_used_is_named(monkeypatch, tmp_path, variable, said):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ATTLAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    require_machine()
    monkeypatch.setenv(variable, str(tmp_path / "file" / "below"))
    with pytest.raises(UserError, match=said):
        require_machine()


def test_a_cache_of_another_user_is_refused_unless_trusted(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTLAS_CACHE", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    require_machine()
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(UserError, match=r"belongs to another user.*ATTLAS_CACHE=DIR.*--trust"):
        require_machine()
    monkeypatch.setenv(TRUST, "1")
    require_machine()


@pytest.mark.thorough
def test_a_damaged_program_is_compiled_again_and_replaced(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTLAS_CACHE", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)

    def compiled() -> tuple[str, dict[Path, bytes]]:
        require_machine()
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True,
            env={**os.environ, **worker_variables(1)},
        )  # fmt: skip
        return done.stderr, {path: path.read_bytes() for path in tmp_path.rglob("*-cache")}

    said, whole = compiled()
    assert (said, bool(whole), all(map(is_whole_program, whole.values()))) == ("", True, True)
    for path, content in whole.items():
        path.write_bytes(content[:-9])
    for path in (*whole, tmp_path / "compiled" / STAMP):
        os.utime(path, (time.time() - 100,) * 2)
    assert compiled()[0] == ""
    assert compiled()[1].keys() == whole.keys()
    assert all(map(is_whole_program, compiled()[1].values()))


def test_a_home_that_is_no_folder_is_named(monkeypatch):
    for name in ("ATTLAS_CACHE", "XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/dev/null")
    with pytest.raises(UserError, match=r"/dev/null/.*compiled cannot be written"):
        require_machine()


@pytest.mark.thorough
def test_variables_under_which_jax_does_not_start_are_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("XLA_FLAGS", "")
    assert jax_refusal() == ""
    monkeypatch.setenv("JAX_PLATFORMS", "nonsense")
    assert jax_refusal().startswith("JAX does not start with JAX_PLATFORMS=nonsense (")
    with pytest.raises(UserError, match="unset the variable"):
        require_machine()


def test_a_wrong_precision_is_one_line(monkeypatch, capsys):
    monkeypatch.setenv("JAX_ENABLE_X64", "maybe")
    with pytest.raises(SystemExit) as left:
        command_line.main(["list", "papers"])
    assert left.value.code == 2
    assert capsys.readouterr().err == "attlas: JAX_ENABLE_X64=maybe is neither 0 nor 1: unset it\n"


@pytest.mark.parametrize(("own", "policy"), [(None, "passive"), ("active", "active")])
def test_threads_that_wait_for_each_other_sleep(monkeypatch, own, policy):
    """Spinning ones take the core that the last one waits for; what the user has set stays."""
    monkeypatch.setenv("OMP_WAIT_POLICY", own or "")
    if own is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    with pytest.raises(SystemExit):
        command_line.main(["--version"])
    assert os.environ["OMP_WAIT_POLICY"] == policy


def test_windows_that_this_machine_cannot_open_do_not_matter(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "nonsense")
    program = (
        "import sys\n"
        "from attlas.cli.main import main\n"
        "try:\n    main(['--version'])\nexcept SystemExit:\n    import matplotlib\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.startswith("attlas ")


def test_a_results_folder_that_is_a_file_is_one_line(capsys, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as left:
        command_line.main(["--results", str(tmp_path / "file"), "report"])
    shown = capsys.readouterr()
    assert (left.value.code, shown.out, shown.err.count("\n")) == (2, "", 1)
    assert "is a file" in shown.err


def test_a_long_line_is_shortened_and_one_line(capsys):
    with pytest.raises(SystemExit):
        command_line.main(["--results", "x" * 5000 + "\n\udcff", "chek"])
    with pytest.raises(SystemExit):
        command_line.main(["list", "y" * 5000 + "\n\udcff"])
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 2
    assert len(shown.err) < 2200
    assert r"\udcff" in shown.err
