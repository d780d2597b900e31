r"""The single-layer scalar Transformer of Theorem 4.1 of trauger2023sequence.

Orientation. Its proof takes the maximum over the entries of w and then uses ||e_j' W_c'||_1 <=
B_c and ||e_j' W_v'||_1 <= B_v, that is ||W_c||_{1,inf} and ||W_v||_{1,inf} in the paper's own
columns-first notation; printed are ||W_c'||_{1,inf} and ||W_v'||_{1,inf}. The two displays of the
class differ as well, X W_QK' x in one and X W_QK x in the other; the proof covers x -> W_QK x.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class SingleLayerTransformer(eqx.Module):
    r"""The function sum_h w' W_c,h' sigma(W_v,h' X' softmax(X W_QK,h x_[CLS])), no Pi_norm.

    Section 4.1 of trauger2023sequence; heads are summed as in its section 4.2.

    Attributes:
        w: readout, bounded in the l_1 norm.
        query_key: W_QK of each head.
        value: W_v of each head.
        output: W_c of each head.
        activation: sigma, elementwise, L_sigma-Lipschitz and zero at zero.

    Examples:
        >>> eye = jnp.eye(2)[None]
        >>> model = SingleLayerTransformer(jnp.array([1.0, 3.0]), 0 * eye, eye, eye)
        >>> float(model(jnp.eye(2), jnp.ones(2)))
        2.0
    """

    w: Float[Array, " d"]
    query_key: Float[Array, "H d d"]
    value: Float[Array, "H d k"]
    output: Float[Array, "H k d"]
    activation: Callable[[Array], Array] = eqx.field(static=True, default=jax.nn.relu)

    def __call__(self, X: Float[Array, "T d"], x_cls: Float[Array, " d"]) -> Float[Array, ""]:
        """The output on one example.

        Args:
            x_cls: the [CLS] token, usually a row of X.
        """
        pooled = jax.nn.softmax(self.query_key @ x_cls @ X.T, axis=-1) @ X
        hidden = self.activation(jnp.einsum("hd,hdk->hk", pooled, self.value))
        return jnp.einsum("hk,hkd->d", hidden, self.output) @ self.w
