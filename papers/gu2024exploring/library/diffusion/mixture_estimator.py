"""The estimate that knows the law of the data: the posterior mean of a Gaussian mixture."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from gu2024exploring.library.data.diffusion_pairs import DiffusionPairs
from gu2024exploring.library.data.gaussian_mixtures import GaussianMixture, posterior_mean
from gu2024exploring.library.data.noise_schedule import NoiseSchedule
from gu2024exploring.library.diffusion.score_estimation import ScoreEstimator


class MixtureEstimator(eqx.Module):
    """The exact estimate for data of a known law.

    Examples:
        >>> import jax.numpy as jnp
        >>> from gu2024exploring.library.data.noise_schedule import make_noise_schedule
        >>> normal = GaussianMixture(jnp.ones(1), jnp.zeros((1, 2)), jnp.ones(1))
        >>> schedule = make_noise_schedule(1.0, T=1.0)
        >>> score = MixtureEstimator(normal, schedule).score(schedule, jnp.array(0.5), jnp.ones(2))
        >>> bool(jnp.allclose(score, -1))
        True
    """

    mixture: GaussianMixture
    schedule: NoiseSchedule

    def predict(self, t: Float[Array, ""], x: Float[Array, " d"]) -> Float[Array, " d"]:
        """The posterior mean E[x(0) | x(t) = x]."""
        return posterior_mean(self.mixture, self.schedule, t, x)

    def score(
        self, schedule: NoiseSchedule, t: Float[Array, ""], x: Float[Array, " d"]
    ) -> Float[Array, " d"]:
        """The score grad log p_t(x), by Tweedie's formula.

        Args:
            t: positive time.
        """
        return schedule.score_of_mean(t, x, self.predict(t, x))


Estimator = ScoreEstimator | MixtureEstimator
"""What estimates clean data, and so a score: learned or known."""


@eqx.filter_jit
def predict_pairs(estimator: Estimator, pairs: DiffusionPairs) -> Float[Array, "n d"]:
    """The estimates of the clean data of pairs."""
    return jax.vmap(estimator.predict)(pairs.t, pairs.x)
