r"""Lemma B.1, parts 2 to 13, on the event of part 1, and parts 8, 9, 12 and 13 without it.

On the event |<w_r, x_i>| <= B the parts hold surely; `lemma_b_1_event` has its probability.
alpha_i are the sums of exponentials, S_i the softmax, `moved` and `_moved` mark the same for
W_tilde within R of W, and ||z||_inf <= 1. Arrays have 5 dimensions and 64 units: inputs are zero
beyond d = 1 to 5, and units beyond m = 2, 6 or 64 repeat the first ones without weight.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from attlas.bounds.optimisation.gu2024_perturbation import (
    gu2024_basic_bounds,
    gu2024_relative_bounds,
)
from attlas.claims.claim import Control, ProofStep, Sides, Status, assume
from attlas.claims.statement import inequality
from gu2024exploring.instances import (
    logit_rounding,
    networks,
    perturb,
    softmax_weights,
    within_radius,
)

_D, _M, _N = 5, 64, 3
_WIDTHS = np.array([2, 6, _M])


def perturbed_networks(rng, count, largest=0.01):
    """Networks of one output, moved by R at most, which is 0.01 to 1 times the largest; and z.

    Of four instances one has a single logit of the first input at B and all others at -B, moved
    apart, and one has all logits of inputs on one line at B or -B, moved together: there the parts
    are tightest.
    """
    batch = networks(rng, count, (_D, _M, 1, _N))
    lengths = np.linalg.norm(batch["X"], axis=2, keepdims=True)
    lengths[1::2, 0] = 1
    batch["X"] = batch["X"] * (np.arange(_D) < rng.integers(1, _D + 1, (count, 1, 1)))
    batch["X"] *= lengths / np.linalg.norm(batch["X"], axis=2, keepdims=True)
    batch["X"][3::4, 1:] = np.array([[-1.0], [1.0]]) * batch["X"][3::4, :1]
    batch["W"] = np.clip(batch["W"], -10, 10)
    batch = perturb(rng, batch, (largest / 100, largest))
    x, kind = batch["X"][1::2, 0], np.arange(count)[1::2, None] // 2 % 2
    apart = np.where((np.arange(_M) == 0) | (kind > 0), 1.0, -1.0)
    size = np.maximum(1, rng.uniform(-1, 3, (len(x), 1)))
    side = size * rng.choice([-1.0, 1.0], (len(x), 1)) ** kind * apart
    batch["W"][1::2] = x[:, :, None] * side[:, None, :]
    step = x[:, :, None] * (batch["R"][1::2, None] * apart)[:, None, :]
    batch["W_tilde"][1::2] = batch["W"][1::2] + step
    m = _WIDTHS[rng.integers(len(_WIDTHS), size=count)]
    units = np.arange(_M)[None] % m[:, None]
    for name in ("W", "W_tilde"):
        batch[name] = np.take_along_axis(batch[name], units[:, None, :], axis=2)
    counted = np.arange(_M)[None] < m[:, None]
    instance = {name: batch[name] for name in ("X", "W", "W_tilde", "R")}
    return instance | {"m": m.astype(float), "z": counted * rng.uniform(-1, 1, (count, _M))}


def pairs(rng, count, largest=0.01):
    """Perturbed networks; in every second instance z is the sign of the change of S_0.

    Logits, sums and softmax are NumPy's, so that the many small programs stay small.
    """
    batch = perturbed_networks(rng, count, largest)
    counted = np.arange(_M)[None] < batch["m"][:, None]
    for end, weights, logits in (("", "W", "logits"), ("_moved", "W_tilde", "moved")):
        batch[logits] = batch["X"] @ batch[weights]
        units = np.exp(batch[logits])
        batch[f"alpha{end}"] = (units * counted[:, None, :]).sum(axis=2)
        batch[f"S{end}"] = units / batch[f"alpha{end}"][:, :, None]
    batch["B"] = np.maximum(np.abs(batch["logits"]).max(axis=(1, 2)), 1)
    # A rounding of a logit of this size is magnified by an exponential.
    terms = np.abs(batch["X"]) @ np.abs(batch["W"])
    batch["rounding"] = 1 + batch["R"] + terms.max(axis=(1, 2))
    change = counted * np.sign(batch["S_moved"] - batch["S"])[:, 0]
    batch["z"][::2] = change[::2]
    batch["z"][1::4] = change[1::4]
    return batch


_EVENT = assume(
    r"$R \in (0, 0.01)$, $\|x_i\| \le 1$, $\|w_r - \tilde w_r\| \le R$; $B$ is the largest "
    r"$|\langle w_r, x_i \rangle|$, 1 at least",
    lambda R, X, W, W_tilde: (
        (R <= 0.01)
        & jnp.all(jnp.sum(X**2, axis=1) <= 1 + 1e-12)
        & jnp.all(jnp.sum((W_tilde - W) ** 2, axis=0) <= R**2 * (1 + 1e-9))
    ),
)
# Products over d, an exponential, a sum of m, a division: below 32; twice, for both weights.
on_the_event = partial(
    inequality, sample=pairs, assumptions=[_EVENT], alike=True, count=48, roundings=64
)
link = partial(ProofStep, "Lemma B.1 (Part 13)")


def _bound(part, B, R, m):
    return gu2024_basic_bounds(B, R, m)[part]


@on_the_event(
    "Lemma B.1, Part 2",
    controls=[Control("$B$ without $R$", still=True)],
    evaluations=1248,
)
def lemma_b_1_part_2(moved, B, R, m, rounding, *, still=False):
    r"""$$|\langle \tilde{w}_r, x_i \rangle| \le B + R$$

    $B$ is taken from the weights: attained.
    """
    return Sides(jnp.abs(moved), B if still else _bound(2, B, R, m), magnitude=rounding)


@on_the_event(
    "Lemma B.1, Part 3",
    controls=[Control("$R/2$", half=True)],
    evaluations=1248,
)
def lemma_b_1_part_3(logits, moved, B, R, m, rounding, *, half=False):
    r"""$$|\langle w_r - \tilde{w}_r, x_i \rangle| \le R$$

    Attained by a column that moves along a unit input.
    """
    right = R / 2 if half else _bound(3, B, R, m)
    return Sides(jnp.abs(moved - logits), right, magnitude=rounding)


@on_the_event(
    "Lemma B.1, Part 4",
    controls=[Control("$e^{9B/10}$ in place of $e^B$", share=0.9)],
    evaluations=1392,
)
def lemma_b_1_part_4(logits, B, R, m, rounding, *, share=1.0):
    r"""$$\exp(-B) \le \exp(\langle w_r, x_i \rangle) \le \exp(B)$$

    Attained where $B$ is.
    """
    left, right = jnp.exp(jnp.abs(logits)), _bound(4, share * B, R, m)
    return Sides(left, right, magnitude=rounding * jnp.max(left))


@on_the_event("Lemma B.1, Part 5", controls=[Control("$e^B$ without $R$", still=True)])
def lemma_b_1_part_5(moved, B, R, m, rounding, *, still=False):
    r"""$$\exp(-B-R) \le \exp(\langle \tilde{w}_r, x_i \rangle) \le \exp(B + R)$$

    Attained where $B$ is.
    """
    left, right = jnp.exp(jnp.abs(moved)), jnp.exp(B) if still else _bound(5, B, R, m)
    return Sides(left, right, magnitude=rounding * jnp.max(left))


@on_the_event(
    "Lemma B.1, Part 6",
    controls=[Control("$R/2$", half=True)],
    evaluations=1344,
)
def lemma_b_1_part_6(logits, moved, B, R, m, rounding, *, half=False):
    r"""$$|\exp(\langle w_r - \tilde{w}_r, x_i \rangle) - 1| \le 2R$$

    From Fact A.6; $1.006 R$ is enough on $R \le 0.01$.
    """
    right = R / 2 if half else _bound(6, B, R, m)
    return Sides(jnp.abs(jnp.expm1(moved - logits)), right, magnitude=rounding)


@on_the_event(
    "Lemma B.1, Part 7",
    proof_step=link(1),
    controls=[
        Control("$2 R$ without $e^{B+R}$", flat=True),
        Control("0.8 in place of 2", share=0.4),
    ],
    evaluations=1392,
)
def lemma_b_1_part_7(logits, moved, B, R, m, rounding, *, flat=False, share=1.0):
    r"""$$|\exp(\langle w_r, x_i \rangle) - \exp(\langle \tilde{w}_r, x_i \rangle)| \le
    2 R \exp(B + R)$$

    Half of the bound is attained: the mean value theorem needs no 2, here or in parts 8 and 9.
    """
    left = jnp.abs(jnp.exp(logits) - jnp.exp(moved))
    right = 2 * R if flat else share * _bound(7, B, R, m)
    return Sides(left, right, magnitude=rounding * jnp.exp(jnp.maximum(logits, moved)))


@on_the_event(
    "Lemma B.1, Part 8",
    proof_step=link(2),
    controls=[
        Control("$2 m R$ without $e^{B+R}$", flat=True),
        Control("0.8 in place of 2", share=0.4),
    ],
)
def lemma_b_1_part_8(alpha, alpha_moved, B, R, m, rounding, *, flat=False, share=1.0):
    r"""$$|\alpha_i - \tilde{\alpha}_i| \le 2 m R \exp(B + R)$$

    Half of it would do and is reached where all logits are at $B$. Relative to $\alpha$
    the change is $e^R - 1$, without $B$ (part-8-sharp).
    """
    right = 2 * m * R if flat else share * _bound(8, B, R, m)
    magnitude = rounding * jnp.maximum(alpha, alpha_moved)
    return Sides(jnp.abs(alpha - alpha_moved), right, magnitude=magnitude)


_SQUARED = Control("$R^2$ in place of $R$", squared=True)
_SMALLER = Control("$e^{B/2} / m$ in place of the bound", smaller=True)


@on_the_event(
    "Lemma B.1, Part 9",
    proof_step=link(3),
    controls=[_SQUARED, Control("a fiftieth of the constant", share=0.02)],
)
def lemma_b_1_part_9(alpha, alpha_moved, B, R, m, rounding, *, squared=False, share=1.0):
    r"""$$|\alpha_i^{-1} - \tilde{\alpha}_i^{-1}| \le \frac{2R}{m} \exp(3B + 2R)$$

    Takes a large change and small sums together, which do not meet: loose by $2 e^{2B} \ge 14.8$,
    which all logits at $-B$ reach: no instance tests the constant.
    """
    right = share * _bound(9, B, R, m) * (R if squared else 1.0)
    magnitude = rounding / jnp.minimum(alpha, alpha_moved)
    return Sides(jnp.abs(1 / alpha - 1 / alpha_moved), right, magnitude=magnitude)


def _both_ways(S, m):
    """S and 1 / (m^2 S): below one number, they are both sides of parts 10 and 11."""
    return jnp.stack([S, 1 / (m**2 * S)])


@on_the_event("Lemma B.1, Part 10", controls=[_SMALLER, Control("half of the bound", share=0.5)])
def lemma_b_1_part_10(B, R, S, m, rounding, *, smaller=False, share=1.0):
    r"""$$\frac{\exp(-2B)}{m} \le S_{i,r} \le \frac{\exp(2B)}{m}$$

    Approached by wide layers: one logit at $B$, the others at $-B$.
    """
    left, right = _both_ways(S, m), jnp.exp(B / 2) / m if smaller else _bound(10, B, R, m)
    return Sides(left, share * right, magnitude=rounding * left)


@on_the_event(
    "Lemma B.1, Part 11",
    controls=[_SMALLER, Control("half of the bound", share=0.5)],
    evaluations=1392,
)
def lemma_b_1_part_11(B, R, S_moved, m, rounding, *, smaller=False, share=1.0):
    r"""$$\frac{\exp(-2B-2R)}{m} \le \tilde{S}_{i,r} \le \frac{\exp(2B + 2R)}{m}$$

    As part 10, for the moved weights.
    """
    left = _both_ways(S_moved, m)
    right = jnp.exp(B / 2) / m if smaller else _bound(11, B, R, m)
    return Sides(left, share * right, magnitude=rounding * left)


@on_the_event(
    "Lemma B.1, Part 12",
    proof_step=link(4),
    controls=[_SQUARED, Control("a hundredth of the constant", share=0.01)],
    evaluations=1392,
)
def lemma_b_1_part_12(B, R, S, S_moved, m, rounding, *, squared=False, share=1.0):
    r"""$$|S_{i,r} - \tilde{S}_{i,r}| \le \frac{4R}{m} \exp(4B + 3R)$$

    Two terms of the proof, $2 R e^{2B+R}$ and $2 R e^{4B+3R}$, give the factor 4;
    $(e^{2R} - 1) e^{2B} / m$ is true and approached (part-12-sharp): at best a fifteenth of this.
    No instance tests the constant, nor those of part 13.
    """
    right = share * _bound(12, B, R, m) * (R if squared else 1.0)
    return Sides(jnp.abs(S - S_moved), right, magnitude=rounding * S)


@on_the_event(
    "Lemma B.1, Part 13",
    proof_step=link(5),
    controls=[_SQUARED, Control("a 500th of the constant", share=0.002)],
    evaluations=528,
)
def lemma_b_1_part_13(B, R, S, S_moved, z, m, rounding, *, squared=False, share=1.0):
    r"""$$|\langle z, S_i \rangle - \langle z, \tilde{S}_i \rangle| \le 4R \exp(4B + 3R),
    \quad \|z\|_\infty \le 1$$

    The chain 7, 8, 9, 12, 13 loses $4 e^{4B} \ge 218$: $2 \tanh(R/2) \le R$ is the best bound and
    needs no $B$ (part-13-sharp).
    """
    right = share * _bound(13, B, R, m) * (R if squared else 1.0)
    return Sides(jnp.abs((S - S_moved) @ z), right, magnitude=rounding)


_LARGEST = 3.0
for_every_radius = partial(
    inequality,
    status=Status.SHARPENED,
    sample=partial(perturbed_networks, largest=_LARGEST),
    search_over=("X", "W", "W_tilde"),
    project=within_radius,
    alike=True,
    count=48,
    roundings=64,
)


@for_every_radius("Lemma B.1, Parts 8 and 9, sharpened", controls=[Control("$e^{R/2}$", share=0.5)])
def lemma_b_1_part_8_sharp(X, W, W_tilde, R, *, share=1.0):
    r"""$$e^{-R} \le \tilde{\alpha}_i / \alpha_i \le e^R \;\mathrm{for\ every}\; R, B$$

    Attained when all columns move by $R$ along $x_i$. No bound on the weights is needed.
    """
    ratio = logsumexp(X @ W_tilde, axis=1) - logsumexp(X @ W, axis=1)
    left = jnp.expm1(jnp.abs(ratio))
    right = gu2024_relative_bounds(share * R)[8]
    return Sides(left, right, magnitude=(logit_rounding(X, W) + R) * (1 + left))


@for_every_radius(
    "Lemma B.1, Part 12, sharpened",
    controls=[Control("$e^R$ in place of $e^{2R}$", share=0.5)],
    # Two units that move apart break the control, and every component asks for such an instance.
    count=96,
)
def lemma_b_1_part_12_sharp(X, W, W_tilde, R, *, share=1.0):
    r"""$$|S_{i,r} - \tilde{S}_{i,r}| \le S_{i,r} (1 - S_{i,r}) (e^{2R} - 1)
    \;\mathrm{for\ every}\; R, B$$

    Approached as $S_{ir}$ tends to 0 with $w_r$ moved up and the others down. On the event
    $S \le e^{2B}/m$, so that the bound is $(e^{2R} - 1) e^{2B} / m$ and less.
    """
    S, moved = softmax_weights(X, W), softmax_weights(X, W_tilde)
    right = S * (1 - S) * gu2024_relative_bounds(share * R)[12]
    # 1 - S is rounded where one unit holds nearly all.
    magnitude = (logit_rounding(X, W) + R) * jnp.maximum(S, moved) * jnp.exp(2 * R)
    # Shares below the smallest normal number are cut to zero.
    return Sides(jnp.abs(S - moved), right, magnitude=magnitude, error=1e-300)


@for_every_radius(
    "Lemma B.1, Part 13, sharpened",
    controls=[Control("$R/4$ in place of $R/2$", share=0.5)],
)
def lemma_b_1_part_13_sharp(X, W, W_tilde, R, *, share=1.0):
    r"""$$\max_{\|z\|_\infty \le 1} \langle z, S_i - \tilde{S}_i \rangle =
    \|S_i - \tilde{S}_i\|_1 \le 2 \tanh(R/2) \le R \;\mathrm{for\ every}\; R, B$$

    Attained by two halves of equal weight that move by $R$ against each other. The softmax is
    Lipschitz whatever the size of its logits: no $e^{4B}$ enters.
    """
    left = jnp.sum(jnp.abs(softmax_weights(X, W) - softmax_weights(X, W_tilde)), axis=1)
    right = gu2024_relative_bounds(share * R)[13]
    return Sides(left, right, magnitude=logit_rounding(X, W) + R)
