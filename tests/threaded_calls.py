"""Every public function that factorises, from four threads at once.

A program of its own: where XLA's pool of threads is locked nothing in the process can end it, so
that whoever started it must. It prints the names of the functions once all threads are through.
"""

import sys
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import attlas as at
from attlas.bounds.comparison.transformer_weights import Head
from attlas.core.norms.balls import project, support_point
from attlas.core.norms.matrix import spectral_norm
from attlas.core.norms.product import product_spectral_norm
from attlas.data.gaussian_mixtures import GaussianMixture
from attlas.measures.complexity.norm_ball_classes import LinearClass
from attlas.measures.curvature.exact_spectrum import hessian_spectra
from attlas.measures.curvature.stationary_points import stationary_points
from attlas.measures.statistics.conditional_covariance import (
    conditional_covariance,
    schur_complement,
)

THREADS, TURNS = 4, 3
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


CALLS: dict[str, Callable[[], Any]] = {
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
        jax.block_until_ready(CALLS[names[(first + turn) % len(names)]]())
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
