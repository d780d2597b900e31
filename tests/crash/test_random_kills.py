"""Commands that are killed at random calls, again and again, lose nothing and end in the same."""

import json
import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import psutil
import pytest
from crash.outcomes import publishable
from projects.latex import sample_paper

from attlas._files import new_files, replaced_files
from attlas.experiments.audits import stored_audits
from attlas.experiments.store import Store
from attlas.experiments.verdicts import read_reports
from attlas.models.networks.encoder import make_encoder
from attlas.transformers.attlas_model import save_model, stored_form

TESTS = Path(__file__).parents[1]
SEED = 38
CLAIMS = ("trauger2023sequence/theorem-4-1-displays", "trauger2023sequence/corollary-4-1-1-alpha")


@dataclass(frozen=True)
class Command:
    """A command and how often it is killed.

    Attributes:
        calls: the largest number of a system call at which it is killed.
        victim: "driver" or "worker" where a process of Dask is killed at a random time instead.
        before: a command that makes what this one changes; nothing kills it.
    """

    name: str
    arguments: tuple[str, ...]
    kills: int
    calls: int = 0
    victim: str = ""
    before: tuple[str, ...] = ()


RUN = ("run", "squares", "--scale", "quick", "--workers", "1")
DASK = ("run", "squares", "--scale", "quick", "--on", "dask", "--workers", "2")
CHECKPOINTS = ("run", "descent", "--scale", "quick", "--workers", "1", "--checkpoint", "0.05")
LOOK = ("--ledger", "RESULTS/ledger.json", "--json", "RESULTS/c.json", "--page", "RESULTS/c.html")
NEW = ("new", "paper", "doe2026", "--folder", "RESULTS/doe2026", "--from")
JOURNALS = (new_files.JOURNAL, replaced_files.JOURNAL)
"""What is deleted once a change of several files is whole."""
COMMANDS = (
    Command("run", RUN, 10, 90),
    Command("check", ("check", *CLAIMS), 14, 50),
    Command("audit", ("audit", "MODEL", "--level", "weights", "--out", "RESULTS/a.html"), 8, 50),
    Command("report", ("report", CLAIMS[0], "--out", "RESULTS/atlas.html"), 4, 30),
    Command("explore", ("explore", "--out", "RESULTS/explorer.html"), 2, 6),
    Command("certify with a ledger", ("certify", "PREDICTIONS", *LOOK), 4, 24),
    Command("new --from", (*NEW, "PRINTED"), 8, 60),
    Command("new --from, revised", (*NEW, "REVISED"), 6, 40, before=(*NEW, "PRINTED")),
    Command("run with checkpoints", CHECKPOINTS, 4, 120),
    Command("run on Dask: the driver", DASK, 3, victim="driver"),
    Command("run on Dask: a worker", DASK, 3, victim="worker"),
)


def content(root: Path) -> dict[str, Any]:
    """What a reader sees in a results folder; nothing in it is damaged."""
    store = Store(root)
    seen: dict[str, Any] = {}
    for record in (*store.records("squares"), *store.records("descent")):
        arrays = {name: array.tolist() for name, array in record.arrays.items()}
        seen[f"record {record.key}"] = arrays
    for report, _ in read_reports(store):
        seen[report.claim] = (report.verdict.outcome, report.verdict.slack)
    audits, wrong = stored_audits(root)
    seen |= {audit["model"]["name"]: audit["heads"] for audit in audits}
    # Of an audit the page says how long it took.
    seen |= {p.name: "" if p.name == "a.html" else p.read_text() for p in root.rglob("*.html")}
    seen |= {path.name: json.loads(path.read_text()) for path in root.glob("*.json")}
    if (root / "doe2026" / "pyproject.toml").exists():  # before it is there it is no project
        paper = [path for path in (root / "doe2026").rglob("*") if path.is_file()]
        paper = [path for path in paper if path.suffix != ".draft" and path.name not in JOURNALS]
        seen |= {f"paper {path.relative_to(root)}": path.read_bytes() for path in paper}
    assert (store.notes, wrong) == ([], [])
    return seen


