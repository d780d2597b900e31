r"""The printed sample sizes of Theorem 1 and Corollary 1 against what they must satisfy."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.generalisation.liu2021_corrected import Conditions, liu2021_known_attention
from attlas.bounds.generalisation.liu2021_sample_size import liu2021_attention, liu2021_baseline
from attlas.core.claim import (
    Claim,
    Control,
    Coverage,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.generator import generator
from attlas.core.verdict import Outcome, Witness
from attlas.models.networks.two_layer import TwoLayer

_PAPER = "liu2021analyzing"
_P, _D, _POINTS = 5, 2, 24


def _supports(key: PRNGKeyArray, count: int) -> Instance:
    """Inputs whose attention weights vanish outside a fixed support, and a network."""
    draws = generator(key)
    kept = draws.integers(1, _P + 1, count)
    x = draws.uniform(-2, 2, (count, _POINTS, _P))
    f = draws.uniform(0.2, 1, x.shape) * (np.arange(_P) < kept[:, None])[:, None, :]
    slopes = np.linalg.qr(draws.normal(size=(count, _P, _D)))[0]
    # Units of opposite sign on the first input: with one input left they must differ, too.
    slopes[:, 0, :] = np.array([1.0, -1.0]) * draws.uniform(0.5, 1.5, (count, _D))
    return {
        "z": jnp.asarray(x * f / np.linalg.norm(f, axis=2, keepdims=True)),
        "W": jnp.asarray(2 * slopes),
        "w": jnp.asarray(draws.uniform(1, 2, (count, _D))),
        "kept": jnp.asarray(kept.astype(float)),
    }


def _rank(instance: Instance, known: bool = True) -> Sides:
    """Directions of the parameters that move a prediction."""
    flat, unravel = ravel_pytree((instance["W"], instance["w"]))

    def outputs(theta: Array) -> Array:
        return jax.vmap(TwoLayer(*unravel(theta), sharpness=2.0))(instance["z"])

    rank = jnp.linalg.matrix_rank(jax.jacobian(outputs)(flat)).astype(flat.dtype)
    inputs = instance["kept"] if known else jnp.full_like(rank, _P)
    return Sides(rank, inputs * _D + _D)


def _setting() -> dict[str, Any]:
    return {"p": 130, "d": 10, "gamma": 0.1, "C_1": 1.0, "C_2": 1.0}


def _ends() -> Witness:
    """Theorem 1 at s0 = 0, tau = 1 and Corollary 1, at p = 130, d = 10, eta = 4, gamma = .1."""
    known = {**_setting(), "C_1": 2.0}
    theorem = liu2021_attention(s0=0, tau=1.0, **known)
    return {
        "theorem": np.asarray(theorem),
        "corollary": np.asarray(liu2021_baseline(**known)),
        "mended": np.asarray(130**2 * 40**2 * np.log(np.sqrt(130) * 40) * 1310),
    }


def _rescaled() -> Witness:
    """Both sizes, before and after inputs are doubled and the first layer is halved."""
    known = _setting()
    printed = [liu2021_attention(s0=11, tau=0.0, **{**known, "C_1": C_1}) for C_1 in (1.0, 0.5)]
    corrected = [
        liu2021_known_attention(130, 10, 0.1, (C_x, 1 / C_x, 1.0), Conditions(smallest=0.1))
        for C_x in (1.0, 2.0)
    ]
    return {"printed": np.asarray(printed), "corrected": np.asarray(corrected)}


def _stored(witness: Any) -> Any:
    """The one stored instance, repeated."""

    def instances(key: PRNGKeyArray, count: int) -> Instance:
        del key
        return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in witness().items()}

    return instances


def _pair(instance: Instance, name: str) -> Sides:
    return Sides(instance[name][0], instance[name][1])


def _against(instance: Instance, name: str) -> Sides:
    return Sides(instance["theorem"], instance[name])


_ERRATUM: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.IDENTITY,
    "status": Status.ERRATUM,
    "provenance": Provenance.FOUND,
    "count": 1,
    "coverage": Coverage.EXHAUSTIVE,
}

PARAMETERS = Claim(
    name=f"{_PAPER}/theorem-1-parameters",
    paper=_PAPER,
    locator="Theorem 1, the factor pd + d",
    statement=(
        r"f_j(x) = 0 \text{ for } j > s_0 \quad \Rightarrow \quad "
        r"\mathrm{rank}\, \frac{\partial (h(x_1), \dots, h(x_m))}{\partial w} = s_0 d + d"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_supports,
    sides=_rank,
    control=Control("pd + d for every support", sides=partial(_rank, known=False)),
    note=(
        "What erratum 1 leaves: if the support of the attention is known and fixed, s0 d + d of "
        "the pd + d parameters matter, and the error at large n is sigma^2 (s0 d + d)/n (theorem-"
        "1-constant). That advantage is p/s0, not p^2/s0^2; it is none where the support "
        "moves with x."
    ),
)

COROLLARY_LOG = Claim(
    name=f"{_PAPER}/corollary-1-logarithm",
    locator="Corollary 1 as Theorem 1 at s0 = 0, tau = 1",
    statement=(
        r"s_0 = 0,\ \tau = 1: \quad (\sqrt{s_0} + \tau \sqrt{p})^4 \frac{\eta^2}{\gamma^2}"
        r"\log \frac{(\sqrt{s_0} + \tau \sqrt{p}) \eta}{\gamma} (pd + d)"
        r"= p^2 \frac{\eta^2}{\gamma^2} \log \frac{p \eta}{\gamma} (pd + d)"
    ),
    instances=_stored(_ends),
    sides=partial(_against, name="corollary"),
    control=Control(
        "log(sqrt(p) eta / gamma)", sides=partial(_against, name="mended"), expect=Outcome.SUPPORTED
    ),
    expect=Expectation(Outcome.VIOLATED, "the theorem gives sqrt(p) in the logarithm"),
    witness=_ends,
    note="p = 130, d = 10, eta = 4, gamma = .1; below the resolution of the paper's constants.",
    **_ERRATUM,
)

ETA = Claim(
    name=f"{_PAPER}/theorem-1-eta",
    locator="Theorem 1, eta = C_1^2 C_2",
    statement=(
        r"x \to 2x,\ w^{(1)} \to w^{(1)}/2: \quad "
        r"n(C_1, C_2) = n\left( \tfrac12 C_1, C_2 \right), \quad \eta = C_1^2 C_2"
    ),
    instances=_stored(_rescaled),
    sides=partial(_pair, name="printed"),
    control=Control(
        "eta = C_1^2 C_2 C_x^2, in the corrected size",
        sides=partial(_pair, name="corrected"),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(Outcome.VIOLATED, "eta drops the factor C_x^2 of the proof"),
    witness=_rescaled,
    note=(
        "Doubling the inputs and halving the first layer changes no prediction, but the printed "
        "size by 23. The proof has C_x^4 in xi^2."
    ),
    **_ERRATUM,
)
