"""Commands that are killed at random calls, again and again, lose nothing and end in the same."""

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from crash.outcomes import publishable

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
    """A command, how often it is killed, and the largest number of a call at which it is."""

    name: str
    arguments: tuple[str, ...]
    kills: int
    calls: int


RUN = ("run", "squares", "--scale", "quick", "--workers", "1")
COMMANDS = (
    Command("run", RUN, 10, 90),
    Command("check", ("check", *CLAIMS), 14, 50),
    Command("audit", ("audit", "MODEL", "--level", "weights", "--out", "RESULTS/a.html"), 8, 50),
)


def content(root: Path) -> dict[str, Any]:
    """What a reader sees in a results folder; nothing in it is damaged."""
    store = Store(root)
    seen: dict[str, Any] = {}
    for record in store.records("squares"):
        arrays = {name: array.tolist() for name, array in record.arrays.items()}
        seen[f"record {record.key}"] = arrays
    for report, _ in read_reports(store):
        seen[report.claim] = (report.verdict.outcome, report.verdict.slack)
    audits, wrong = stored_audits(root)
    seen |= {audit["model"]["name"]: audit["heads"] for audit in audits}
    seen |= {page.name: "a page" for page in root.rglob("*.html")}
    assert (store.notes, wrong) == ([], [])
    return seen


@pytest.fixture
def attlas(library, tmp_path):
    """Runs a command in another process, which is killed at its n-th call if n is not 0."""
    encoder = make_encoder(jax.random.key(1), 7, 5, width=6, blocks=3, heads=2, hidden=8)
    model = save_model(tmp_path / "model", stored_form(encoder))
    toys = TESTS / "experiments"

    def run(root: Path, arguments: tuple[str, ...], n: int = 0) -> int:
        named = {"RESULTS": str(root), "MODEL": str(model)}
        words = [a.replace("RESULTS", named["RESULTS"]).replace("MODEL", named["MODEL"])
                 for a in arguments]  # fmt: skip
        variables = os.environ | {
            "LD_PRELOAD": str(library),
            "PYTHONPATH": str(toys),
            "ATTLAS_EXPERIMENTS": "toys",
        }
        if n:
            variables |= {"CRASH_BELOW": os.path.realpath(root), "CRASH_AT": str(n)}
        command = [sys.executable, "-m", "attlas", "--results", str(root), *words]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        assert "damaged" not in done.stdout + done.stderr
        return done.returncode

    return run


@pytest.mark.thorough
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_random_kills_lose_nothing(command, attlas, tmp_path):
    draw = random.Random(f"{SEED} {command.name}")
    undisturbed, killed, lost = tmp_path / "undisturbed", 0, 0
    undisturbed.mkdir()
    assert attlas(undisturbed, command.arguments) == 0
    whole = content(undisturbed)
    for chain in range(command.kills):
        root = tmp_path / f"chain-{chain}"
        root.mkdir()
        seen = content(root)
        while killed < command.kills and attlas(
            root, command.arguments, draw.randint(1, command.calls)
        ):
            killed += 1
            after = content(root)
            lost += len(seen.keys() - after.keys())
            seen = after
        assert attlas(root, command.arguments) == 0
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
