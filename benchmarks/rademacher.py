"""Rademacher complexity by projected ascent: one program over sign vectors and starts, or a loop.

The class of Theorem 4.1 of trauger2023sequence with ||W_QK||_{1,1} bounded, float64. Every side
climbs from the same starts against the same signs with the same steps; a peer does some of the
sign vectors (and starts) and is charged for all. `difference` is the largest relative difference
of the best values found; it must stay below one rounding a number of the gradient and step, or the
benchmark fails. Seconds are those of the core, without what other work took from it.
"""

import time

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

from attlas._jax.device_arrays import generator  # noqa: E402
from attlas.measures.complexity.rademacher import draw_signs, rademacher_complexity  # noqa: E402
from trauger2023sequence.library.measures.norm_ball_classes import AttentionClass, Sequences  # noqa: E402

STARTS, STEPS, M, D = 16, 50, 64, 16
KEY = jax.random.key(0)
RADII = {"radius": 4.0, "value_radius": 1.0, "factor": 1.0, "slope": 1.0}
SCHEDULE = [((1 - step / STEPS), step % 2 == 0) for step in range(STEPS + 1)]


def projected(vectors: torch.Tensor, radius: float) -> torch.Tensor:
    """Rows on the l_1 ball, by sorting."""
    size = vectors.abs()
    excess = size.sort(-1, descending=True).values
    ranks = torch.arange(1, size.shape[-1] + 1, dtype=size.dtype)
    sums = excess.cumsum(-1) - radius
    count = (excess * ranks > sums).sum(-1, keepdim=True).clamp(min=1)
    threshold = sums.gather(-1, count - 1) / count
    return vectors.sign() * (size - threshold.clamp(min=0)).clamp(min=0)


def steepest(gradient: torch.Tensor, even: bool) -> torch.Tensor:
    """Rows of ascent directions: a signed axis, or the gradient by its length."""
    if not even:
        length = gradient.norm(dim=-1, keepdim=True)
        return gradient / torch.where(length > 0, length, 1)
    index = gradient.abs().argmax(-1, keepdim=True)
    sign = torch.where(gradient.gather(-1, index) < 0, -1.0, 1.0).to(gradient.dtype)
    return torch.zeros_like(gradient).scatter(-1, index, sign)


class Problem:
    """Sequences, signs and starts; what each side computes from them."""

    def __init__(self, sign_vectors: int, T: int) -> None:
        self.sign_vectors = sign_vectors
        draws = np.random.default_rng(0)
        tokens = draws.standard_normal((M, T, D)) / np.sqrt(D)
        self.sample = Sequences(jnp.asarray(tokens), jnp.asarray(tokens[:, -1]))
        self.family = AttentionClass("1,1", *(jnp.asarray(RADII[name]) for name in RADII))
        self.signs = draw_signs(KEY, sign_vectors, M)
        # the same draws as inside `rademacher_complexity`
        inside = generator(jax.random.fold_in(KEY, 1))
        self.first = self.family.draw(inside, (sign_vectors, STARTS), self.sample)
        self.torch_first = [torch.tensor(np.asarray(part)) for part in self.first]
        self.torch_tokens = torch.tensor(tokens)

    def ours(self) -> np.ndarray:
        """One program over everything."""
        settings = {"sign_vectors": self.sign_vectors, "starts": STARTS, "steps": STEPS}
        return rademacher_complexity(KEY, self.family, self.sample, **settings).suprema

    def by_program(self, count: int) -> np.ndarray:
        """Our ascent, a compiled program called for one sign vector after the other."""
        found = []
        for number in range(count):
            starts = jax.tree.map(lambda part, i=number: part[i], self.first)
            sign = jnp.asarray(self.signs[number])
            found.append(float(climb_from_starts(self.family, self.sample, sign, starts)))
        return np.array(found)

    def by_step(self, count: int) -> np.ndarray:
        """Our step, compiled, called in a Python loop over steps and sign vectors."""
        found = []
        for number in range(count):
            now = jax.tree.map(lambda part, i=number: part[i], self.first)
            now, best = begin(self.family, now)
            sign = jnp.asarray(self.signs[number])
            for length, even in SCHEDULE:
                now, best = one_step(self.family, self.sample, sign, now, best, length, even)
            found.append(float(jnp.max(best)))
        return np.array(found)

    def eager(self, count: int, together: int) -> np.ndarray:
        """PyTorch in eager mode; `together` starts at a time, 1 or all (a loop does the rest)."""
        found = []
        for number in range(count):
            sign = torch.tensor(self.signs[number])
            parts = [part[number][:together] for part in self.torch_first]
            found.append(self.eager_climb(sign, *parts))
        return np.array(found)

    def eager_climb(
        self, sign: torch.Tensor, W: torch.Tensor, v: torch.Tensor, s: torch.Tensor
    ) -> float:
        """The ascent from some starts with one sign vector; best value of all."""
        X, cls, count = self.torch_tokens, self.torch_tokens[:, -1], len(W)
        W = projected(W.reshape(count, -1), RADII["radius"])
        v = projected(v[..., 0], RADII["value_radius"])
        best = torch.full((count,), -torch.inf, dtype=W.dtype)
        for length, even in SCHEDULE:
            W, v = W.requires_grad_(), v.requires_grad_()
            keys = torch.einsum("cij,mj->cmi", W.reshape(count, D, D), cls)
            weight = torch.softmax(torch.einsum("mti,cmi->cmt", X, keys), dim=-1)
            pooled = torch.einsum("cmt,mti->cmi", weight, X)
            outputs = torch.relu(torch.einsum("cmi,ci->cm", pooled, v))
            value = s * RADII["factor"] * (outputs @ sign) / M
            slopes = torch.autograd.grad(value.sum(), (W, v))
            best = torch.maximum(best, value.detach())
            with torch.no_grad():
                moved = [
                    projected(old + length * RADII[radius] * steepest(slope, even), RADII[radius])
                    for old, slope, radius in zip(
                        (W, v), slopes, ("radius", "value_radius"), strict=True
                    )
                ]
            W, v = moved
        return float(best.max())


