"""Published proofs: digits confirm them, and no control of a proved claim can be proved."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from check_proofs import proved


def test_there_are_published_proofs():
    assert len(proved()) > 15
    assert {proof.method for _, proof in proved()} == {
        "expansion",
        "random evaluation",
        "random evaluation along drawn paths",
        "interval evaluation",
        "branch and bound",
        "enumeration",
        "sums of squares",
    }


@pytest.mark.thorough
def test_published_proofs_are_confirmed_and_none_of_a_control_is_against_what_is_expected():
    """No false variant of an identity is proved, and no true one of a refuted statement refuted."""
    program = Path(__file__).parents[1] / "check_proofs.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == {"refused": {}, "contradicted": []}
