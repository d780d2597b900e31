"""Every public function that computes, from four threads at once, the factorising ones large.

A program of its own: where XLA's pool of threads is locked nothing in the process can end it, so
that whoever started it must. It prints the name of each function before its call, and all names
once all threads are through.
"""

import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from public_calls import CALLS as SMALL

import attlas as at
from attlas.audit.audit import AuditOptions
from attlas.bounds.comparison.transformer_weights import Head
from attlas.bounds.generalisation.gaussian_weights import GaussianPrior, GaussianWeights
from attlas.measures.curvature.exact_spectrum import hessian_spectra
from attlas.models.networks.encoder import make_encoder
from attlas.norms.balls import project, support_point
from attlas.norms.matrix import spectral_norm
from attlas.norms.product import product_spectral_norm
from gu2024exploring.library.data.gaussian_mixtures import GaussianMixture
from liu2021analyzing.library.measures.conditional_covariance import (
    conditional_covariance,
    schur_complement,
)
from liu2021analyzing.library.measures.stationary_points import stationary_points
from trauger2023sequence.library.measures.norm_ball_classes import LinearClass

THREADS, TURNS = 4, 2
DRAWS = np.random.default_rng(0)
WIDE = DRAWS.normal(size=(64, 48))
SQUARES = jnp.asarray(DRAWS.normal(size=(16, 24, 24)))
GRAM = WIDE.T @ WIDE / 64
Y = np.resize([1.0, -1.0], 48)


def _quartic(x: Any) -> Any:
    return jnp.sum(x**4) / 4 - jnp.sum(x**2) / 2


def _squares(w: Any, x: Any) -> Any:
    return jnp.sum((w - x) ** 2)


def _compare() -> Any:
    head = Head(GRAM / 99, GRAM / 99, GRAM / 99)
    weights = at.TransformerWeights(((head,),), WIDE[0])
    return at.compare_bounds(weights, WIDE[None], 10**6, 0.05)


def _rademacher() -> Any:
    spectral = LinearClass("spectral", jnp.array(2.0, jnp.float32))
    inputs = jnp.asarray(WIDE.reshape(4, 16, 48), jnp.float32)
    few = {"sign_vectors": 2, "starts": 2, "steps": 2}
    return at.rademacher_complexity(jax.random.key(0), spectral, inputs, **few)


def _fit() -> Any:
    start, aim = SQUARES[0], SQUARES[1]
    return at.fit(_squares, optax.sgd(0.1), start, aim, steps=3, project=_on_the_ball)


def _on_the_ball(w: Any) -> Any:
    return project(w, "spectral", jnp.array(1.0, w.dtype))


def _mean_error(w: Any) -> Any:
    x = jnp.linspace(-1.0, 1.0, 200)
    return jnp.mean((w[0] * x + w[1] > 0) != (x > 0))


def _pac_bayes() -> Any:
    law, start = GaussianWeights([3.0, 0.0], 0.1), GaussianPrior([0.0, 0.0], [1.0, 3.0])
    return at.pac_bayes_kl(_mean_error, law, start, 200, 0.05, jax.random.key(0)).bound


def _encoder() -> Any:
    return make_encoder(jax.random.key(0), 9, 5, width=4, blocks=1, heads=2, hidden=8)


def _audit() -> Any:
    options = AuditOptions(curvature=False, deep_sequences=1)
    return at.audit(_encoder(), [[8, 1, 2, 3, 4]] * 2, level="data", options=options).heads


def _run() -> Any:
    # The first call computes the cells, all others find their records.
    return at.run("smallest_width", scale="smoke", results=RESULTS, workers=1)


def _load() -> Any:
    _run()
    return at.load("smallest_width", scale="smoke", results=RESULTS)


RESULTS = Path(tempfile.mkdtemp())
LEMMA = "theorem-2-softmax"

CALLS: dict[str, Callable[[], Any]] = {
    **{call.name: partial(call.function, **call.arrays) for call in SMALL},
    "challenge": lambda: at.challenge(LEMMA, evaluations=6400).ratio,
    "power": lambda: at.power(LEMMA, count=8, evaluations=0).drawn,
    "replay": lambda: at.replay(LEMMA, dict(at.check(LEMMA, count=8).verdict.witness)),
    "held_out_bound": lambda: at.held_out_bound(0, 1000, 0.05).bound,
    "compression_bound": lambda: at.compression_bound(0.0, 10_000, 99, 0.05).bound,
    "pac_bayes_kl": _pac_bayes,
    "token_bound": lambda: at.token_bound(np.full(1000, 0.5), 4, 100, 0.05).bound,
    "union": lambda: at.union(partial(at.held_out_bound, 0, 1000), delta=0.05).bound,
    "run": _run,
    "load": _load,
    "load_model": lambda: at.load_model(_encoder()).attention([8, 1, 2, 3, 4]),
    "audit": _audit,
    "find_claims": lambda: at.find_claims(["lemma-12"]),
    "check": lambda: at.check(at.find_claims(["conditional-variance"])[0], count=4),
    "compare_bounds": _compare,
    "rademacher_complexity": _rademacher,
    "hessian_extremes": lambda: at.hessian_extremes(_quartic, WIDE[0]),
    "kernel_svm": lambda: at.kernel_svm(GRAM, Y),
    "attention_svm": lambda: at.attention_svm(WIDE.reshape(8, 8, 48), WIDE[:8], [0] * 8, 2.0),
    "fit": _fit,
    "hessian_spectra": lambda: hessian_spectra(_quartic, WIDE[:8]),
    "stationary_points": lambda: stationary_points(_quartic, WIDE[:8, :12], max_steps=20),
    "conditional_covariance": lambda: conditional_covariance(WIDE, WIDE),
    "schur_complement": lambda: schur_complement(GRAM, GRAM, GRAM),
    "spectral_norm": lambda: spectral_norm(SQUARES, upper=True),
    "product_spectral_norm": lambda: product_spectral_norm(SQUARES[0], SQUARES[1]),
    "project": lambda: project(SQUARES, "spectral", jnp.array(1.0, SQUARES.dtype)),
    "support_point": lambda: support_point(SQUARES, "spectral"),
    "GaussianMixture": lambda: GaussianMixture(
        jnp.full(16, 1 / 16), SQUARES[:, 0], SQUARES @ jnp.swapaxes(SQUARES, 1, 2)
    ),
}


def _work(first: int, done: list[int]) -> None:
    names = list(CALLS)
    for turn in range(TURNS * len(names)):
        name = names[(first + turn) % len(names)]
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        jax.block_until_ready(CALLS[name]())
    done.append(first)


def main() -> None:
    """Four threads, each beginning with another function."""
    done: list[int] = []
    places = range(0, len(CALLS), len(CALLS) // THREADS)
    threads = [threading.Thread(target=_work, args=(k, done), daemon=True) for k in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(done) == len(threads):
        sys.stdout.write(" ".join(CALLS) + "\n")


if __name__ == "__main__":
    main()
