r"""Tangent kernel of a small softmax network in JAX, for use inside compiled programs.

The same kernel as `softmax_network_ntk.softmax_ntk`, without tiles: it holds (k n) m features,
and can be differentiated, mapped over ensembles and computed at records of a training.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.arrays import ArrayInput, own_precision
from attlas.core.memory import require_memory
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork


def dense_softmax_ntk(
    network: SoftmaxNetwork,
    X: ArrayInput,
    Z: ArrayInput | None = None,
) -> Float[Array, "kn kn2"]:
    r"""The kernel H of Definition 3.6 of gu2024exploring; m H is the softmax tangent kernel.

    $$[H_{\ell_1,\ell_2}]_{ij}=\tfrac1m\langle x_i,x_j\rangle\sum_r
    \langle v_{\ell_1,r},S_i\rangle mS_{i,r}\langle v_{\ell_2,r},S_j\rangle mS_{j,r}$$

    For ReLU and exponential units, of prefactor m^(-1/2), H is the tangent kernel itself.

    Args:
        X: samples, [n, d]; a list, or an array of NumPy, JAX or torch, traced or not.
        Z: samples of the second index, [n2, d], X itself when None.

    Returns:
        The kernel in k x k blocks of n x n2, the output index outside: row l n + i.

    A `UserError` names an array that is not finite or does not fit, or a kernel that fits no
    memory.

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((2, 2)), jnp.array([[1.0, -1.0]]))
        >>> dense_softmax_ntk(network, jnp.eye(2)).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    arrays = {"network.W": network.W, "network.a": network.a, "X": X, "Z": X if Z is None else Z}
    with own_precision("d m, k m, n d, n2 d", **arrays) as (W, a, left, right):
        size = 8 * len(a) ** 2 * len(left) * len(right)
        require_memory(size, "the kernel", "give fewer samples", on_device=True)
        network_in_precision = SoftmaxNetwork(W, a, network.activation)
        return _kernel(network_in_precision, left, left if Z is None else right)


def _kernel(network: SoftmaxNetwork, X: Array, Z: Array) -> Array:
    left = unit_features(network, X)
    right = left if Z is X else unit_features(network, Z)
    k, n, m = left.shape
    features = (left.reshape(k * n, m) @ right.reshape(-1, m).T) / m
    blocks = features.reshape(k, n, k, -1) * (X @ Z.T)[None, :, None, :]
    return blocks.reshape(k * n, -1)


def unit_features(network: SoftmaxNetwork, X: Float[Array, "n d"]) -> Float[Array, "k n m"]:
    r"""The features f_lir with H = <x_i, x_j> (1/m) sum_r f_lir f_l'jr.

    Returns:
        <v_lr, S_i> m S_ir = (a_lr - F_li / m) m S_ir, or a_lr phi'(<w_r, x_i>).

    Examples:
        >>> network = SoftmaxNetwork(jnp.zeros((2, 2)), jnp.array([[1.0, -1.0]]))
        >>> unit_features(network, jnp.eye(2)[:1]).tolist()
        [[[1.0, -1.0]]]
    """
    a = network.a[:, None, :]
    if network.activation is Activation.SOFTMAX:
        shares = jax.vmap(network.hidden)(X)
        means = (network.a @ shares.T) / network.width
        return (a - means[:, :, None]) * shares[None]
    logits = X @ network.W
    if network.activation is Activation.RELU:
        return a * (logits > 0).astype(logits.dtype)[None]
    return a * jnp.exp(logits)[None]
