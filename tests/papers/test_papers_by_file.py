"""Papers found by their project files: claims come out as expected, their grounds agree.

As few instances as support a claim: what is tested is that each example still stands. They
are written as a user writes, whose JAX promotes shapes and types by itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from attlas.claims.claim import Claim
from attlas.claims.verdict import Outcome
from attlas.projects.installed import installed_papers
from attlas.projects.project import project_of
from attlas.verify.check import check
from attlas.verify.evidence import MINIMUM
from attlas.verify.registry import find_claims

ROOT = Path(__file__).parents[2] / "papers"
FOLDERS = {
    "castin2024smooth": 10,
    "dong2021attention": 9,
    "gu2025attention_sink": 8,
    "zhai2023stabilizing": 9,
}


@contextmanager
def as_users_run() -> Iterator[None]:
    """JAX as it comes, without the strict promotion of our own tests."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture(autouse=True)
def promotion() -> Iterator[None]:
    with as_users_run():
        yield


@cache
def claims_below(folder: str) -> tuple[Claim, ...]:
    """Its claims; defining one traces it: that takes seconds, which collection need not spend."""
    with as_users_run():
        return find_claims([str(ROOT / folder)])


def test_every_paper_is_installed_or_tested_here():
    folders = {path.parent.name for path in ROOT.glob("*/pyproject.toml")}
    assert folders == set(FOLDERS) | {paper.module for paper in installed_papers()}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_is_a_project_with_its_references_and_a_page_of_findings(folder):
    project = project_of(ROOT / folder)
    assert project is not None
    assert project.root == ROOT / folder
    assert project.title
    assert project.key in project.bibliography()
    named = {ROOT / folder / name for name in project.claims}
    assert named == set((ROOT / folder).glob("claims_*.py"))
    assert len((ROOT / folder / "README.md").read_text().split()) > 100
    assert len(claims_below(folder)) == FOLDERS[folder]
    assert {claim.paper for claim in claims_below(folder)} == {project.key}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("folder", "place"), [(folder, k) for folder in FOLDERS for k in range(FOLDERS[folder])]
)
def test_a_claim_comes_out_as_expected_and_its_controls_fail(folder: str, place: int):
    claim = claims_below(folder)[place]
    report = check(claim, count=max(MINIMUM, claim.count // 2), challenge=0)
    assert report.defects == ()
    failing = [c for c in report.controls if c.expect is Outcome.VIOLATED]
    assert failing
    assert all(c.verdict.outcome is Outcome.VIOLATED for c in failing)


def _module(claim_name: str) -> dict:
    """The names of the file in which a claim is defined."""
    each = (claim for folder in FOLDERS for claim in claims_below(folder))
    (claim,) = (claim for claim in each if claim.name.endswith(f"/{claim_name}"))
    return claim.function.__globals__


def test_the_design_that_needs_gamma_agrees_with_its_matrices():
    sides = _module("gamma-is-needed")["collapse_without_small_logits"]
    N, lead, more = 12, 1.0, 2.0
    e = float(np.log(N)) + lead + more
    # Token 0 is the value, 1..N the keys, N+1..2N the movers; mover k asks for key k.
    X, W = np.eye(2 * N + 1), np.zeros((2 * N + 1, 2 * N + 1))
    W[np.arange(N) + N + 1, np.arange(N) + 1] = e
    b = np.concatenate([[0.0], np.full(N, -np.log(N) - lead), np.full(N, -60.0)])
    logits = X @ W @ X.T + (X @ b)[None, :]
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    out = P / P.sum(axis=1, keepdims=True) @ X

    def composite(M):
        return np.sqrt(np.abs(M).sum(axis=0).max() * np.abs(M).sum(axis=1).max())

    bound, low = (float(side) for side in sides(float(N), lead, more))
    assert bound == pytest.approx(4 * composite(W) * composite(X) ** 3, rel=1e-12)
    # The lower value holds about any x: here the median, the mean and what a search finds.
    tried = [np.median(out, axis=0), out.mean(axis=0), out[0], out[-1]]
    found = minimize(
        lambda y: composite(out - y), tried[1], method="Powell", options={"maxiter": 3}
    )
    assert low <= min(composite(out - y) for y in [*tried, found.x]) * (1 + 1e-12)
    assert low >= 0.4 * composite(out - np.median(out, axis=0))


@pytest.mark.thorough
def test_the_residual_of_a_layer_is_that_of_its_tokens():
    names = _module("one-layer")
    batch = names["heads"](np.random.default_rng(0), 8)
    program = jax.jit(names["layer"])
    for k in range(8):
        found = program(**{name: jnp.asarray(value[k]) for name, value in batch.items()})
        there = np.asarray(batch["there"][k])
        X = (batch["x"][k] + batch["R"][k])[there]
        logits = X @ batch["W"][k] @ X.T + (X @ batch["b"][k])[None, :]
        P = np.asarray(jax.nn.softmax(logits / np.sqrt(batch["width"][k]), axis=-1))
        whole = P @ X @ batch["V"][k]
        np.testing.assert_allclose(whole - found.x, found.R[there], rtol=1e-9, atol=1e-12)


def test_the_exponents_of_the_sharpened_rotary_ceiling_by_a_finer_grid():
    names = _module("rotary-first-token")
    omega = np.linspace(0, np.pi, 100_001)
    for t in (2, 3, 8, 24):
        mean = np.exp(1j * omega[:, None] * np.arange(1, t)).mean(axis=1)
        best = np.abs(1 - mean).max()
        assert best <= names["EXPONENTS"][t - 1] <= best * (1 + 1e-4)


def test_the_bound_of_the_published_code_fails_by_hand():
    """Two tokens s and -s on one axis, A = a e_2 e_1': logits are zero, their derivative is not."""
    s, a, step = 3.0, 2.0, 1e-5
    X, A = np.array([[s, 0.0], [-s, 0.0]]), np.array([[0.0, 0.0], [a, 0.0]])

    def outputs(rows):
        logits = rows @ A @ rows.T
        P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return P @ rows

    up, down = (outputs(X + sign * step * np.array([[0, 1.0], [0, 0]])) for sign in (1, -1))
    gain = np.linalg.norm(up - down) / (2 * step)
    assert gain >= a * s**2 / 1.001
    assert np.abs(X @ A).max() == 0
    assert gain > 10 * np.sqrt(2)


def _said(folder: str) -> str:
    """The README of a folder, in one line."""
    return " ".join((ROOT / folder / "README.md").read_text("utf-8").split())


def test_numbers_on_sinks_are_those_of_their_formulas():
    b = _module("rotary-first-token")["EXPONENTS"]
    said = _said("gu2025attention_sink")
    assert f"b_3 = {b[2]:.2f}, b_24 = {b[23]:.2f}" in said
    few, many = (sum(1 / k for k in range(1, T + 1)) / T for T in (5, 64))
    assert f"{few:.3f} at T = 5, above the threshold 0.3, and {many:.3f} at T = 64" in said
    # For many tokens the mean of unit vectors is an integral over their angles.
    u = np.linspace(1e-3, 40, 400_000)
    limit = float(np.abs(1 - (np.exp(1j * u) - 1) / (1j * u)).max())
    assert f"{limit:.2f} in the limit" in said
    omega = np.linspace(0, np.pi, 100_001)
    mean = sum(np.exp(1j * omega * k) for k in range(1, 64)) / 63
    powers = (2, float(np.abs(1 - mean).max()))
    printed, sharper = (1 / (1 + 63 * np.exp(-4 * power)) for power in powers)
    assert f"the upper bound falls from {printed:.2f} to {sharper:.2f}" in said


def test_the_factor_by_which_the_order_of_the_entropy_errs():
    decay = np.exp(-10 * np.sqrt(2))
    least = np.log1p(decay) + 10 * np.sqrt(2) * decay / (1 + decay)
    said = f"the lower bound is {2 * 10 * np.exp(-10) / least:.0f} times smaller"
    assert said in _said("zhai2023stabilizing")
