"""The numbers of a Transformer that its training moves, for derivatives in all of them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_map_with_path

from attlas.transformers.canonical import Rotary
from attlas.transformers.whole_model import WholeModel


class HeldWeights(eqx.Module):
    """What training does not move, and whether the LM head is the embedding.

    Attributes:
        fixed: the tree without what is trained.
        is_tied: whether logits are products with the embedding, so that both are one matrix.
    """

    fixed: WholeModel
    is_tied: bool = eqx.field(static=True)

    def joined(self, trained: WholeModel) -> WholeModel:
        """The whole tree."""
        weights = eqx.combine(trained, self.fixed)
        if not self.is_tied:
            return weights
        head = weights.embedding.tokens.T
        return eqx.tree_at(lambda tree: tree.readout.lm_head.W, weights, head)


def trained_weights(*checkpoints: WholeModel) -> tuple[tuple[WholeModel, ...], HeldWeights]:
    """Split checkpoints of one model into what its training moves and what it does not.

    Frequencies of rotary positions are computed, a bias that is 0 throughout stands for none, and
    an LM head that equals the embedding is the embedding: its entries are no numbers of their own.

    Args:
        *checkpoints: trees of one structure; a bias is held where it is 0 in all of them.

    Returns:
        The trained numbers of each, None in place of the others; and the others, of the first.
    """
    is_tied = all(_is_tied(tree) for tree in checkpoints)

    def is_trained(path: tuple, *leaves: Any) -> Any:
        if isinstance(leaves[0], Rotary):
            return jax.tree.map(lambda leaf: False, leaves[0])
        if not eqx.is_inexact_array(leaves[0]):
            return False
        name = keystr(path)
        if is_tied and name == ".readout.lm_head.W":
            return False
        is_bias = name.rpartition(".")[2] in ("b", "b_Q", "b_K", "b_V", "b_O", "bias")
        return not is_bias or any(bool(jnp.any(leaf)) for leaf in leaves)

    trained = tree_map_with_path(
        is_trained, *checkpoints, is_leaf=lambda leaf: isinstance(leaf, Rotary)
    )
    splits = [eqx.partition(tree, trained) for tree in checkpoints]
    return tuple(moved for moved, _ in splits), HeldWeights(splits[0][1], is_tied)


def _is_tied(tree: WholeModel) -> bool:
    head, tokens = tree.readout.lm_head, tree.embedding.tokens
    return (
        head is not None
        and head.W.shape == tokens.T.shape
        and np.array_equal(np.asarray(head.W), np.asarray(tokens).T)
    )