def value_and_slope(family, sample, sign, now):
    """The objective of one start."""
    return jax.value_and_grad(lambda parameters: sign @ family(parameters, sample) / M)(now)


def moved_once(family, sample, sign, now, best, length, even):
    """One step of one start."""
    value, slope = value_and_slope(family, sample, sign, now)
    moved = family.project(family.ascend(now, slope, length, even))
    return moved, jnp.maximum(best, value)


@jax.jit
def begin(family, starts):
    """The starts in the class."""
    count = starts[2].shape[0]
    return jax.vmap(family.project)(starts), jnp.full(count, -jnp.inf)


@jax.jit
def one_step(family, sample, sign, now, best, length, even):
    """One step of all starts of one sign vector."""
    step = jax.vmap(moved_once, (None, None, None, 0, 0, None, None))
    return step(family, sample, sign, now, best, jnp.asarray(length), jnp.asarray(even))


@jax.jit
def climb_from_starts(family, sample, sign, starts):
    """All steps of all starts of one sign vector."""
    now, best = begin(family, starts)
    lengths, evens = (jnp.asarray(part) for part in zip(*SCHEDULE, strict=True))

    def climb(carry, schedule):
        return one_step(family, sample, sign, *carry, *schedule), None

    (_, best), _ = jax.lax.scan(climb, (now, best), (lengths, evens))
    return jnp.max(best)


def difference(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Largest relative difference over the sign vectors that the peer did."""
    own = mine[: len(theirs)]
    return float(np.max(np.abs(own - theirs) / np.abs(own)))


def measure(sign_vectors: int, T: int) -> dict:
    """One length."""
    problem = Problem(sign_vectors, T)
    few = sign_vectors // 4
    peers = {
        "our program, one sign vector a call": (
            lambda: problem.by_program(sign_vectors),
            sign_vectors,
        ),
        "our step, Python loop": (lambda: problem.by_step(sign_vectors), sign_vectors),
        "PyTorch eager, starts at once": (lambda: problem.eager(few, STARTS), few),
    }
    for work, _ in peers.values():
        work()
    case = compare(
        f"{sign_vectors} sign vectors, {STARTS} starts, {STEPS} steps, m = {M}, T = {T}, d = {D}",
        problem.ours,
        {name: work for name, (work, _) in peers.items()},
        agree=difference,
        rounds=5,
        weights={name: done / sign_vectors for name, (_, done) in peers.items()},
        clock=time.process_time,
    )
    naive = compare(
        f"the same, PyTorch one start at a time, T = {T}",
        problem.ours,
        {"PyTorch eager, one start": lambda: problem.eager(1, 1)},
        agree=lambda *_: float("nan"),
        rounds=3,
        weights={"PyTorch eager, one start": 1 / (sign_vectors * STARTS)},
        clock=time.process_time,
    )
    # one start finds less than all of them: its value is not comparable
    del naive["peers"]["PyTorch eager, one start"]["difference"]
    tolerance = STEPS * M * T * D * float(np.finfo(float).eps)
    for name, row in case["peers"].items():
        if not row["difference"] <= tolerance:
            raise AssertionError(f"{name} is {row['difference']:.1e} away: over {tolerance:.1e}")
    case["peers"] |= naive["peers"]
    ascents = sign_vectors * STARTS * STEPS
    return {**case, "tolerance": tolerance, "ascent_steps_per_second": ascents / case["seconds"]}


def main() -> None:
    """Measure and write `results/rademacher.json`."""
    torch.set_num_threads(1)
    cases: list[dict] = []
    for T in (10, 100):
        cases.append(measure(32, T))
        # Case by case: a run that is cut short keeps what it measured.
        write_results("rademacher", cases)


if __name__ == "__main__":
    main()
