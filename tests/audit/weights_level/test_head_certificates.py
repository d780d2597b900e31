"""Certificates against what random and extreme inputs reach; none is ever exceeded."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_attention, random_norm

from attlas.audit.weights_level.head_certificates import CERTIFICATES, head_certificates
from attlas.transformers.folding import folded_attention
from attlas.transformers.forward import attention_logits, attention_weights, head_outputs

T, D = 4, 6
ROOM = 1 + 1e-12  # what the measured side rounds


def case(**settings):
    draw = np.random.default_rng(3)
    norm = random_norm(draw, D, centred=False)
    attention = random_attention(draw, causal=False, **settings)
    gentle = dataclasses.replace(attention, W_Q=attention.W_Q / 4, b_Q=attention.b_Q / 4)
    return folded_attention(gentle, norm), norm


def inputs(folded):
    """Rows on the sphere of radius sqrt(d): random ones, and those along a head's directions."""
    draw = np.random.default_rng(5)
    rows = draw.normal(size=(40, T, D))
    for place in range(20):
        head = place % 2
        product = np.asarray(folded.W_Q[head] @ folded.W_K[0].T)
        left, _, right = np.linalg.svd(product)
        sign = 1 if place % 4 < 2 else -1
        rows[place, :2], rows[place, 2:] = left[:, 0], sign * right[0]
        rows[place] += 0.02 * place * draw.normal(size=(T, D))
    return D**0.5 * rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "settings",
    [{}, {"rotary": True}, {"rotary": True, "norms": True}, {"softcap": 0.6}, {"relative": True}],
)
def test_no_input_exceeds_a_certificate(settings):
    folded, norm = case(**settings)
    found = head_certificates(folded, norm, T)
    assert found.keys() == {quantity.name for quantity in CERTIFICATES}

    @jax.jit
    def measured(x):
        logits, weights = attention_logits(folded, x), attention_weights(folded, x)
        entropy = jnp.sum(jax.scipy.special.entr(weights), axis=-1)

        def outputs(rows):
            return head_outputs(folded, attention_weights(folded, rows), rows)

        jacobian = jax.jit(jax.jacfwd(outputs))(x).reshape(2, T * D, T * D)
        return jnp.max(jnp.abs(logits), axis=(1, 2)), jnp.min(entropy, axis=1), jacobian

    reached = [measured(jnp.asarray(x)) for x in inputs(folded)]
    largest = np.max([each[0] for each in reached], axis=0)
    least = np.min([each[1] for each in reached], axis=0)
    change = np.max([np.linalg.norm(np.asarray(each[2]), 2, axis=(1, 2)) for each in reached], 0)
    assert np.all(largest <= found["logit_bound"] * ROOM)
    assert np.all(least * ROOM >= found["entropy_bound"])
    assert np.all(change <= found["lipschitz_bound"] * ROOM)
    if not settings:
        # the control: half of each certificate is exceeded
        assert np.all(largest > 0.5 * found["logit_bound"])
    capped = "softcap" in settings
    assert np.all(np.isinf(found["lipschitz_bound"])) == ("norms" in settings or capped)
    if capped:  # which most of these inputs come close to
        assert np.all(found["logit_bound"] == 0.6)
        assert np.all(largest > 0.9 * 0.6)


def test_without_a_norm_nothing_is_certified():
    folded, _ = case()
    found = head_certificates(folded, None, T)
    for name in ("radius", "core_bound", "logit_bound", "lipschitz_bound"):
        assert np.all(np.isinf(found[name]))
    assert np.all(found["entropy_bound"] == 0)


@pytest.mark.thorough
def test_longer_contexts_are_never_safer():
    folded, norm = case()
    short, long = head_certificates(folded, norm, 4), head_certificates(folded, norm, 64)
    np.testing.assert_array_equal(short["logit_bound"], long["logit_bound"])
    assert np.all(long["lipschitz_bound"] > short["lipschitz_bound"])
    turned, norm = case(rotary=True)
    near, far = head_certificates(turned, norm, 2), head_certificates(turned, norm, 8)
    assert np.all(far["core_bound"] >= near["core_bound"])


def test_a_head_without_queries_attends_uniformly():
    folded, norm = case()
    silent = dataclasses.replace(folded, W_Q=0 * folded.W_Q, b_Q=0 * folded.b_Q)
    found = head_certificates(silent, norm, T)
    np.testing.assert_allclose(found["entropy_bound"], np.log(T), rtol=1e-12)
    assert np.all(found["logit_bound"] < 1e-100)
