"""A step of `LpMirrorDescent` on 100 million float32 parameters beside SGD with momentum (foreach).

25 matrices of 2000 x 2000, one core, gradients at hand. In every round each side makes one step;
`slowdown` is the median over
rounds of our processor time over the peer's, aimed at 1.3 at most. The state is
counted, not estimated. Exponents whose image is a general power (p = 1.75, 10) are reported beside
those that take roots and products (`image`).

What a step cannot avoid stands beside it, in units of the peer's step: `traffic`, the same arrays
read and written in the same pieces by one sum and one copy, no root or power taken; and `image`,
the powers of as many entries in one piece that stays in the cache. A program of separate calls
takes the sum of the two. `compiled` is the same step under `torch.compile`, which makes one loop
of them: powers are then taken while memory is waited for.
"""

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.interleave import pin_to_one_core, seconds, write_results

pin_to_one_core()

import torch  # noqa: E402

from attlas.torch import LpMirrorDescent  # noqa: E402
from attlas.torch.blocks import CHUNK  # noqa: E402
from attlas.torch.signed_power import power_of, signed_power_  # noqa: E402

TENSORS, SIDE, ROUNDS, GOAL = 25, 2000, 5, 1.3
EXPONENTS = (2.0, 1.5, 3.0, 1.1, 1.75, 10.0)


def parameters() -> list[torch.nn.Parameter]:
    """The matrices, with gradients."""
    torch.manual_seed(0)
    found = [torch.nn.Parameter(0.02 * torch.randn(SIDE, SIDE)) for _ in range(TENSORS)]
    for w in found:
        w.grad = torch.randn_like(w)
    return found


def state_bytes(optimizer: torch.optim.Optimizer) -> float:
    """Bytes per parameter that an optimiser keeps between steps."""
    kept = [
        value
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, torch.Tensor)
    ]
    return sum(value.nbytes for value in kept) / (TENSORS * SIDE**2)


def image_of(p: float) -> str:
    """How the parameter is computed from the mirror variable."""
    if p == 2:
        return "none"
    power = power_of(1 / (p - 1), torch.float32)
    return "power" if not power.factors else f"{power.roots} roots, {power.factors} factors"


def move_only(arrays: list[tuple[torch.Tensor, ...]]) -> None:
    """What a step reads and writes, with no power taken."""
    with torch.no_grad():
        for each in arrays:
            for image, u, g in zip(*(a.view(-1).split(CHUNK) for a in each), strict=True):
                u.add_(g, alpha=-1e-6)
                image.copy_(u)


def powers_only(p: float) -> None:
    """The powers of as many entries, in one piece that stays in the cache."""
    power = power_of(1 / (p - 1), torch.float32)
    u, out = torch.randn(CHUNK), torch.empty(CHUNK)
    for _ in range(TENSORS * SIDE**2 // CHUNK):
        signed_power_([out], [u], power)


def against(peer: torch.optim.Optimizer, sides: dict[str, Callable[[], object]]) -> dict[str, Any]:
    """Median ratios of processor time to the peer's step, side by side in every round."""
    for side in sides.values():
        side()
    taken: dict[str, list[float]] = {name: [] for name in ("peer", *sides)}
    for _ in range(ROUNDS):
        taken["peer"].append(seconds(peer.step, clock=time.process_time)[0])
        for name, side in sides.items():
            taken[name].append(seconds(side, clock=time.process_time)[0])
    found: dict[str, Any] = {"seconds": statistics.median(taken["peer"])}
    for name in sides:
        ratios = [a / b for a, b in zip(taken[name], taken["peer"], strict=True)]
        found[name] = [min(ratios), statistics.median(ratios), max(ratios)]
    return found


def main() -> None:
    """Measure and write the results."""
    torch.set_num_threads(1)
    theirs_params = parameters()
    peer = torch.optim.SGD(theirs_params, 1e-6, momentum=0.9, foreach=True)
    own = [torch.nn.Parameter(w.detach().clone()) for w in theirs_params]
    for w, other in zip(own, theirs_params, strict=True):
        w.grad = other.grad
    # None of our parameters: what is changed from outside takes a closer and slower look.
    arrays = [(torch.zeros_like(w), torch.zeros_like(w), w.grad) for w in theirs_params]
    cases = []
    for p in EXPONENTS:
        for normalized in (False, True) if p == 3 else (False,):
            scaling = "normalized" if normalized else "plain"
            ours = LpMirrorDescent(own, 1e-6, p, scaling=scaling, block=None)
            peer.step()
            ours.step()
            sides: dict[str, Callable[[], object]] = {"ours": ours.step}
            if p != 2 and not normalized:
                sides |= {"traffic": partial(move_only, arrays)}
                sides |= {"powers": partial(powers_only, p), "compiled": torch.compile(ours.step)}
            found = against(peer, sides)
            low, middle, high = found["ours"]
            case = {
                "case": f"p = {p:g}{', normalised' if normalized else ''}",
                "image": image_of(p),
                "slowdown": middle,
                "slowdown_range": [low, high],
                "goal": GOAL,
                "seconds": middle * found["seconds"],
                "peer_seconds": found["seconds"],
                **{
                    f"{name}_slowdown": found[name][1]
                    for name in ("traffic", "powers", "compiled")
                    if name in found
                },
                "state_bytes_per_parameter": state_bytes(ours),
                "peer_state_bytes_per_parameter": state_bytes(peer),
                "rounds": ROUNDS,
            }
            print(case, flush=True)
            cases.append(case)
    write_results("torch_step", cases)


if __name__ == "__main__":
    sys.exit(main())
