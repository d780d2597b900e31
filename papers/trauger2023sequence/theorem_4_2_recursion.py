r"""Theorem 4.2: the unrolled recursion of errors, and real covers: centres are built and named.

The right side of the recursion has the resolutions measured on what the hatted network sees. For
the covers, Lemma E.1 shares the resolution out, and each matrix is replaced by its centre on what
the hatted network sees, from the first layer up: by the greedy covers of Lemmas 3.6 and 3.3, the
perceptron in the rows (Edelman et al., log T), and rounding of the entries.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_deep import trauger2023_parts
from attlas.bounds.generalisation.trauger2023_masked import (
    CROSS_ENTROPY_LIPSCHITZ,
    clipped_cross_entropy,
    trauger2023_masked_parts,
)
from attlas.claims.claim import Control, Sides, Source, Status, assume
from attlas.claims.sampling import six_decades
from attlas.claims.statement import inequality
from trauger2023sequence.cover_instances import THETA, greedy_centre, row_centre
from trauger2023sequence.layer_instances import (
    KINDS,
    ROUNDINGS,
    WIDTH,
    in_ball,
    longest,
    magnitude,
    networks,
    norms,
    one_head,
    outputs,
)

_CEILING = 3.0


def _costs_at(pair, size, readout, constants):
    """The costs at given spectral norms by kind and norm of the readout."""
    c, v, qk = (size[name] for name in KINDS)
    B_x = longest(pair["X"])
    return trauger2023_parts(c, v, qk, readout, B_x, pair["lipschitz"], constants=constants)


def _own_parts(pair):
    """The costs with 1 for the softmax, at the norms of the unhatted network."""
    return _costs_at(pair, norms(pair), longest(pair["readout"]), "sharp")


def _equal_parts(pair):
    """The printed costs, at the largest norms of both networks and of all layers."""
    size, hats = norms(pair), norms(pair, "_hat")
    size = {n: jnp.full_like(s, jnp.maximum(s.max(), hats[n].max())) for n, s in size.items()}
    readout = jnp.maximum(longest(pair["readout"]), longest(pair["readout_hat"]))
    return _costs_at(pair, size, readout, "corrected")


def _total(costs, resolutions, skip="", flat=False):
    """Sum of cost times resolution; `flat` sets alpha_1 to 1."""
    beta = jnp.stack([part.beta for part in costs])
    if flat:
        # the first layer's W_c costs alpha_1 B_w, the last one's B_w
        ratio = costs[-3].beta / jnp.where(costs[1].beta > 0, costs[1].beta, 1.0)
        beta = jnp.where(jnp.asarray([part.layer == 1 for part in costs]), ratio * beta, beta)
    included = jnp.asarray([float(part.kind != skip) for part in costs])
    return jnp.sum(included * beta * resolutions)


_FLAT = Control(r"$\alpha_1 = 1$", flat=True)
on_networks = partial(inequality, sample=networks, roundings=2 * ROUNDINGS)


@inequality(
    r"Proof of Theorem 4.2, the unrolled recursion, $B_x, L_\sigma \le 1$",
    Source.FOUND,
    sample=partial(networks, longer=False),
    roundings=2 * ROUNDINGS,
    controls=[
        _FLAT,
        Control("without the errors of $W_v$", skip="value"),
        Control("a fourth of the right side", share=0.25),
    ],
)
def theorem_4_2_recursion(
    moved_single, resolutions_single, *, skip="", flat=False, share=1.0, **pair
):
    r"""$$|g(X;W,w) - g(X;\hat W,\hat w)| \le \epsilon_w + B_w \sum_{i=1}^L \alpha_i
    \big( \epsilon_c^{(i)} + L_\sigma B_c \epsilon_v^{(i)}
    + 2 L_\sigma B_c B_v \epsilon_{QK}^{(i)} \big), \quad
    \alpha_i = \prod_{j>i} L_\sigma B_c B_v (1+4B_{QK})$$

    Two layers of one head with the same bounds for both, as printed. The recursion is right; what
    Theorem 4.2 makes of it is not (theorem-4-2-printed).
    """
    right = _total(_equal_parts(one_head(pair)), resolutions_single, skip, flat)
    return Sides(moved_single, share * right, magnitude=magnitude(pair))


@on_networks(
    "Proof of Theorem 4.2, corrected and with 1 for the softmax, $H$ heads",
    status=Status.SHARPENED,
    controls=[Control(r"$1 + \|W_{QK}\|$ in place of $1 + 2 \|W_{QK}\|$", half=True), _FLAT],
)
def theorem_4_2_recursion_sharp(moved, resolutions, *, half=False, flat=False, **pair):
    r"""$$|\Delta| \le \epsilon_w + B_w \sum_i \alpha_i \sum_h \big( \epsilon_c
    + L_\sigma \|W_c\| \epsilon_v + L_\sigma \|W_c\| \|W_v\| x_i^2 \epsilon_{QK} \big),
    \quad \alpha_i = \prod_{j>i} \sum_h L_\sigma \|W_c\| \|W_v\| (1+2\|W_{QK}\|), \quad
    x_1 = B_x, \ x_i = 1$$

    Two heads, tokens up to 5, $L_\sigma$ up to 3, norms of the unhatted network alone. Nearest to
    equality is a second layer that turns what the first one erred. The factor $x_1^2$ has its own
    claim, lemma-e-2-first-layer.
    """
    costs = _own_parts(pair)
    if half:
        # 1 + ||W_QK|| in place of 1 + 2 ||W_QK|| in the second layer
        size = {name: value[-1] for name, value in norms(pair).items()}
        outer = size["output"] * size["value"]
        exact = jnp.sum(outer * (1 + 2 * size["query_key"]))
        ratio = jnp.sum(outer * (1 + size["query_key"])) / exact
        costs = [p._replace(beta=p.beta * ratio) if p.layer == 1 else p for p in costs]
    return Sides(moved, _total(costs, resolutions, flat=flat), magnitude=magnitude(pair))


@on_networks(
    "Theorem 5.1, by a cover of the scores",
    status=Status.NEW,
    controls=[_FLAT, Control("1 in place of 2 for cross-entropy", constant=1.0)],
)
def theorem_5_1_recursion(
    scores, scores_hat, resolutions, *, constant=CROSS_ENTROPY_LIPSCHITZ, flat=False, **pair
):
    r"""$$|\ell - \hat\ell| \le 2 \max_s |W_s Y - \hat W_s \hat Y| \le 2 \epsilon_W
    + 2 B_w \sum_i \alpha_i \sum_h \big( \epsilon_c + L_\sigma \|W_c\| \epsilon_v
    + L_\sigma \|W_c\| \|W_v\| x_i^2 \epsilon_{QK} \big), \quad B_w = \max_s \|W_s\|$$

    Four words, clipped at 3. The network below is paid for once: no factor $\sqrt K$ on its part,
    where the contraction of Theorem 5.1 pays it on everything.
    """
    losses = [clipped_cross_entropy(x, 0, _CEILING) for x in (scores, scores_hat)]
    costs = trauger2023_masked_parts(_own_parts(pair))
    right = constant / CROSS_ENTROPY_LIPSCHITZ * _total(costs, resolutions, flat=flat)
    size = magnitude(pair) + _CEILING
    return Sides(jnp.abs(losses[0] - losses[1]), right, magnitude=size)


_LAYERS, _SAMPLES, _TOKENS, _SLOPE = 2, 2, 4, 0.3
_ORDER = tuple((place, name) for place in range(_LAYERS) for name in KINDS)
_COVERS = ("1,1", "1,inf", "log T", "rounding")


def _coefficient(kind, M, points):
    """C of the cover of x -> M x, ||x|| <= 1; for rounding that of the first cover."""
    rows, columns = M.shape
    if kind == "log T":
        # K below e^20, which is more than is ever built here
        nats = THETA * math.log(2 * rows * points + 1) + math.log(20 / math.log(THETA))
        return float(np.linalg.norm(M, axis=1).sum() ** 2 * nats)
    if kind == "1,inf":
        norm = math.sqrt(columns) * np.abs(M).sum(0).max()
        return float(trauger2023_cover("1,inf", norm, 1.0, rows, columns))
    return float(trauger2023_cover("1,1", np.abs(M).sum(), 1.0, rows, columns))


def _centre(kind, M, seen, epsilon):
    """The centre near M at distance epsilon on inputs of norm at most 1, and its nats."""
    if kind == "log T":
        return row_centre(M, seen, np.linalg.norm(M, axis=1).sum(), 1.0, epsilon)
    if kind == "rounding":
        step = 2 * epsilon / math.sqrt(M.size)
        return step * np.round(M / step), 0.0
    if kind == "1,1":
        size = float(np.abs(M).sum())
        return greedy_centre(M, size, size / epsilon)
    size = float(np.abs(M).sum(0).max())
    return greedy_centre(M, size, size * math.sqrt(M.shape[1]) / epsilon, by_column=True)


def _costs(weights, readout):
    """Costs with 1 for the softmax, readout first, then W_c, W_v, W_QK layer by layer."""
    top = {name: np.linalg.norm(weights[name], 2, axis=(-2, -1)) for name in KINDS}
    cost, costs = float(np.linalg.norm(readout)), []
    for place in range(_LAYERS - 1, -1, -1):
        c, v, qk = (top[name][place] for name in KINDS)
        costs = [cost, cost * c, cost * c * v, *costs]
        cost *= c * v * (1 + 2 * qk)
    return np.asarray([1.0, *costs])


def _mixed(X, query_key, value):
    """sigma(Pi_norm(f)) for a batch of samples."""
    logits = np.einsum("nsd,de,nte->nst", X, query_key, X)
    law = np.exp(logits - logits.max(-1, keepdims=True))
    f = in_ball(law / law.sum(-1, keepdims=True) @ X @ value)
    return np.where(f > 0, f, _SLOPE * f)


def _network(rng, query_key):
    """Weights with one large entry each, that of W_QK given, samples and a readout."""
    # entries near one of each matrix keep l_1 norms, and with them the number of steps, small
    weights = {}
    for name in KINDS:
        size = query_key if name == "query_key" else rng.uniform(0.7, 1.0)
        matrix = 0.03 * rng.normal(size=(_LAYERS, WIDTH, WIDTH))
        matrix[:, 0, 0] += 1
        weights[name] = size * matrix
    X = in_ball(np.eye(WIDTH)[0] + 0.3 * rng.normal(size=(_SAMPLES, _TOKENS, WIDTH)))
    return weights, X, np.eye(WIDTH)[0] + 0.03 * rng.normal(size=WIDTH)


def _centres(kind, matrices, X, shares):
    """Centres of all matrices on what the network of centres sees, the readout's, and the nats."""
    hats = {name: np.zeros((_LAYERS, WIDTH, WIDTH)) for name in KINDS}
    seen, nats = X, 0.0
    for place in range(_LAYERS):
        # W_v and W_QK see the rows, W_c what they make of them
        for name in ("value", "query_key", "output"):
            number = 1 + _ORDER.index((place, name))
            if name == "output":
                rows = _mixed(seen, hats["query_key"][place], hats["value"][place])
            else:
                rows = seen
            flat = rows.reshape(-1, WIDTH)
            matrix, used = _centre(kind, matrices[number], flat, shares[number])
            hats[name][place], nats = matrix.T, nats + used
        inner = _mixed(seen, hats["query_key"][place], hats["value"][place])
        seen = in_ball(inner @ hats["output"][place])
    readout, used = _centre(kind, matrices[0], seen[:, 0], shares[0])
    return hats, readout, nats + used


