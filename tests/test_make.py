"""What `make bench` and `make test-newest` promise."""

import os
import shutil
import subprocess
from pathlib import Path

import jax
import pytest
from benchmarks import interleave

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_newest_versions_that_cannot_be_installed_are_reported_and_block_nothing(tmp_path):
    done = subprocess.run(
        ["make", "test-newest", f"NEWEST={tmp_path}/newest", "NEWEST_PYTHON=false"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = "the newest versions could not be resolved or installed"
    assert said in done.stdout
    assert said in (tmp_path / "newest" / "report.txt").read_text()


def test_benchmarks_run_on_the_device_that_the_user_names_and_else_on_the_cpu(monkeypatch, capsys):
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    interleave.choose_device()
    assert (os.environ["JAX_PLATFORMS"], capsys.readouterr().err) == ("cuda", "")
    monkeypatch.delenv("JAX_PLATFORMS")
    interleave.choose_device()
    assert os.environ["JAX_PLATFORMS"] == "cpu"
    assert "JAX on the CPU" in capsys.readouterr().err


def test_results_of_benchmarks_name_the_device(tmp_path, monkeypatch):
    monkeypatch.setattr(interleave, "RESULTS", tmp_path)
    text = interleave.write_results("one", []).read_text()
    assert f'"device": "{jax.devices()[0].platform}: ' in text
