"""The slicing proof: right for every architecture, and wrong as soon as a matrix is cut wrongly."""

import dataclasses
from functools import partial

import equinox as eqx
import numpy as np
import pytest
from random_checkpoints import random_checkpoint
from random_transformer import random_transformer

from attlas.core.errors import UserError
from attlas.transformers.architecture_table import architecture_table
from attlas.transformers.head_layout import (
    LARGEST_RESIDUAL,
    WRONG_LAYOUTS,
    check_head_layout,
    head_layout_residual,
)

KINDS = sorted(architecture_table())


def read(kind):
    """The model of a random checkpoint, with its own matrices to compare with."""
    module = architecture_table()[kind]
    config, tensors = random_checkpoint(kind)
    return dataclasses.replace(
        module.read(config, tensors, kind),
        fused_attention=lambda index, x: module.fused_attention(config, tensors, index, x),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_heads_add_up_and_no_wrong_cut_does(kind):
    model = read(kind)
    assert model.fused_attention is not None
    # the rounding of a few hundred products, far below what is allowed
    assert np.max(check_head_layout(model)) < LARGEST_RESIDUAL / 1000
    attention = model.layer(0).attention
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        for cut in WRONG_LAYOUTS.values():
            wrong = eqx.tree_at(
                lambda tree, name=name: getattr(tree, name),
                attention,
                cut(getattr(attention, name)),
            )
            residual = head_layout_residual(wrong, partial(model.fused_attention, 0))
            assert residual > 1e3 * LARGEST_RESIDUAL, (name, cut)


def test_a_wrong_cut_is_refused_with_the_matrix_and_the_layer():
    model = read("gpt2")
    heads = model.layer(1).attention
    shifted = np.roll(np.asarray(heads.W_K), 1, axis=0)
    layer = eqx.tree_at(lambda each: each.attention.W_K, model.layer(1), shifted)
    right = model.read_layer
    broken = dataclasses.replace(model, read_layer=lambda k: layer if k == 1 else right(k))
    with pytest.raises(UserError, match=r"layer 1 do not add up.*W_K"):
        check_head_layout(broken)


def test_a_model_without_a_file_cannot_be_proved():
    with pytest.raises(UserError, match="nothing to compare"):
        check_head_layout(random_transformer())
