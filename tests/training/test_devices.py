"""Ensembles on several devices: on CPU devices of a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.thorough
def test_results_do_not_depend_on_the_number_of_devices():
    done = subprocess.run(
        [sys.executable, str(HERE / "on_devices.py")],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert set(found) == {"1", "2", "8"}
    for differences in found.values():
        names = {"selection", "softmax_networks", "left_out", "majority", "by_epochs"}
        assert set(differences) == names
        # Products of batches of another size may be summed in another order.
        assert max(differences.values()) <= 1e-12
