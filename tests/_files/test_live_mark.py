import subprocess
import sys

import pytest

from attlas._files.live_mark import live_mark

DIES = """
import os, sys
from pathlib import Path
from attlas._files.live_mark import live_mark
with live_mark(Path(sys.argv[1]), "driver"):
    os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither flock nor SIGKILL")
def test_marks_of_dead_processes_go_and_those_of_live_ones_stay(tmp_path):
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    with live_mark(tmp_path, "driver") as first, live_mark(tmp_path, "driver") as second:
        assert sorted(tmp_path.iterdir()) == sorted([first, second])
    assert list(tmp_path.iterdir()) == []
    assert left.name.startswith(".driver-")