@pytest.fixture
def attlas(library, tmp_path):
    """Starts a command in another process, which is killed at its n-th call if n is not 0."""
    encoder = make_encoder(jax.random.key(1), 7, 5, width=6, blocks=3, heads=2, hidden=8)
    model = save_model(tmp_path / "model", stored_form(encoder))
    predictions = tmp_path / "predictions.csv"
    rows = "".join(f"{number},{number % 20 > 0:d}\n" for number in range(400))
    predictions.write_text(f"id,correct\n{rows}")
    toys = TESTS / "experiments"
    printed, revised = (sample_paper.write(tmp_path / name) for name in ("printed", "revised"))
    revised.write_text(revised.read_text().replace("Descent", "Steep descent"))

    def start(root: Path, arguments: tuple[str, ...], n: int = 0) -> subprocess.Popen:
        named = {"RESULTS": root, "MODEL": model, "PREDICTIONS": predictions}
        named |= {"PRINTED": printed, "REVISED": revised}
        words = list(arguments)
        for name, path in named.items():
            words = [word.replace(name, str(path)) for word in words]
        variables = os.environ | {
            "LD_PRELOAD": str(library),
            "PYTHONPATH": str(toys),
            "ATTLAS_EXPERIMENTS": "toys",
            "DESCENT_STEPS": str(tmp_path / "steps"),
            "SQUARES_SLEEP": "0.5" if "dask" in arguments else "0",
        }
        if n:
            variables |= {"CRASH_BELOW": os.path.realpath(root), "CRASH_AT": str(n)}
        command = [sys.executable, "-m", "attlas", "--results", str(root), *words]
        return subprocess.Popen(
            command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return start


OF_THE_TRACKER = re.compile(
    r'Traceback \(most recent call last\):\n  File ".*resource_tracker\.py", line \d+, in main\n'
    r" +cache\[rtype\]\.remove\(name\)\n(?: +\^+\n)?KeyError: '/mp-\w+'\n"
)
"""What Python's tracker of semaphores prints where a killed worker had given one back already."""


def ended(process: subprocess.Popen) -> int:
    """The exit code of a command that names neither damage nor an error of its own."""
    out, err = process.communicate()
    err = OF_THE_TRACKER.sub("", err)
    assert "Traceback" not in err, err
    assert "damaged" not in out + err
    return process.returncode


def kill_one(process: subprocess.Popen, victim: str, draw: random.Random) -> bool:
    """Kill the driver or a worker of a run on Dask at a random time; whether it was there."""
    driver = psutil.Process(process.pid)
    workers: list[psutil.Process] = []
    while process.poll() is None and not workers:
        workers = [p for p in driver.children(recursive=True) if "spawn_main" in str(p.cmdline())]
        time.sleep(0.05)
    time.sleep(draw.uniform(0, 8))
    if process.poll() is not None:
        return False
    workers = driver.children(recursive=True)
    (driver if victim == "driver" else draw.choice(workers)).kill()
    if victim == "driver":
        left = psutil.wait_procs(workers, timeout=60)[1]
        assert left == []
    return True


def prepared(attlas, command: Command, root: Path) -> None:
    """Make a results folder, with what the command changes."""
    root.mkdir()
    if command.before:
        assert ended(attlas(root, command.before)) == 0


def disturbed(attlas, command: Command, root: Path, draw: random.Random) -> bool:
    """Run a command that is killed at a random place; whether it was."""
    if command.victim:
        process = attlas(root, command.arguments)
        was_killed = kill_one(process, command.victim, draw)
        ended(process)
        return was_killed
    return ended(attlas(root, command.arguments, draw.randint(1, command.calls))) != 0


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_random_kills_lose_nothing(command, attlas, tmp_path):
    draw = random.Random(f"{SEED} {command.name}")
    undisturbed, killed, lost = tmp_path / "undisturbed", 0, 0
    prepared(attlas, command, undisturbed)
    assert ended(attlas(undisturbed, command.arguments)) == 0
    whole = content(undisturbed)
    for chain in range(2 * command.kills):
        root = tmp_path / f"chain-{chain}"
        prepared(attlas, command, root)
        seen = content(root)
        while killed < command.kills and disturbed(attlas, command, root, draw):
            killed += 1
            after = content(root)
            lost += len(seen.keys() - after.keys())
            seen = after
        assert ended(attlas(root, command.arguments)) == 0
        after = content(root)
        assert after.keys() == whole.keys()
        np.testing.assert_equal(after, whole)
        assert not list(root.rglob("*.draft"))
        if killed == command.kills:
            break
    publishable(f"kills {command.name}", {"seed": SEED, "tried": killed, "lost": lost})
    assert (killed, lost) == (command.kills, 0)


def test_what_a_reader_sees_can_be_compared(tmp_path):
    assert json.dumps(content(tmp_path)) == "{}"
