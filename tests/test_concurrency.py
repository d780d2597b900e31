"""Answers are the same in threads of other precision, in workers, after a fork and in asyncio."""

import asyncio
import os
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attlas as at
from attlas.norms.matrix import spectral_norm

X = np.array([[[1.0, 0.0], [-1.0, 0.5], [0.0, -1.0]]])
Z = np.array([[0.5, 1.0]])
TOKENS = np.array([0])
NARROW = jnp.asarray(np.arange(6.0).reshape(2, 3), jnp.float32)

AFTER_A_FORK = """
import os, sys
import numpy as np
import attlas as at
from attlas.core.errors import UserError

X = np.array([[[1.0, 0.0], [-1.0, 0.5], [0.0, -1.0]]])
child = os.fork()
W = at.attention_svm(X, np.array([[0.5, 1.0]]), np.array([0]), 2.0).unwrap()
if child:
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
sys.stdout.write(W.tobytes().hex())
sys.stdout.flush()
os._exit(0)
"""

IN_WORKERS = """
import os
from pathlib import Path

import numpy as np
import pytest

import attlas as at

X = np.array([[[1.0, 0.0], [-1.0, 0.5], [0.0, -1.0]]])


@pytest.mark.parametrize("number", range(4))
def test_answer(number):
    W = at.attention_svm(X, np.array([[0.5, 1.0]]), np.array([0]), 2.0).unwrap()
    worker = os.environ["PYTEST_XDIST_WORKER"]
    Path(__file__).with_name(f"{number}-{worker}.answer").write_bytes(W.tobytes())
"""


def separator() -> bytes:
    """The solution of one small attention SVM, in float64 by itself."""
    return at.attention_svm(X, Z, TOKENS, 2.0).unwrap().tobytes()


def narrow_norm() -> bytes:
    """A norm of an array in float32."""
    norm = spectral_norm(NARROW)
    assert norm.dtype == jnp.float32
    return np.asarray(norm).tobytes()


def test_threads_of_other_precision_do_not_disturb_each_other():
    alone = {"wide": separator(), "narrow": narrow_norm()}
    together: dict[str, set[bytes]] = {"wide": set(), "narrow": set()}
    start = threading.Barrier(4)

    def work(name, function, precision):
        with jax.enable_x64(precision):
            start.wait()
            for _ in range(5):
                together[name].add(function())
            assert jax.config.jax_enable_x64 is precision

    threads = [
        threading.Thread(target=work, args=(name, function, precision))
        for name, function in (("wide", separator), ("narrow", narrow_norm))
        for precision in (False, True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == {name: {answer} for name, answer in alone.items()}


def test_tasks_of_asyncio_get_the_same_answers():
    async def answers() -> list[bytes]:
        calls = [asyncio.to_thread(f) for f in (separator, narrow_norm) for _ in range(3)]
        return await asyncio.gather(*calls)

    assert asyncio.run(answers()) == 3 * [separator()] + 3 * [narrow_norm()]


@pytest.mark.thorough
def test_workers_of_xdist_get_the_same_answers(tmp_path):
    (tmp_path / "test_answers.py").write_text(IN_WORKERS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "test_answers.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    files = sorted(tmp_path.glob("*.answer"))
    assert {file.stem.partition("-")[2] for file in files} == {"gw0", "gw1"}
    assert [file.read_bytes() for file in files] == 4 * [separator()]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_forks_after_the_import_computes_in_both():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", AFTER_A_FORK],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert bytes.fromhex(done.stdout) == separator()
