r"""Beyond the paper: the factored pair W = W_K W_Q' against the nuclear-norm attention SVM.

Every theorem of the paper merges the two factors. Gradient descent on both, here with normalised
steps from a small start, is expected to follow argmin ||W||_* in place of the Frobenius norm
(Tarzanagh et al. 2023). Two or three samples of two or three tokens in three or four dimensions.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Status, assume
from attlas.claims.sampling import in_turn, shared
from attlas.claims.statement import probability
from attlas.solvers.attention_svm import attention_svm_batch
from julistiono2024optimizing.flow_instances import (
    best_tokens,
    converges,
    gaussian_selections,
)
from julistiono2024optimizing.library.solvers.nuclear_svm import nuclear_svm
from julistiono2024optimizing.library.token_selection.factored import train_factored

SIZES = ((2, 2, 3), (3, 2, 4), (2, 3, 4))
"""Samples, tokens and dimensions of the problems; each is a program of its own."""
_DRAWN, _EACH, _APART = 80, 32, 1e-3
"""Problems drawn of a size, those of them kept, and the least distance of their two SVMs."""
_RATE, _RECORDS = 0.08, (250, 1000, 4000, 16000)


def _unit(W):
    return W / np.linalg.norm(W, axis=(-2, -1), keepdims=True)


@shared
def _trained_pairs(rng, size):
    """One minus the cosine between trained products and both attention SVMs."""
    data, d = gaussian_selections(rng, _DRAWN, *size), size[2]
    tokens = best_tokens(data)
    nuclear = [nuclear_svm(data.X[i], data.z[i], tokens[i], tolerance=1e-8) for i in range(_DRAWN)]
    plain = attention_svm_batch(data.X, data.z, tokens, 2.0)
    aims = np.stack([np.asarray(svm.value) for svm in nuclear]), np.asarray(plain.value)
    apart = np.sum((_unit(aims[0]) - _unit(aims[1])) ** 2, axis=(1, 2)) / 2
    selected = np.flatnonzero(apart > _APART)[:_EACH]
    data, aims = jax.tree.map(lambda a: a[selected], data), [aim[selected] for aim in aims]
    factors = jnp.asarray(0.03 * rng.normal(size=(2, len(selected), d, d)))
    train = partial(train_factored, learning_rate=_RATE, steps=_RECORDS[-1], record_at=_RECORDS)
    W = _unit(np.asarray(jax.vmap(train)(data, factors[0], factors[1]).W))
    right, wrong = (np.sum((W - _unit(aim)[:, None]) ** 2, axis=(2, 3)) / 2 for aim in aims)
    solved = np.array([int(svm.result) == 0 for svm in nuclear])
    solved = (solved & (np.asarray(plain.result) == 0))[selected]
    return {"certified": solved, "own": right, "wrong": wrong}


def trained_pairs(rng, count):
    """Trained pairs of all sizes, at most 96."""
    return in_turn([_trained_pairs(rng, size) for size in SIZES], count)


@probability(
    r"beyond the paper: $W = W_K W_Q^\top$",
    level=3 / 5,
    status=Status.NEW,
    sample=trained_pairs,
    independent="tokens, queries, labels, value head and both factors",
    assumptions=[assume("both attention SVMs are certified", lambda certified: certified)],
    controls=[Control("the Frobenius attention SVM", frobenius=True)],
    count=len(SIZES) * _EACH,
)
def factored_pair(own, wrong, *, frobenius=False):
    r"""$$W(k)=W_K(k)W_Q(k)^\top:\quad \Pr\Big(\lim_{k\to\infty}\frac{W(k)}{\|W(k)\|_F}
    =\frac{W_\star}{\|W_\star\|_F}\Big)\ge\tfrac35,\quad W_\star=\arg\min_W\|W\|_*\ \text{s.t.}\
    (X_{i\alpha_i}-X_{it})^\top W z_i\ge1$$

    Normalised gradient descent on both factors, from entries of size 0.03, Gaussian problems whose
    nuclear and Frobenius SVMs differ by 0.001 or more. A run converges if one minus the cosine
    falls from 250 to 1000, 4000 and 16,000 steps and ends below 0.05. Others keep a worse token of
    a sample, as in worse-token-is-kept. The level is a choice, well above one half.
    """
    return converges(wrong if frobenius else own)
