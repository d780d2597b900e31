r"""The norm of the features in Theorem 1: as the proof has it, and what it is.

All inputs have p entries, |x_j| <= C_x; f has norm one and is a softmax scaled to it, from nearly
uniform to one-hot; C_1 = ||W||_F, C_x = max |x_j|, so that nothing is lost in the constants.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.old_claim import (
    Claim,
    Control,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)
from attlas.models.networks.rectifier import rectify

_PAPER = "liu2021analyzing"
_CHAIN = f"{_PAPER}/theorem-1"
_P, _D = 6, 3


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Random networks; in every other instance x is at a corner and W points along x o f."""
    draws = generator(key)
    x = draws.uniform(-1, 1, (count, _P)) * 10 ** draws.uniform(-1, 1, (count, 1))
    logits = draws.normal(size=(count, _P)) * 10 ** draws.uniform(-2, 1, (count, 1))
    f = np.exp(logits - logits.max(1, keepdims=True))
    W = draws.normal(size=(count, _P, _D)) * 10 ** draws.uniform(-1, 1, (count, 1, 1))
    corner = np.arange(count) % 2 == 0
    x = np.where(corner[:, None], np.abs(x).max(1, keepdims=True) * np.sign(x), x)
    along = (x * f)[:, :, None] * np.abs(W[:, :1, :])
    return {
        "x": jnp.asarray(x),
        "f": jnp.asarray(f / np.linalg.norm(f, axis=1, keepdims=True)),
        "W": jnp.asarray(np.where(corner[:, None, None], along, W)),
        "kept": jnp.asarray(draws.integers(1, _P, count)),
    }


def _unit(instance: Instance) -> Instance:
    """Weights that are not negative and of norm one."""
    f = jnp.abs(instance["f"])
    return {**instance, "f": f / jnp.maximum(jnp.linalg.norm(f), jnp.finfo(f.dtype).tiny)}


def _features(instance: Instance) -> Array:
    return jnp.linalg.norm(rectify((instance["x"] * instance["f"]) @ instance["W"]))


def _bound(instance: Instance) -> Array:
    """C_1 C_x, without the norm of f."""
    return jnp.linalg.norm(instance["W"]) * jnp.max(jnp.abs(instance["x"]))


def _tau(instance: Instance) -> Array:
    """The smallest tau of (A2): what the s0 largest weights lack to norm one."""
    falling = -jnp.sort(-instance["f"])
    lead = jnp.where(jnp.arange(_P) < instance["kept"], falling, 0.0)
    return jnp.maximum(1 - jnp.linalg.norm(lead), 0.0)


def _printed_factor(instance: Instance, lead: float = 1.0) -> Array:
    spread = lead * jnp.sqrt(instance["kept"].astype(instance["x"].dtype))
    return np.sqrt(2) * (spread + _tau(instance) * np.sqrt(_P))


def _printed(instance: Instance, lead: float = 1.0) -> Sides:
    return Sides(_features(instance), _printed_factor(instance, lead) * _bound(instance))


def _exact(instance: Instance) -> Sides:
    return Sides(_features(instance), _bound(instance) * jnp.linalg.norm(instance["f"]))


def _as_uniform(instance: Instance) -> Sides:
    return Sides(_features(instance), _bound(instance) / np.sqrt(_P))


def _entrywise(instance: Instance) -> Sides:
    x, f = instance["x"], instance["f"]
    return Sides(jnp.linalg.norm(x * f), jnp.max(jnp.abs(x)) * jnp.linalg.norm(f))


def _mean_entry(instance: Instance) -> Sides:
    x, f = instance["x"], instance["f"]
    return Sides(jnp.linalg.norm(x * f), jnp.mean(jnp.abs(x)) * jnp.linalg.norm(f))


