r"""Section 2.6: the activation behind Pi_norm, as the covers of Appendix E need it."""

from functools import partial

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from attlas.claims.trauger2023sequence.layer_instances import WIDTH, longest, stretched
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.models.networks.transformer import pi_norm

_PAPER = "trauger2023sequence"


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Two rows, from far inside the ball to far outside, close to each other or not."""
    rng = generator(key)
    a = 10.0 ** rng.uniform(-2, 2, (count, 1)) * rng.normal(size=(count, WIDTH))
    b = a + 10.0 ** rng.uniform(-3, 1, (count, 1)) * rng.normal(size=a.shape)
    batch = {"a": a, "b": b, "slope": rng.uniform(0, 1, count)}
    batch["lipschitz"] = rng.uniform(0.3, 3, count)
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _sides(instance: Instance, reach: bool = True, stretch: bool = True) -> Sides:
    """Distance and norm behind sigma, against L_sigma times those before it."""
    a, b, lipschitz = (instance[k] for k in ("a", "b", "lipschitz"))
    after = [stretched(pi_norm(row), lipschitz, instance["slope"]) for row in (a, b)]
    one = jnp.ones(())
    right = jnp.stack(
        [
            (lipschitz if stretch else one) * longest((a - b)[None]),
            lipschitz if reach else one,
        ]
    )
    left = jnp.stack([longest((after[0] - after[1])[None]), longest(after[0][None])])
    return Sides(left, right, scale=right + 1)


ACTIVATION_REACH = Claim(
    name=f"{_PAPER}/section-2-6-activation",
    paper=_PAPER,
    locator="Section 2.6 and proof of Theorem 4.2",
    statement=(
        r"\|\sigma(\Pi a) - \sigma(\Pi b)\| \le L_\sigma \|a-b\|, \quad "
        r"\|\sigma(\Pi a)\| \le L_\sigma"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_sides,
    control=(
        Control("norm 1 behind the activation", sides=partial(_sides, reach=False)),
        Control("Lipschitz constant 1", sides=partial(_sides, stretch=False)),
    ),
    terms=32,
    note=(
        "Both are attained. What the cover of W_c must allow is L_sigma, not the 1 of the print "
        "(theorem-4-2-output-reach)."
    ),
)
