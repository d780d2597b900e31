"""Bad input of the bounds on Transformers: one clear line each, naming the value and the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.compare_inputs import check_comparison, measure_inputs
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.covering.dudley import dudley_chain, dudley_integral
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.bounds.generalisation.trauger2023_masked import trauger2023_masked
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.core.errors import UserError
from attlas.measures.complexity.rademacher import rademacher_complexity
from attlas.norms.balls import project
from attlas.norms.matrix import column_norm, operator_norm
from trauger2023sequence.library.measures.norm_ball_classes import LinearClass

HEAD = Head(np.eye(4) / 2, np.ones((4, 3)) / 8, np.ones((3, 4)) / 8)
WEIGHTS = TransformerWeights(((HEAD,),), np.ones(4) / 4)
X = np.full((2, 3, 4), 0.25)  # tokens of norm 1/2
BALL = LinearClass("1,1", jnp.asarray(1.0))
SAMPLE = jnp.ones((3, 2, 2))


def table(weights=WEIGHTS, inputs=X, m=1000, delta=0.1, **settings):
    return compare_bounds(weights, inputs, m, delta, **settings)


def with_head(**parts):
    return WEIGHTS._replace(layers=((HEAD, HEAD._replace(**parts)),))


def estimate(**settings):
    return rademacher_complexity(jax.random.key(0), BALL, SAMPLE, **settings)


REFUSED = {
    "W_QK with NaN": (
        lambda: table(with_head(query_key=np.full((4, 4), np.nan))),
        "layer 1, head 2: query_key is not finite: check the training",
    ),
    "W_v infinite": (
        lambda: table(with_head(value=np.full((4, 3), np.inf))),
        "layer 1, head 2: value is not finite",
    ),
    "readout with NaN": (
        lambda: table(WEIGHTS._replace(readout=np.full(4, np.nan))),
        "readout is not finite",
    ),
    "weights that have diverged": (
        lambda: table(with_head(output=np.full((3, 4), 1e200))),
        r"layer 1, head 2: output holds 1e\+200, .* scale it",
    ),
    "W_c of another width": (
        lambda: table(with_head(output=np.ones((2, 4)))),
        r"output has shape \(2, 4\), not \(3, 4\)",
    ),
    "W_K of another width": (
        lambda: table(with_head(query_key=(np.ones((4, 2)), np.ones((4, 3))))),
        r"query_key has shape \(4, 3\), not \(4, 2\)",
    ),
    "a vector for a matrix": (
        lambda: table(with_head(value=np.ones(4))),
        r"value has shape \(4,\): give a matrix",
    ),
    "k = 0": (
        lambda: table(with_head(value=np.ones((4, 0)), output=np.ones((0, 4)))),
        r"value has shape \(4, 0\): .* at least one",
    ),
    "d = 0": (lambda: table(WEIGHTS._replace(readout=np.ones(0))), r"readout has shape \(0,\)"),
    "no head": (lambda: table(WEIGHTS._replace(layers=((),))), "at least one layer of one head"),
    "no layer": (lambda: table(WEIGHTS._replace(layers=())), "at least one layer of one head"),
    "readout with three axes": (
        lambda: table(WEIGHTS._replace(readout=np.ones((1, 1, 4)))),
        r"readout has shape \(1, 1, 4\): it must be \(d,\) or \(K, d\)",
    ),
    "inputs of another dimension": (lambda: table(inputs=X[..., :3]), r"must be \(samples, .* 4\)"),
    "inputs without samples": (lambda: table(inputs=X[:0]), "at least one sample of one token"),
    "T = 0": (lambda: table(inputs=X[:, :0]), "at least one sample of one token"),
    "inputs with NaN": (lambda: table(inputs=X * np.nan), "inputs are not finite: check for NaN"),
    "inputs with infinity": (lambda: table(inputs=X * np.inf), "inputs are not finite"),
    "inputs as text": (
        lambda: measure_inputs(X.astype(str), 4, None),
        "inputs has dtype <U32: give real numbers",
    ),
    "a token longer than B_x": (
        lambda: table(B_x=0.4),
        "B_x = 0.4, but a token has norm 0.5: raise B_x or scale the data",
    ),
    "B_x negative": (lambda: table(B_x=-1.0), "B_x = -1.0: .* finite and above 0"),
    "B_x not a number": (lambda: table(B_x=float("nan")), "B_x = nan: .* finite and above 0"),
    "delta zero": (lambda: table(delta=0.0), r"delta = 0.0: .* must lie in \(0, 1\)"),
    "delta one": (lambda: table(delta=1.0), r"delta = 1.0: .* must lie in \(0, 1\)"),
    "delta NaN": (lambda: table(delta=float("nan")), r"delta = nan: .* must lie in \(0, 1\)"),
    "m zero": (lambda: table(m=0), "m = 0 samples: a bound needs at least 1"),
    "m below the theorem's condition": (
        lambda: table(m=4, model="plain"),
        "m = 4 samples: Theorem 4.1 requires more than d = 4; give more data",
    ),
    "two layers, plain": (
        lambda: table(WEIGHTS._replace(layers=((HEAD,), (HEAD,))), model="plain"),
        "one layer with a readout .* use model 'normalised'",
    ),
    "a model of another name": (
        lambda: check_comparison(WEIGHTS, 9, 0.1, "deep", "fixed", {}),
        "model = 'deep' .* 'normalised' or",
    ),
    "norms of another name": (
        lambda: check_comparison(WEIGHTS, 9, 0.1, "plain", "known", {}),
        "norms = 'known' .* 'measured' or",
    ),
    "slope of the activation": (lambda: table(lipschitz=-1.0), "lipschitz = -1.0: .* above 0"),
    "slope of the loss": (lambda: table(loss_lipschitz=0.0), "loss_lipschitz = 0.0: .* above 0"),
    "range of the loss": (lambda: table(loss_range=float("inf")), "loss_range = inf: .* finite"),
    "gap, delta": (
        lambda: generalisation_gap(0.1, 10, 2.0),
        r"delta = 2.0: .* in \(0, 1\)",
    ),
    "gap, m": (lambda: generalisation_gap(0.1, 0, 0.1), "m = 0 samples"),
    "norm negative": (
        lambda: trauger2023_cover("1,1", -1.0, 1.0, 2, 2),
        "norm = -1.0: it must be finite and at least 0",
    ),
    "no row": (lambda: trauger2023_cover("1,1", 1.0, 1.0, 0, 2), "k = 0: .* at least 1"),
    "inputs of negative norm": (
        lambda: trauger2023_cover("2,1", 1.0, -2.0, 2, 2),
        "B_x = -2.0: .* at least 0",
    ),
    "no point": (lambda: edelman2022_cover(1.0, 1.0, 0, 2, 10), "points = 0: .* at least 1"),
    "norm not a number": (
        lambda: edelman2022_cover(float("nan"), 1.0, 3, 2, 10),
        "norm is NaN: give a number",
    ),
    "one layer, no sample": (
        lambda: trauger2023_single(1.0, 1.0, 1.0, 4, 0),
        "m = 0: .* at least 1",
    ),
    "one layer, negative factor": (
        lambda: trauger2023_single(-1.0, 1.0, 1.0, 4, 10),
        "B = -1.0: .* at least 0",
    ),
    "no word": (lambda: trauger2023_masked(1.0, 0), "K = 0: .* at least 1"),
    "integral, entropy": (lambda: dudley_integral(0.0, -1.0, 10, 1.0), "D = -1.0: .* at least 0"),
    "chain, radius": (lambda: dudley_chain(lambda e: 1 / e, 10, -1.0), "radius = -1.0: .* least 0"),
    "gap, complexity": (lambda: generalisation_gap(-0.1, 10, 0.1), "rademacher = -0.1: .* least 0"),
    "exponent below one": (lambda: column_norm(SAMPLE, 0.5, 1), "exponent p = 0.5 .* p >= 1"),
    "operator norm": (lambda: operator_norm(SAMPLE, 3, 2), "no closed form: choose"),
    "radius negative": (lambda: project(SAMPLE[0], "1,1", -1.0), "radius"),
    "one sign vector": (lambda: estimate(sign_vectors=1), "two sign vectors"),
    "no start": (lambda: estimate(starts=0), "one start"),
    "confidence one": (lambda: estimate(confidence=1.0), r"confidence in \(0, 1\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_line(case):
    act, words = REFUSED[case]
    with pytest.raises(UserError, match=words) as caught:
        act()
    assert "\n" not in str(caught.value)


def test_tokens_scaled_to_the_bound_in_single_precision_are_taken():
    rng = np.random.default_rng(0)
    tokens = rng.normal(size=(20, 3, 4)).astype(np.float32)
    tokens /= np.linalg.norm(tokens, axis=-1, keepdims=True)
    used = table(inputs=tokens, B_x=1.0).B_x
    # four roundings of an entry, and the bound covers what they added
    assert 1 <= used <= 1 + 8 * np.finfo(np.float32).eps
    assert used >= np.max(np.linalg.norm(tokens.astype(float), axis=-1))
