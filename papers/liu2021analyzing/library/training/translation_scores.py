"""How well a translator predicts the next piece of sentences it was not trained on."""

from typing import Any

import jax
import numpy as np

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.models.networks.translator import Translator
from liu2021analyzing.library.data.translation_pairs import SentencePairs
from liu2021analyzing.library.training.translation import piece_losses

_losses = jax.jit(piece_losses)
_losses_compiled_quickly = jax.jit(piece_losses, compiler_options=CHEAP_COMPILATION)


def translation_scores(
    model: Translator, pairs: SentencePairs, quick_compile: bool = False, chunk: int = 100
) -> tuple[float, float]:
    """Mean cross-entropy of a next target piece, and share of pieces with the largest logit.

    Args:
        model: the translator.
        pairs: padded sentence pairs, at least one.
        quick_compile: compile for a short run.
        chunk: pairs evaluated at once.

    Returns:
        Loss in nats, and accuracy.

    Examples:
        >>> from attlas.models.networks.translator import make_translator
        >>> ones = np.ones((1, 3), int)
        >>> pairs = SentencePairs(ones, ones > 0, ones, ones > 0)
        >>> model = make_translator(jax.random.key(0), (3, 4), 2, 1, 1, 2)
        >>> loss, accuracy = translation_scores(model, pairs, quick_compile=True)
        >>> loss > 0, accuracy in (0.0, 0.5, 1.0)
        (True, True)
    """
    losses: Any = _losses_compiled_quickly if quick_compile else _losses
    sums = np.zeros(2)
    for start in range(0, pairs.source.shape[0], chunk):
        part = SentencePairs(*(each[start : start + chunk] for each in pairs))
        sums += [np.asarray(each).sum(dtype=float) for each in losses(model, part)]
    loss, accuracy = sums / pairs.target_mask[:, 1:].sum()
    return float(loss), float(accuracy)
