"""Experts of a file, one by one or stacked, and what they compute."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.transformers.forward import feed
from attlas.transformers.stored_experts import StoredExperts
from attlas.transformers.stored_tensors import StoredTensors

E, D, M = 3, 4, 2
PLAN = {
    "layers": ("0.",),
    "count": E,
    "active": 2,
    "hidden": M,
    "router": "gate",
    "gate": "experts.{}.w1",
    "inner": "experts.{}.w3",
    "outer": "experts.{}.w2",
}
SHARED = {"shared": "shared", "shared_hidden": 5, "shared_gate": "shared_gate"}


def draw(plan):
    random = np.random.default_rng(0)
    return {name: random.normal(size=shape) for name, shape in plan.shapes("0.", D).items()}


def by_hand(tensors, x, normalized, shared):
    """Token by token, expert by expert, from the file's own matrices."""

    def units(row, gate, inner, outer):
        opened = gate @ row
        return outer @ (opened / (1 + np.exp(-opened)) * (inner @ row))

    rows = []
    for row in x:
        shares = np.exp(tensors["0.gate.weight"] @ row)
        shares /= shares.sum()
        best = np.argsort(shares)[-2:]
        weight = shares[best] / (shares[best].sum() if normalized else 1)
        names = [[f"0.experts.{e}.{part}.weight" for part in ("w1", "w3", "w2")] for e in best]
        outputs = [units(row, *(tensors[name] for name in each)) for each in names]
        total = sum(w * output for w, output in zip(weight, outputs, strict=True))
        if shared:
            maps = [tensors[f"0.shared.{part}_proj.weight"] for part in ("gate", "up", "down")]
            opened = 1 / (1 + np.exp(-tensors["0.shared_gate.weight"] @ row))
            total = total + opened * units(row, *maps)
        rows.append(total)
    return np.array(rows)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_two_of_three_experts_are_averaged(normalized, shared):
    plan = StoredExperts(**PLAN, normalized=normalized, **(SHARED if shared else {}))
    tensors = draw(plan)
    x = np.random.default_rng(1).normal(size=(6, D))
    experts = plan.read(StoredTensors(tensors, plan.shapes("0.", D)), "0.", "silu")
    expected = by_hand(tensors, x, normalized, shared)
    np.testing.assert_allclose(feed(experts, jnp.asarray(x)), expected, rtol=1e-12)
    other = by_hand(tensors, x, not normalized, shared)
    assert not np.allclose(other, expected, rtol=1e-3)


def test_stacked_experts_are_the_same():
    plan = StoredExperts(**PLAN, normalized=True)
    stacked = StoredExperts(**PLAN, normalized=True, stacked="experts")
    tensors = draw(plan)

    def all_of(part):
        return np.stack([tensors[f"0.experts.{e}.{part}.weight"] for e in range(E)])

    joint = {
        "0.gate.weight": tensors["0.gate.weight"],
        "0.experts.gate_up_proj": np.concatenate([all_of("w1"), all_of("w3")], axis=1),
        "0.experts.down_proj": all_of("w2"),
    }
    assert {name: each.shape for name, each in joint.items()} == stacked.shapes("0.", D)
    apart = plan.read(StoredTensors(tensors, plan.shapes("0.", D)), "0.", "silu")
    together = stacked.read(StoredTensors(joint, stacked.shapes("0.", D)), "0.", "silu")
    for one, other in zip(jax.tree.leaves(apart), jax.tree.leaves(together), strict=True):
        np.testing.assert_array_equal(one, other)
