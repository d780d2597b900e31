r"""Gradient of the squared loss of a two-layer softmax network, in closed form.

With residuals u_li = F_li - y_li and p_ir = m S_ir, Claim 3.4 of gu2024exploring reads

    Delta w_r = sum_i p_ir (sum_l u_li a_lr - sum_l u_li F_li / m) x_i,

two products of sizes (n k) m and (n d) m beside the two of the outputs themselves.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork


def outputs_and_gradient(
    network: SoftmaxNetwork, X: Float[Array, "n d"], Y: Float[Array, "n k"]
) -> tuple[Float[Array, "n k"], Float[Array, "d m"]]:
    r"""The outputs on all samples, and the gradient of L = (1/2) sum (F - y)^2 in W.

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((1, 2)), jnp.array([[1.0, -1.0]]))
        >>> outputs, gradient = outputs_and_gradient(network, jnp.ones((1, 1)), jnp.ones((1, 1)))
        >>> outputs.tolist(), gradient.tolist()
        ([[0.0]], [[-1.0, 1.0]])
    """
    units = _units(network, X)
    F = units @ network.a.T
    u = F - Y
    pull = u @ network.a
    if network.activation is Activation.SOFTMAX:
        pull = pull - (jnp.sum(u * F, axis=1) / network.width)[:, None]
    # The derivative of ReLU is its prefactor where the unit is active.
    slope = units
    if network.activation is Activation.RELU:
        prefactor = 1 / jnp.sqrt(jnp.asarray(network.width, units.dtype))
        slope = prefactor * (units > 0).astype(units.dtype)
    return F, X.T @ (slope * pull)


def network_gradient(
    network: SoftmaxNetwork, X: Float[Array, "n d"], Y: Float[Array, "n k"]
) -> Float[Array, "d m"]:
    r"""Claim 3.4 of gu2024exploring: the gradient Delta W of L = (1/2) sum (F - y)^2.

    $$\Delta w_r=m\sum_i\sum_\ell(F_{\ell,i}-y_{\ell,i})\langle v_{\ell,r},S_i\rangle S_{i,r}x_i$$

    For ReLU and exponential units <v, S_i> m S_ir is replaced by m^(-1/2) a_lr phi'(<w_r, x_i>).

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((1, 2)), jnp.array([[1.0, -1.0]]))
        >>> network_gradient(network, jnp.ones((1, 1)), jnp.ones((1, 1))).tolist()
        [[-1.0, 1.0]]
    """
    return outputs_and_gradient(network, X, Y)[1]


def _units(network: SoftmaxNetwork, X: Float[Array, "n d"]) -> Float[Array, "n m"]:
    """`SoftmaxNetwork.hidden` of all samples in one product."""
    return jax.vmap(network.hidden)(X)