def _cover(rng, kind, query_key):
    """One network with its centres, the resolution and the nats used and allowed."""
    weights, X, readout = _network(rng, query_key)
    beta = _costs(weights, readout)
    matrices = [readout[None], *(weights[name][place].T for place, name in _ORDER)]
    counts = [_SAMPLES, *[_SAMPLES * _TOKENS] * len(_ORDER)]
    C = np.asarray([_coefficient(kind, M, n) for M, n in zip(matrices, counts, strict=True)])
    gamma = float(np.sum(np.cbrt(C) * np.cbrt(beta) ** 2))
    epsilon = math.sqrt(gamma**3 / 10.0 ** rng.uniform(2.5, 3.7))
    hats, near, nats = _centres(kind, matrices, X, epsilon / gamma * np.cbrt(C / beta))
    batch = {f"{name}_hat": hats[name][:, None] for name in KINDS}
    batch |= {name: weights[name][:, None] for name in KINDS}
    batch |= {"samples": X, "readout": readout[None], "readout_hat": near, "epsilon": epsilon}
    batch |= {"nats": nats, "allowed": gamma**3 / epsilon**2, "lipschitz": 1.0}
    return batch | {"slope": _SLOPE, "named": float(kind != "rounding")}


def covered_networks(rng, count):
    """Networks with their centres by the four covers in turn."""
    sizes = six_decades(rng, count, -1.7, -0.5)
    pairs = [_cover(rng, _COVERS[i % len(_COVERS)], size) for i, size in enumerate(sizes)]
    return {name: np.stack([np.asarray(pair[name]) for pair in pairs]) for name in pairs[0]}


