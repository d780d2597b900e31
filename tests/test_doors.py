"""Public functions under bad input, from several threads and for long: no hang, silence, growth."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import attlas as at

HERE = Path(__file__).parent
STATEMENTS = {
    name for name in at.__all__ if getattr(at, name).__module__.startswith("attlas.claims.")
}
"""What a claim is written with: it is computed by `check`, `challenge`, `power` and `replay`."""
WITHOUT_ARRAYS = STATEMENTS | {
    *("check", "challenge", "find_claims", "load", "run"),
    *("audit", "load_model", "power"),
}
"""Of statements, claims, records and models: their own tests refuse what they cannot use."""
BEHIND = {
    "replay": "a witness is stored by a check; tests/verify reads damaged ones",
    "Solution": "what solvers return",
    "Trajectory": "what training returns",
    "TransformerWeights": "compare_bounds",
    "pac_bayes_kl": "a loss, two laws and a key; its own test refuses what it cannot use",
    "token_bound": "its own test refuses what it cannot use",
    "union": "bounds, or functions that return one",
}


def run(program: str, *arguments: str, seconds: int) -> str:
    """What a program of this folder prints; stopped, with its last line, where it hangs."""
    # Two cores for XLA: with one there is no pool of threads to lock.
    environment = {
        **os.environ,
        "NPROC": "2",
        "JAX_COMPILATION_CACHE_DIR": str(HERE.parent / ".cache" / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    command = [sys.executable, "-W", "ignore", str(HERE / program), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, env=environment, check=False
        )
    except subprocess.TimeoutExpired as stopped:
        said = (stopped.stdout or b"").decode().strip().rpartition("\n")[2]
        pytest.fail(f"{program} hangs after: {said}")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    return done.stdout


@pytest.mark.thorough
def test_bad_arrays_end_in_finite_numbers_or_in_one_line():
    lines = run("fuzz_public_calls.py", "--brief", seconds=300).strip().split("\n")
    report = json.loads(lines[-1])
    assert report["wrong"] == []
    assert report["tried"] > 2000
    tried = {line.partition(":")[0] for line in lines[:-1]}
    assert set(at.__all__) - WITHOUT_ARRAYS - set(BEHIND) <= tried


@pytest.mark.thorough
def test_random_calls_of_public_functions_return_or_refuse_and_change_nothing():
    report = json.loads(run("fuzz_examples.py", "--calls", "1000", seconds=900).strip())
    assert report["wrong"] == []
    assert report["functions"] > 300
    assert report["spoilt"] > 240  # the others take records, functions or nothing


@pytest.mark.thorough
def test_spoilt_models_are_used_or_refused_in_one_line():
    asked = ("--models", "--only", "attlas_model", "--calls", "1000")
    report = json.loads(run("fuzz_examples.py", *asked, seconds=900).strip())
    assert report["wrong"] == []
    assert report["tried"] > 300


@pytest.mark.thorough
def test_spoilt_records_data_sets_and_reports_are_used_or_refused_in_one_line():
    printed = run("fuzz_examples.py", "--records", "--calls", "3000", seconds=900)
    report = json.loads(printed.strip())
    assert report["wrong"] == []
    assert report["spoilt"] > 90  # the others take files, texts, numbers or functions
    assert report["tried"] == 3000


@pytest.mark.thorough
def test_functions_that_compute_run_from_four_threads():
    through = set(run("threaded_calls.py", seconds=200).strip().rpartition("\n")[2].split())
    assert "stationary_points" in through
    given_or_returned = {"TransformerWeights", "Solution", "Trajectory"}
    assert set(at.__all__) - STATEMENTS - given_or_returned <= through


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read there")
def test_memory_does_not_grow_with_the_number_of_checks():
    warm, after = map(float, run("many_checks.py", seconds=300).split())
    assert after < 1.1 * warm
