r"""Classes of functions on norm balls, for `rademacher_complexity`.

Every step moves each parameter by `step` radii along its normalised gradient: on even steps along
the direction of steepest ascent in the ball's own norm (an extreme point of the ball), on odd ones
along the gradient divided by its Euclidean length.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.norms.balls import dual_norm, project, support_point


def _move(W: Array, gradient: Array, ball: str, length: Array, even: Array) -> Array:
    """One matrix moved by `length`, in the ball's norm or in Euclidean length."""
    return W + length * jnp.where(
        even, support_point(gradient, ball), support_point(gradient, "frobenius")
    )


class LinearClass(eqx.Module):
    r"""The functions C -> <W, C>, ||W|| <= radius, whose suprema have a closed form.

    Attributes:
        ball: name of the norm, of `attlas.norms.balls`.

    Examples:
        >>> linear = LinearClass("1,1", jnp.array(2.0))
        >>> signs = jnp.array([[1.0, 1.0], [1.0, -1.0]])
        >>> linear.suprema(signs, jnp.array([[[1.0, 0.0]], [[3.0, 0.0]]])).tolist()
        [4.0, 2.0]
    """

    ball: str = eqx.field(static=True)
    radius: Float[Array, ""]

    def __call__(
        self, parameters: Float[Array, "r d"], inputs: Float[Array, "m r d"]
    ) -> Float[Array, " m"]:
        """Values on the inputs.

        Args:
            inputs: C_1, ..., C_m.
        """
        return jnp.einsum("rd,mrd->m", parameters, inputs)

    def suprema(
        self, signs: Float[Array, "s m"], inputs: Float[Array, "m r d"]
    ) -> Float[Array, " s"]:
        r"""The exact suprema (radius / m) ||sum_i sigma_i C_i||_*.

        Args:
            inputs: C_1, ..., C_m.
        """
        sums = jnp.einsum("sm,mrd->srd", signs, inputs)
        return self.radius * dual_norm(sums, self.ball) / inputs.shape[0]

    def draw(self, draws: np.random.Generator, shape: tuple[int, ...], inputs: Array) -> Array:
        """Gaussian matrices.

        Args:
            inputs: C_1, ..., C_m.
        """
        return jnp.asarray(draws.standard_normal((*shape, *inputs.shape[1:])), inputs.dtype)

    def project(self, parameters: Array) -> Array:
        """The nearest matrix of the ball."""
        return project(parameters, self.ball, self.radius)

    def ascend(self, parameters: Array, gradient: Array, step: Array, even: Array) -> Array:
        """One step along the normalised gradient.

        Args:
            step: length in radii.
        """
        return _move(parameters, gradient, self.ball, step * self.radius, even)

    def largest(self, inputs: Float[Array, "m r d"]) -> float:
        """The largest |<W, C_i>|.

        Args:
            inputs: C_1, ..., C_m.
        """
        return float(self.radius * jnp.max(dual_norm(inputs, self.ball)))


class Sequences(NamedTuple):
    """A sample of sequences.

    Attributes:
        tokens: one per row.
        queries: the [CLS] token of each sequence.
    """

    tokens: Float[Array, "m T d"]
    queries: Float[Array, "m d"]


class AttentionClass(eqx.Module):
    r"""The class of Theorem 4.1 of trauger2023sequence, reduced without loss.

    The functions X -> w' W_c' sigma(W_v' X' softmax(X W_QK x_cls)), ||w||_1 <= B_w, columns of W_c
    and of W_v in the l_1 balls of radii B_c and B_v (the orientation that the paper's proof uses),
    W_QK in a ball. As w' W_c' runs over the l_1 ball of radius B_w B_c, and every hidden unit has
    a free column of W_v, the supremum is that over B_w B_c s sigma(v' X' softmax(X W_QK x_cls)),
    ||v||_1 <= B_v, s = 1 or -1: the width k drops out, and half the starts have s = -1.

    Attributes:
        ball: name of the norm of W_QK.
        radius: B_QK.
        value_radius: B_v.
        factor: B_w B_c.
        slope: L_sigma.
        activation: sigma.

    Examples:
        >>> attention = AttentionClass("1,1", *(jnp.array(x) for x in (0.0, 1.0, 2.0, 1.0)))
        >>> W, v = jnp.zeros((2, 2)), jnp.array([[0.0], [1.0]])
        >>> sample = Sequences(jnp.eye(2)[None], jnp.ones((1, 2)))
        >>> attention((W, v, jnp.array(1.0)), sample).tolist()
        [1.0]
    """

    ball: str = eqx.field(static=True)
    radius: Float[Array, ""]
    value_radius: Float[Array, ""]
    factor: Float[Array, ""]
    slope: Float[Array, ""]
    activation: Callable[[Array], Array] = eqx.field(static=True, default=jax.nn.relu)

    def __call__(
        self, parameters: tuple[Array, Array, Array], inputs: Sequences
    ) -> Float[Array, " m"]:
        """Values on the sample.

        Args:
            parameters: W_QK [d, d], v [d, 1] and the sign s.
        """
        W, v, sign = parameters
        logits = jnp.einsum("mtd,md->mt", inputs.tokens, inputs.queries @ W.T)
        pooled = jnp.einsum("mt,mtd->md", jax.nn.softmax(logits, axis=1), inputs.tokens)
        return sign * self.factor * self.activation((pooled @ v)[:, 0])

    def draw(
        self, draws: np.random.Generator, shape: tuple[int, ...], inputs: Sequences
    ) -> tuple[Array, Array, Array]:
        """Gaussian matrices at twice the radius in Frobenius norm; the first start has W_QK = 0.

        Args:
            shape: leading axes; the last one counts the starts.

        Returns:
            W_QK, v and s, signs in turn.
        """
        d, dtype = inputs.tokens.shape[2], inputs.tokens.dtype
        W = draws.standard_normal((*shape, d, d)) * 2 * float(self.radius) / d
        W[..., 0, :, :] = 0
        v = draws.standard_normal((*shape, d, 1)) * 2 * float(self.value_radius) / np.sqrt(d)
        signs = np.broadcast_to((-1.0) ** np.arange(shape[-1]), shape)
        return jnp.asarray(W, dtype), jnp.asarray(v, dtype), jnp.asarray(signs, dtype)

    def project(self, parameters: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        """The nearest parameters of the class.

        Returns:
            The projections; the sign as it is.
        """
        W, v, sign = parameters
        return project(W, self.ball, self.radius), project(v, "1,1", self.value_radius), sign

    def ascend(
        self,
        parameters: tuple[Array, Array, Array],
        gradient: tuple[Array, Array, Array],
        step: Array,
        even: Array,
    ) -> tuple[Array, Array, Array]:
        """One step of W_QK and v along their normalised gradients.

        Args:
            step: length in radii.
        """
        W, v, sign = parameters
        moved = _move(W, gradient[0], self.ball, step * self.radius, even)
        return moved, _move(v, gradient[1], "1,1", step * self.value_radius, even), sign

    def largest(self, inputs: Sequences) -> float:
        r"""The bound B_w B_c L_sigma B_v max |X_tj| on the values."""
        scale = self.factor * self.slope * self.value_radius
        return float(scale * jnp.max(jnp.abs(inputs.tokens)))
