"""What the audit of trained heads passes to each paper's formulas, and what it returns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_1
from attlas.models.attention.multi_head import Decoder, MultiHead
from liu2021analyzing.library.audit import head_audit
from liu2021analyzing.library.audit.head_audit import (
    ASKED,
    COMPARED,
    DESCENT,
    AuditedHeads,
    AuditSettings,
    audit_heads,
)
from liu2021analyzing.library.audit.head_landscape import head_landscape
from liu2021analyzing.library.audit.head_margins import HeadMargins
from liu2021analyzing.library.audit.single_head_bounds import (
    TrainedHead,
    head_descent_bounds,
    head_sample_sizes,
    head_transformer,
    head_widths,
)
from liu2021analyzing.library.audit.single_head_path import single_head_path

E, S, N, M, T, D = 2, 3, 4, 6, 5, 3
SETTINGS = AuditSettings(tau=0.3, gamma=0.7, delta=0.02, searches=7, climb=11, seed=4)


@pytest.fixture(scope="module")
def heads():
    rng = np.random.default_rng(0)
    X, fresh = rng.normal(size=(E, N, T, D)), rng.normal(size=(E, M, T, D))
    y, fresh_y = (rng.choice([-1.0, 1.0], size) for size in ((E, N), (E, M)))
    U, W = rng.normal(size=(E, S, 1, D)), 0.7 * rng.normal(size=(E, S, 1, D, D))
    head = jax.vmap(jax.vmap(lambda u, w: MultiHead(u, w, Decoder.LAST)))
    path = head(jnp.asarray(U), jnp.asarray(W))
    data = (jnp.asarray(a) for a in (X, y, fresh, fresh_y))
    seen = jax.tree.map(np.asarray, jax.jit(jax.vmap(single_head_path))(path, *data))
    path, stability = jax.tree.map(np.asarray, path), rng.uniform(1, 2, (E, S))
    R = float(np.linalg.norm(X, axis=-1).max()) + 0.3
    return AuditedHeads(path, seen, stability, X, y, fresh, fresh_y, R, 0.05, np.array([0, 3, 40]))


@pytest.fixture
def calls(monkeypatch):
    """Margins by number in place of a search, whose arguments are recorded."""
    recorded = []

    def head_margins(records, samples, fresh, **settings):
        recorded.append((records, samples, fresh, settings))
        draw = np.random.default_rng(len(recorded))
        sizes = {"smallest": S, "drift": S, "moved": S, "errors": 2}
        numbers = {n: draw.uniform(1, 2, sizes.get(n, ())) for n in HeadMargins._fields}
        numbers["smallest"] = np.array([(0.4, -0.2)[len(recorded) - 1], 9.0, 8.0])
        numbers["reachable"] = np.array((-50.0, 50.0)[len(recorded) - 1])
        return HeadMargins(**numbers)

    def landscape(*given, **settings):
        counts = np.array([[1.2, 2.1, 3.4], [4.2, 3.3, 1.6]])
        return head_landscape(*given, **settings)._replace(s0=counts)

    monkeypatch.setattr(head_audit, "head_margins", head_margins)
    monkeypatch.setattr(head_audit, "head_landscape", landscape)
    return recorded


@pytest.mark.thorough
def test_every_formula_has_the_numbers_of_its_head_and_record(heads, calls, monkeypatch):
    descent, passed = head_audit._descent, []
    monkeypatch.setattr(head_audit, "_descent", lambda head: passed.append(head) or descent(head))
    audit = audit_heads(heads, SETTINGS)
    for e, (records, samples, fresh, settings) in enumerate(calls[-E:]):
        for k, record in enumerate(records):
            np.testing.assert_array_equal(record.W, heads.path.W[e, k])
        np.testing.assert_array_equal(samples[0], heads.X[e])
        np.testing.assert_array_equal(samples[1], heads.y[e])
        np.testing.assert_array_equal(fresh[0], heads.fresh_X[e])
        np.testing.assert_array_equal(fresh[1], heads.fresh_y[e])
        assert jax.random.key_data(settings["key"]).tolist() == [0, 4000 + e]
        assert (settings["starts"], settings["steps"]) == (7, 11)
    U, W = heads.path.U[:, :, 0], heads.path.W[:, :, 0]
    decoder, matrix = np.linalg.norm(U, axis=-1), np.linalg.norm(W, axis=(-2, -1))
    # Neither decides a bound here: the slope is capped, another limit of the step is less.
    np.testing.assert_allclose(passed[0].decoder, decoder.ravel(), rtol=1e-12)
    np.testing.assert_array_equal(passed[0].start_risk, np.repeat(heads.seen.risk[:, 0, 0], S))
    slope = float(deora2023_beta_1(1, heads.R, decoder.max(), "sharp"))
    np.testing.assert_allclose(audit["stability_gap"], 2 * slope * heads.stability, rtol=1e-12)
    margins = heads.seen.outputs  # of fresh samples: the training ones are the decoder's
    assert margins.shape == (E, S, M)
    reached = heads.seen.decoder[:, -1] * decoder[:, -1]
    np.testing.assert_allclose(audit["margin_reached"], reached, rtol=1e-12)
    np.testing.assert_allclose(audit["margin_reachable"], [reached[0], 50.0], rtol=1e-12)
    assert audit["rate"] == 0.05
    nuclear = np.linalg.svd(W, compute_uv=False).sum(axis=-1)
    for e in range(E):
        smallest = max((0.4, -0.2)[e], 0.0) / audit["margin_scale"][e]
        widths = head_widths(N, smallest, 0.02)
        expected = [float(widths[name]) for name in ("printed", "corrected")]
        np.testing.assert_allclose(audit["width"][e], expected, rtol=1e-12)
        for k in range(S):
            change = np.sqrt(np.sum((U[e, k] - U[e, 0]) ** 2) + np.sum((W[e, k] - W[e, 0]) ** 2))
            norm = np.sqrt(decoder[e, k] ** 2 + matrix[e, k] ** 2)
            head = TrainedHead(
                N, T, D, heads.R, np.abs(heads.X).max(), 0.05, (1.0, 3.0, 40.0)[k], change, norm,
                heads.seen.risk[e, k, 0], heads.seen.risk[e, 0, 0], decoder[e, k], nuclear[e, k],
            )  # fmt: skip
            bounds = BOUNDS(*map(float, head))
            for slug, name in DESCENT.items():
                value = audit[f"bound_{slug}"][e, k]
                np.testing.assert_allclose(value, bounds[name], rtol=1e-9, err_msg=name)
        s0, least = round(float(audit["land_s0"][e, -1])), float(audit["land_smallest"][e, -1])
        sizes = head_sample_sizes(head, s0, 0.3, least, 0.7)
        np.testing.assert_allclose(audit["asked"][e], [sizes[name] for name in ASKED], rtol=1e-9)
        weights = head_transformer(U[e, -1], W[e, -1])
        table = compare_bounds(weights, heads.X[e], N, 0.02, model="plain", B_x=heads.R)
        entries = {entry.name: entry for entry in table.entries}
        gaps = [entries[name].gap for name in COMPARED]
        np.testing.assert_allclose(audit["gap"][e], gaps, rtol=1e-9)
        needed = [entries[name].samples_until_nonvacuous for name in COMPARED]
        np.testing.assert_allclose(audit["needed"][e], needed, rtol=1e-9)


BOUNDS = jax.jit(lambda *numbers: head_descent_bounds(TrainedHead(*numbers)))
