"""A results folder with toy claims, errata and experiments, hostile names among them."""

import os

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

from attlas.claims.claim import (
    Claim,
    Control,
    Erratum,
    ErratumClass,
    Expectation,
    Kind,
    ProofStep,
    Source,
    Status,
)
from attlas.claims.verdict import ChallengeReport, CheckReport, ControlReport, Outcome, Verdict
from attlas.experiments.cell import Scale
from attlas.experiments.environment import environment
from attlas.experiments.experiment import CaptionedFigure, Experiment
from attlas.experiments.grid import Grid
from attlas.experiments.record import Layout, Record, record_key
from attlas.experiments.store import Store
from attlas.experiments.verdicts import write_report

PAPER = "julistiono2024optimizing"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
HOSTILE_STATEMENT = rf"\text{{{HOSTILE}}} \href{{javascript:1}}{{x}}"


def toy_claim(slug, locator, statement=r"x \le y", **fields):
    given = {
        "kind": Kind.INEQUALITY,
        "status": Status.RECONSTRUCTED,
        "source": Source.DERIVED,
        "controls": (Control("sides exchanged", exchanged=True),),
        "paper": PAPER,
        "remark": "",
        "place": (__file__, 1),
        **fields,
    }
    return Claim(
        name=f"{given['paper']}/{slug}",
        locator=locator,
        statement=statement,
        sample=lambda rng, count: {},
        function=lambda x, y: (x, y),
        **given,
    )


def toy_report(claim, outcome=Outcome.SUPPORTED, control=Outcome.VIOLATED, detection=(), **numbers):
    fields = {"slack": 0.25, "tightness": 0.5, "applicable": 40, "tried": 64, **numbers}
    verdict = Verdict(outcome, "a reason", **fields)
    controls = tuple(
        ControlReport(c.description, Outcome.VIOLATED, Verdict(control, "excess 0.3"))
        for c in claim.controls
    )
    found = Verdict(Outcome.SUPPORTED, "none found")
    challenge = ChallengeReport(0.8, False, 8, 50, found, evaluations=400)
    return CheckReport(
        claim.name, verdict, controls, claim.expect.outcome, challenge, detection, seconds=1.5
    )


GRID = Grid(
    each={"p": [2, 3]},
    fixed={"block": 1},
    smoke={"members": 2},
    quick={"members": 3},
    paper={"members": 3},
)


def _figure(data):
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot(data.x.values.ravel(), color="black", label=HOSTILE)
    axes.legend()
    return CaptionedFigure(f"Lines {HOSTILE}", "They rise with $p$.", figure)


def _table(data):
    return pd.DataFrame({"p": [2.0, 3.0], "ours": [0.5, 1e-9], "paper's": [HOSTILE, "≈ 1"]})


def write_toy(store, claim, *outcomes, **numbers):
    write_report(store, toy_report(claim, *outcomes, **numbers), claim)


def toy_experiment(name):
    return Experiment(
        name=name,
        paper=PAPER,
        title=f"Toy {name}",
        question=f"Why {HOSTILE}?",
        grid=GRID,
        run=lambda s, key: xr.Dataset(),
        table=_table,
        figures=[_figure],
        module=__name__,
    )


@pytest.fixture
def claims():
    chain = "From A to B"
    return (
        toy_claim("plain", "Lemma 1", proof_step=ProofStep(chain, 2)),
        toy_claim("first", "Lemma 0", proof_step=ProofStep(chain, 1)),
        toy_claim("wrong", "Lemma 2", expect=Expectation(Outcome.VIOLATED, "the sign is lost")),
        toy_claim("true-control", "Lemma 3"),
        toy_claim("never", "Lemma 4"),
        toy_claim(
            "hostile", HOSTILE, rf"\text{{{HOSTILE}}} \href{{javascript:1}}{{x}}", remark=HOSTILE
        ),
    )


@pytest.fixture
def errata():
    return (
        Erratum(
            PAPER, "Lemma 2", ErratumClass.REFUTED, f"Not so: $x>y$. {HOSTILE}", f"{PAPER}/wrong"
        ),
        Erratum(PAPER, "Table 1", ErratumClass.TYPO, "A digit."),
    )


@pytest.fixture
def experiments():
    return (toy_experiment("lines"), toy_experiment("silent"))


@pytest.fixture
def store(tmp_path, claims, experiments, monkeypatch):
    # What is read here comes from memory: bringing it to disk would be half of the time.
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    store = Store(tmp_path / "results")
    witness = {"W": np.array([[1.0, 2.0]]), "big": np.zeros((3, 4, 5))}
    write_toy(store, claims[0], tightness=0.25, detection=(0.75,))
    write_toy(store, claims[1], tightness=1.0)
    write_toy(store, claims[2], Outcome.VIOLATED, slack=-0.1, witness=witness)
    write_toy(store, claims[3], control=Outcome.SUPPORTED)
    write_toy(store, claims[5])
    add_records(store, experiments[0], Scale.SMOKE)
    return store


def add_records(store, experiment, scale):
    metadata = {**environment(), "revision": 1, "seconds": 0.5, "finished": "2026-11-21T00:00:00"}
    for number, cell in enumerate(experiment.cells(scale)):
        key = record_key(experiment.name, 1, cell)
        arrays = {"x": np.asarray(float(number))}
        layout = Layout({"x": ()})
        store.write(Record(experiment.name, cell, arrays, metadata, key, layout))
