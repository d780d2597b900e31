"""Few heads and the crowd that Corollary 2 demands, against a descent of its groups in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from written_out_heads import attention, output, slope

from attlas.data.tokenized_mixture import MixtureSamples, make_tokenized_mixture, sample_mixture
from attlas.optim.one_step import one_step_initialisation
from attlas.training.trajectory import log_spaced
from deora2023optimization.library.bounds.deora2023_corollary_2 import deora2023_corollary_2
from deora2023optimization.library.measures.repeated_start import start_constants
from deora2023optimization.library.repeated_heads import repeat_signed_head
from deora2023optimization.library.training.demanded_heads import (
    MOST_HEADS,
    stacked,
    train_demanded_heads,
)

COUNTS, STEPS, RATE = (1, 3, 6), 5, 0.1
MIXTURE = make_tokenized_mixture(
    jax.random.key(0), d=7, M=2, S=3.0, zeta=0.25, Z=1.0, Z_mu=0.1, Z_nu=0.1
)
DATA = 4.0, 7.0, float(MIXTURE.R)


@pytest.fixture(scope="module")
def problems():
    """Keys, heads, training and test samples; two of the last problem can hardly be separated."""
    keys = [jax.random.key(seed) for seed in (3, 8, 2)]
    first, train, test = (
        [sample_mixture(jax.random.fold_in(key, k), MIXTURE, n, 4) for key in keys]
        for k, n in enumerate((9, 6, 8))
    )
    pairs = zip(keys, first, strict=True)
    heads = [one_step_initialisation(key, part.X, part.y, 1) for key, part in pairs]
    train, test = stacked(train), stacked(test)
    train.X[-1, 0], train.y[-1, 0] = train.X[-1, 1] + 1e-3, -train.y[-1, 1]
    return (
        keys,
        heads,
        *(MixtureSamples(*map(jnp.asarray, vars(p).values())) for p in (train, test)),
    )


@pytest.fixture(scope="module")
def found(problems):
    return train_demanded_heads(*problems, COUNTS, DATA, RATE, STEPS, [1e2], records=3)


@pytest.fixture(scope="module")
def crowds(problems, found):
    """The numbers of heads of each sign of the two crowds of every problem."""
    demanded = np.minimum(np.asarray(found.corollary.heads)[:, -1, 0], 2.0**62)
    return [
        [
            np.asarray(repeat_signed_head(jax.random.fold_in(key, 3 + k), head, int(H)).copies)
            for k in range(2)
        ]
        for key, head, H in zip(*problems[:2], demanded, strict=True)
    ]


@pytest.mark.thorough
def test_the_corollary_is_evaluated_with_the_constants_of_the_start(problems, found, crowds):
    keys, heads, train, _ = problems
    copies = [
        [
            repeat_signed_head(jax.random.fold_in(key, k), head, H).copies
            for k, H in enumerate(COUNTS)
        ]
        for key, head in zip(keys, heads, strict=True)
    ]
    X, y = np.asarray(train.X), np.asarray(train.y)
    constants = start_constants(heads, X, y, np.array(copies))
    for value, wanted in zip(found.constants, constants, strict=True):
        np.testing.assert_array_equal(value, wanted)
    assert found.K.tolist() == [STEPS, 1e2]
    wanted = deora2023_corollary_2(*DATA, *constants, 6.0, found.K)
    for value, one in zip(found.corollary, wanted, strict=True):
        np.testing.assert_allclose(value, one, rtol=1e-12)
    demanded = np.asarray(found.corollary.heads)[:, -1, 0]
    assert (demanded > MOST_HEADS).tolist() == [False, False, True]
    # of the second crowd of the second problem many more heads have one sign than the other
    outputs = []
    for head, samples, (_, signs) in zip(heads, X, crowds, strict=True):
        uneven = abs(int(signs[0]) - int(signs[1])) / float(sum(signs)) ** 0.5
        single = [output(np.asarray(head.U), np.asarray(head.W), x) for x in samples]
        outputs.append(uneven * max(map(abs, single)))
    assert (np.array(outputs) <= constants.B_Phi).tolist() == [True, False, True]
    assert found.certified.tolist() == [True, False, False]


def groups_along(head, copies, scale, X, y, rates, steps):
    """Both signs of a head, times a scale, along the descent of all their copies together."""
    share = np.array(copies, float)
    U = np.stack([head.U[0], -head.U[0]]) * scale
    W = np.zeros((2, *head.W.shape[1:]))
    path = [(U, W)]
    for _ in range(steps):
        by_U, by_W = np.zeros(U.shape), np.zeros(W.shape)
        for x, b in zip(X, y, strict=True):
            lost = -b / (1 + np.exp(b * crowd_output(*path[-1], share, x))) / len(y)
            for g in range(2):
                slopes = slope(path[-1][0][g : g + 1], path[-1][1][g : g + 1], x)
                by_U[g] += lost * slopes[0][0] / share.sum() ** 0.5
                by_W[g] += lost * slopes[1][0] / share.sum() ** 0.5
        path.append((path[-1][0] - rates[0] * by_U, path[-1][1] - rates[1] * by_W))
    return path, share


def crowd_output(U, W, share, x):
    single = [output(U[g : g + 1], W[g : g + 1], x) for g in range(2)]
    return share @ single / share.sum() ** 0.5


@pytest.mark.parametrize("e", range(3))
def test_every_model_descends_with_its_heads_and_its_steps(problems, found, crowds, e):
    key, head, train, test = (part[e] if k < 2 else part for k, part in enumerate(problems))
    X, y = np.asarray(train.X[e]), np.asarray(train.y[e])
    held, labels = np.asarray(test.X[e]), np.asarray(test.y[e])
    signs = [
        np.asarray(repeat_signed_head(jax.random.fold_in(key, k), head, H).copies)
        for k, H in enumerate(COUNTS)
    ]
    certified = float(found.corollary.step_size[e, -1, 0])
    models = [(found.few, k, signs[k], 1.0, (RATE, RATE)) for k in range(3)]
    for k, H in enumerate((1, 6)):
        models.append((found.ruled, k, signs[2 * k], H**-0.5, (RATE, H * RATE)))
    models += [(found.crowd, k, crowds[e][k], 1.0, (r, r)) for k, r in ((0, RATE), (1, certified))]
    assert found.schedule == log_spaced(STEPS, 3)
    for training, k, copies, scale, rates in models:
        path, share = groups_along(head, copies, scale, X, y, rates, STEPS)
        # the sums of either sign, of size H^(1/2), nearly cancel
        rtol = 1e-10 + share.sum() ** 0.5 * np.finfo(float).eps
        for s, step in enumerate(found.schedule):
            margins = [
                np.array(
                    [b * crowd_output(*path[step], share, x) for x, b in zip(*data, strict=True)]
                )
                for data in ((X, y), (held, labels))
            ]
            losses = [np.mean(np.log1p(np.exp(-a))) for a in margins]
            recorded = training.train[e, k, s], training.test[e, k, s], training.error[e, k, s]
            np.testing.assert_allclose(recorded, (*losses, np.mean(margins[1] <= 0)), rtol=rtol)
        focus = [
            [attention(w, x)[:, marked].sum(axis=1).mean() for w in path[-1][1]]
            for x, marked in zip(held, np.asarray(test.relevant[e]), strict=True)
        ]
        relevant = np.mean(focus, axis=0) @ share / share.sum()
        np.testing.assert_allclose(training.relevant[e, k], relevant, rtol=rtol)
    sizes = [a.train.shape for a in (found.few, found.ruled, found.crowd)]
    assert sizes == [(3, count, len(found.schedule)) for count in (3, 2, 2)]