on_covers = partial(
    inequality,
    sample=covered_networks,
    status=Status.SHARPENED,
    count=48,
    evaluations=192,
    roundings=2 * ROUNDINGS,
)


@on_covers(
    "Theorem 4.2, covers built and measured",
    controls=[Control("the centre 0 for the readout", shrink=0.0)],
)
def theorem_4_2_covers(samples, epsilon, *, shrink=1.0, **network):
    r"""$$\max_{n \le m} |g(X_n;W,w) - g(X_n;\hat W,\hat w)| \le \epsilon, \quad
    \hat W_j \text{ the centre at distance } \epsilon_j
    = \frac{\epsilon}{\gamma} \Big( \frac{C_j}{\beta_j} \Big)^{1/3}$$

    The covers of Lemmas 3.6 and 3.3, of Edelman et al. and rounding, in turn: one recursion serves
    them all. Errors of matrices do not add up in the worst way, so that a part of the resolution
    stays unused.
    """

    def change(X):
        at = {**network, "X": X, "readout_hat": shrink * network["readout_hat"]}
        return jnp.abs(outputs(at) - outputs(at, "_hat"))

    moved = jnp.max(jax.vmap(change)(samples))
    return Sides(moved, epsilon, magnitude=magnitude({**network, "X": samples}))


@on_covers(
    "Theorem 4.2, the size of the cover",
    assumptions=[assume("a cover with names", lambda named: named > 0)],
    controls=[Control("half of the entropy", factor=0.5)],
)
def theorem_4_2_cover_names(nats, allowed, *, factor=1.0):
    r"""$$\ln \#\{\text{names of centres used}\} \le \frac{\gamma^3}{\epsilon^2}$$

    A name lists the steps that lead to the centre. The greedy covers use nearly all that the
    formula grants; the perceptron a small part of it.
    """
    return nats, factor * allowed
