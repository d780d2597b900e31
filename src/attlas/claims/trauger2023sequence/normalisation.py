r"""Section 2.6: the projection Pi_norm and the activation behind it, as Appendix E uses them."""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.trauger2023sequence.layer_instances import WIDTH, longest, stretched
from attlas.core.claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.core.generator import generator
from attlas.models.transformer import pi_norm

_PAPER = "trauger2023sequence"


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Two rows, from far inside the ball to far outside, close to each other or not."""
    rng = generator(key)
    a = 10.0 ** rng.uniform(-2, 2, (count, 1)) * rng.normal(size=(count, WIDTH))
    b = a + 10.0 ** rng.uniform(-3, 1, (count, 1)) * rng.normal(size=a.shape)
    batch = {"a": a, "b": b, "slope": rng.uniform(0, 1, count)}
    batch["lipschitz"] = rng.uniform(0.3, 3, count)
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _onto_sphere(row: Array) -> Array:
    return row / jnp.sqrt(jnp.sum(row**2) + 1e-300)


def _sides(instance: Instance, sphere: bool = False, stretch: bool = True) -> Sides:
    """Distances before and behind Pi_norm and sigma, and the norms behind each."""
    a, b, lipschitz = (instance[k] for k in ("a", "b", "lipschitz"))
    project = _onto_sphere if sphere else pi_norm
    rows = [project(a), project(b)]
    after = [stretched(row, lipschitz, instance["slope"]) for row in rows]
    apart = longest((a - b)[None])
    factor = lipschitz if stretch else jnp.ones(())
    left = [rows[0] - rows[1], rows[0], after[0] - after[1], after[0]]
    right = jnp.stack([apart, jnp.ones(()), factor * apart, factor])
    return Sides(jnp.stack([longest(each[None]) for each in left]), right, scale=right + 1)


PI_NORM = Claim(
    name=f"{_PAPER}/section-2-6-projection",
    paper=_PAPER,
    locator="Section 2.6 and proof of Theorem 4.2",
    statement=(
        r"\|\Pi a - \Pi b\| \le \|a-b\|, \quad \|\Pi a\| \le 1, \quad "
        r"\|\sigma(\Pi a) - \sigma(\Pi b)\| \le L_\sigma \|a-b\|, \quad "
        r"\|\sigma(\Pi a)\| \le L_\sigma"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_sides,
    control=(
        Control("rows scaled onto the sphere", sides=partial(_sides, sphere=True)),
        Control("norm 1 behind the activation", sides=partial(_sides, stretch=False)),
    ),
    terms=32,
    note=(
        "The projection on the ball, as printed. Layer normalisation as it is used, onto a "
        "sphere, has no Lipschitz constant at 0. Behind sigma rows have norm up to L_sigma, "
        "which is what the cover of W_c must allow (theorem-4-2-output-reach)."
    ),
)