def _attaining(instance: Instance) -> Instance:
    """The corner x = C_x sign(x) and W along x o f, of the given norm."""
    x = instance["x"]
    corner = jnp.where(x < 0, -1.0, 1.0) * jnp.max(jnp.abs(x))
    along = (corner * instance["f"])[:, None] * jnp.array([1.0, 0.0, 0.0])[None, :]
    along = along / jnp.linalg.norm(along) * jnp.linalg.norm(instance["W"])
    return {**instance, "x": corner, "W": along}


def _supremum(instance: Instance) -> Sides:
    return _exact(_attaining(instance))


def _printed_supremum(instance: Instance) -> Sides:
    return _printed(_attaining(instance))


HADAMARD = Claim(
    name=f"{_PAPER}/theorem-1-entrywise-product",
    paper=_PAPER,
    locator="Proof of Theorem 1, the norm of x o f",
    statement=r"\|x \odot f\|_2 \le C_x \|f\|_2 \quad \text{for}\quad \|x\|_\infty \le C_x",
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_entrywise,
    control=Control("the mean |x_j| in place of the largest", sides=_mean_entry),
    ledger=Link(_CHAIN, 1),
    note=(
        "The print has sqrt(s0) C_x for the leading part and tau sqrt(p) C_x for the rest, by "
        "||x|| ||f|| where max|x| ||f|| holds: this one line makes all of its dependence on s0 "
        "and p but for the number of parameters. Equality at every corner of the box."
    ),
)

PRINTED = Claim(
    name=f"{_PAPER}/theorem-1-features-printed",
    paper=_PAPER,
    locator="Proof of Theorem 1, before (14)",
    statement=(
        r"\|\phi(\langle w^{(1)}, x \odot f \rangle)\|_2"
        r" \le \sqrt{2} (\sqrt{s_0} + \tau \sqrt{p}) C_1 C_x"
    ),
    kind=Kind.INEQUALITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=_instances,
    sides=_printed,
    control=Control("tau sqrt(p) alone", sides=lambda i: _printed(i, lead=0.0)),
    note=(
        "True, though the remaining part is bounded wrongly on the way (erratum-2), because it "
        "is loose by sqrt(2)(sqrt(s0) + tau sqrt(p)): the best ratio is 1/sqrt(2), at s0 = 1, "
        "tau = 0. tau is the smallest that (A2) allows."
    ),
)

FEATURES = Claim(
    name=f"{_PAPER}/theorem-1-features",
    paper=_PAPER,
    locator="Proof of Theorem 1, before (14), sharpened",
    statement=r"\|\phi(\langle w^{(1)}, x \odot f \rangle)\|_2 \le C_1 C_x \|f\|_2",
    kind=Kind.INEQUALITY,
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_exact,
    free=("x", "f", "W"),
    domain=_unit,
    control=Control("the norm 1/sqrt(p) of uniform attention", sides=_as_uniform),
    ledger=Link(_CHAIN, 2),
    note=(
        "No concentration on the right: with ||f||_2 = 1, as the paper asks, attention weights "
        "on one input and equal weights have the same bound. With a softmax's own norm equal "
        "weights have the smaller one, which is what the control breaks."
    ),
)

ATTAINED = Claim(
    name=f"{_PAPER}/theorem-1-features-attained",
    paper=_PAPER,
    locator="Erratum 1: the factor (sqrt(s0) + tau sqrt(p))^4",
    statement=(
        r"\max_{\|x\|_\infty \le C_x,\, \|w^{(1)}\|_F \le C_1}"
        r" \|\phi(\langle w^{(1)}, x \odot f \rangle)\|_2 = C_1 C_x \|f\|_2"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_supremum,
    control=Control("sqrt(2)(sqrt(s0) + tau sqrt(p)) C_1 C_x, as printed", sides=_printed_supremum),
    note=(
        "Evaluated at the maximiser; that nothing is larger is theorem-1-features. For every f "
        "the maximum is the same number C_1 C_x, however few weights count: the advantage "
        "p^2/s0^2 of Theorem 1 over Corollary 1 (140 at p = 130, s0 = 11) is the slack of a "
        "bound. A known fixed support still leaves s0 d of the pd parameters (theorem-1-"
        "parameters)."
    ),
)
