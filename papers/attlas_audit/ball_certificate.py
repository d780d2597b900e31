r"""The Lipschitz constant of a head on the ball of radius R, ours and Castin's.

All tokens have norm at most R; any mask. With rotary positions ||A|| is the largest of
||W_Q R_m W_K'|| over the relative offsets m.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.factorising import after
from attlas.bounds.attention.ball_lipschitz import ball_lipschitz, castin2024_lipschitz
from attlas.claims.claim import Control, Sides, Source, Status, assume
from attlas.claims.statement import inequality
from attlas.models.attention.rotation import turn
from attlas.norms.matrix import spectral_norm
from attlas_audit.heads import (
    ROUNDINGS,
    Head,
    jacobian_gain,
    jacobian_norm,
    large_heads,
    small_heads,
)


def _into_ball(X, R):
    length = jnp.sqrt(jnp.sum(X**2, axis=-1, keepdims=True) + 1e-300)
    return {"X": X / jnp.maximum(1.0, length / R)}


def _with_radius(sample):
    def with_radius(rng, count):
        batch = sample(rng, count)
        longest = np.linalg.norm(batch["X"], axis=-1).max(axis=-1)
        # Half of the radii are those of the longest token.
        batch["R"] = longest * np.where(rng.random(count) < 0.5, 1.0, rng.uniform(1, 2, count))
        return batch

    return with_radius


def balanced_heads(rng, count):
    """Small heads; in every second one tokens stand at the ends of the ball, on one line."""
    batch = small_heads(rng, count)
    n = batch["X"].shape[1]
    for row in range(0, count, 2):
        batch["b_Q"][row] = batch["b_K"][row] = 0
        batch["angle"][row] = 0
        for name in ("X", "W_Q", "W_K", "W_V", "W_O"):
            batch[name][row] = 0
        signs = np.where(np.arange(n) < rng.integers(1, n), 1.0, -1.0)
        batch["X"][row, :, 0] = 10 ** rng.uniform(-1, 1) * signs
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            batch[name][row, 0, 0] = 10 ** rng.uniform(-1, 0.5)
        if row % 4 == 0:
            # All rows see the first token alone: a sink by mask, with hardly any logits.
            batch["seen"][row] = np.eye(n)[[0] * n]
            batch["W_Q"][row] *= 1e-3
    return batch


small, large = _with_radius(balanced_heads), _with_radius(large_heads)
_inside = assume(
    r"$|x_i|\le R$", lambda X, R: jnp.max(jnp.sum(X**2, axis=-1)) <= R**2 * (1 + 1e-12)
)


def _norms(head):
    """||V||, ||A||, |a| and |c|; ||A|| over the relative angles of all pairs of tokens."""
    n = head.angle.shape[0]
    pairs = (head.angle[:, None] - head.angle[None, :]).reshape(n * n, -1)

    def core(angle):
        angles = jnp.broadcast_to(angle, (head.W_Q.shape[0], angle.size))
        return spectral_norm(turn(head.W_Q, angles, False) @ head.W_K.T)

    turning = jnp.max(jnp.abs(head.angle)) > 0
    length = [jnp.sqrt(jnp.sum(b**2) + 1e-300) for b in (head.b_Q, head.b_K)]
    still = jnp.sqrt(jnp.sum((head.W_K @ head.b_Q) ** 2) + 1e-300)
    keys = spectral_norm(head.W_K)
    queries = spectral_norm(after(head.W_Q, keys))
    values = spectral_norm(after(head.W_V @ head.W_O, queries))
    cores = jax.vmap(core)(after(pairs, values))
    a = jnp.where(turning, keys * length[0], still)
    return values, jnp.max(cores), a, jnp.where(turning, queries * length[1], 0.0)


@inequality(
    "Ball certificate",
    sample=small,
    status=Status.NEW,
    assumptions=[_inside],
    search_over=("X", "W_Q", "W_K", "W_V"),
    project=_into_ball,
    roundings=ROUNDINGS,
    count=48,
    controls=[
        Control("0.7 of the certificate", factor=0.7),
        Control("$\\|A\\| = 0$: the values alone", logits=0.0),
    ],
    evaluations=1200,
)
def ball_certificate(X, R, W_Q, b_Q, W_K, b_K, W_V, W_O, seen, angle, *, factor=1.0, logits=1.0):
    r"""$$\|J\|_2\le\|V\|\Big[\sqrt n\,\Big(1+\tfrac4{3\sqrt3}R\,(\|A\|R+|a|)\Big)
    +R\,(\|A\|R+|c|)\Big],\quad|x_i|\le R$$

    $a=W_Kb_Q$; $c=0$ without rotary positions, and with them $|a|\le\|W_K\||b_Q|$ and
    $|c|\le\|W_Q\||b_K|$. Proof: papers/attlas_audit/proofs/certificates.md.
    """
    head = Head(W_Q, b_Q, W_K, b_K, W_V, W_O, seen, angle)
    V, A, a, c = _norms(head)
    n = X.shape[0]
    right = ball_lipschitz(V, logits * A, R, n, logits * a, logits * c)
    return jacobian_norm(head._replace(W_V=after(W_V, right)), X), factor * right


def unturned(rng, count):
    """Large heads without positions or biases, and their radius."""
    batch = large(rng, count)
    for name in ("angle", "b_Q", "b_K"):
        batch[name][:] = 0
    return batch


@inequality(
    "Ball certificate, up to 64 tokens in 64 dimensions",
    sample=unturned,
    status=Status.NEW,
    assumptions=[_inside],
    search_over=("X", "D"),
    project=_into_ball,
    roundings=ROUNDINGS,
    count=32,
    controls=[Control("a tenth of the certificate", factor=0.1)],
    evaluations=96,
)
def ball_certificate_large(X, R, D, W_Q, b_Q, W_K, b_K, W_V, W_O, seen, angle, *, factor=1.0):
    r"""$$\frac{|JD|}{|D|}\le\|V\|\Big[\sqrt n\,\Big(1+\tfrac4{3\sqrt3}\|A\|R^2\Big)
    +\|A\|R^2\Big],\quad|x_i|\le R$$

    n counts the rows that see something.
    """
    head = Head(W_Q, b_Q, W_K, b_K, W_V, W_O, seen, angle)
    V = spectral_norm(W_V @ W_O)
    A = spectral_norm(after(W_Q @ W_K.T, V))
    n = jnp.sum(jnp.max(seen, axis=1))
    return jacobian_gain(head, X, D), factor * ball_lipschitz(V, A, R, n)


@inequality(
    "Castin's theorem on the ball",
    Source.RECALLED,
    sample=small,
    assumptions=[_inside],
    search_over=("X", "W_Q", "W_K", "W_V"),
    project=_into_ball,
    roundings=ROUNDINGS,
    count=48,
    controls=[Control("0.4 of the bound", factor=0.4)],
)
def castin_theorem(X, R, W_Q, W_K, W_V, W_O, seen, *, factor=1.0):
    r"""$$\|J\|_2\le\sqrt3\,\|V\|\sqrt{\|A\|^2R^4(4n+1)+n},\quad|x_i|\le R$$

    Castin, Ablin and Peyre (2024), without biases and positions; our text of it is from memory.
    """
    zero, still = jnp.zeros(W_Q.shape[1]), jnp.zeros((X.shape[0], 1))
    head = Head(W_Q, zero, W_K, zero, W_V, W_O, seen, still)
    V = spectral_norm(W_V @ W_O)
    A = spectral_norm(after(W_Q @ W_K.T, V))
    return jacobian_norm(head._replace(W_V=after(W_V, A)), X), factor * castin2024_lipschitz(
        V, A, R, X.shape[0]
    )


def norms(rng, count):
    """Norms and radii of all scales, and 1 to 4096 tokens."""
    V, A, R = 10 ** rng.uniform(-3, 3, (3, count))
    return {"V": V, "A": A, "R": R, "n": np.round(2 ** rng.uniform(0, 12, count))}


@inequality(
    "Ball certificate against Castin's theorem",
    sample=norms,
    status=Status.NEW,
    search_over=("A", "R", "n"),
    project=lambda A, R, n: {"A": jnp.abs(A), "R": jnp.abs(R), "n": jnp.maximum(n, 1.0)},
    controls=[Control("half of Castin's bound", factor=0.5)],
)
def ball_against_castin(V, A, R, n, *, factor=1.0):
    r"""$$\sqrt n\,(1+\kappa x)+x\le
    \sqrt{\frac{1+(1+\kappa)^2/5}3}\,\sqrt3\,\sqrt{x^2(4n+1)+n},
    \quad x=\|A\|R^2,\ \kappa=\frac4{3\sqrt3}$$

    Our constant is at most 0.7364 of theirs, attained for one token at $x=(1+\kappa)/5$, and
    tends to 2/9 of it for many tokens and large logits.
    """
    share = ((1 + (1 + 4 / 27**0.5) ** 2 / 5) / 3) ** 0.5
    return ball_lipschitz(V, A, R, n), factor * share * castin2024_lipschitz(V, A, R, n)


def laws(rng, count):
    """Laws on [-1, 1] with an atom; in a half all other mass is at the other end."""
    p, x = rng.random((count, 7)) ** 2, rng.uniform(-1, 1, (count, 7))
    p[::2, 2:] = 0
    x[::2, 0], x[::2, 1] = 1, -1
    p[::2, 0] = 2 * p[::2, 1]
    p[::4, 1] *= rng.uniform(0.3, 3, len(p[::4]))
    return {"p": p + 1e-9, "x": x}


@inequality(
    "Ball certificate, the lemma on atoms",
    sample=laws,
    status=Status.NEW,
    search_over=("p", "x"),
    project=lambda p, x: {"p": jnp.abs(p) + 1e-9, "x": jnp.clip(x, -1.0, 1.0)},
    controls=[Control("1/2 in place of 16/27", factor=0.5)],
)
def atom_variance(p, x, *, factor=16 / 27):
    r"""$$p\,\operatorname{Var}(x)\le\tfrac{16}{27}\quad\text{for a law on }[-1,1]
    \text{ with an atom of mass }p$$

    Attained by mass 2/3 at one end and 1/3 at the other. So a row whose weight on one token is
    large has little variance, and columns of P cannot be full where covariances are.
    """
    law = p / jnp.sum(p)
    mean = jnp.sum(law * x)
    left = law[0] * jnp.sum(law * (x - mean) ** 2)
    return Sides(left, jnp.asarray(factor), magnitude=jnp.asarray(1.0))
