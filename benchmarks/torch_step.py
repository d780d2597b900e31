"""A step of `LpMirrorDescent` on 100 million float32 parameters beside SGD with momentum (foreach).

25 matrices of 2000 x 2000, one core, gradients at hand. In every round each side makes one step;
`slowdown` is the median over
rounds of our processor time over the peer's, aimed at 1.3 at most. The state is
counted, not estimated. Exponents whose image is a general power (p = 1.75, 10) are reported beside
those that take roots and products (`image`).
"""

import statistics
import sys
import time

from benchmarks.interleave import pin_to_one_core, seconds, write_results

pin_to_one_core()

import torch  # noqa: E402

from attlas.torch import LpMirrorDescent  # noqa: E402
from attlas.torch.signed_power import power_of  # noqa: E402

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


def main() -> None:
    """Measure and write the results."""
    torch.set_num_threads(1)
    theirs_params = parameters()
    peer = torch.optim.SGD(theirs_params, 1e-6, momentum=0.9, foreach=True)
    own = [torch.nn.Parameter(w.detach().clone()) for w in theirs_params]
    for w, other in zip(own, theirs_params, strict=True):
        w.grad = other.grad
    cases = []
    for p in EXPONENTS:
        for normalized in (False, True) if p == 3 else (False,):
            ours = LpMirrorDescent(own, 1e-6, p, normalized=normalized)
            for optimizer in (peer, ours, ours):
                optimizer.step()
            mine, theirs = [], []
            for _ in range(ROUNDS):
                mine.append(seconds(ours.step, clock=time.process_time)[0])
                theirs.append(seconds(peer.step, clock=time.process_time)[0])
            ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
            case = {
                "case": f"p = {p:g}{', normalised' if normalized else ''}",
                "image": image_of(p),
                "slowdown": statistics.median(ratios),
                "slowdown_range": [min(ratios), max(ratios)],
                "goal": GOAL,
                "seconds": statistics.median(mine),
                "peer_seconds": statistics.median(theirs),
                "state_bytes_per_parameter": state_bytes(ours),
                "peer_state_bytes_per_parameter": state_bytes(peer),
                "rounds": ROUNDS,
            }
            print(case, flush=True)
            cases.append(case)
    write_results("torch_step", cases)


if __name__ == "__main__":
    sys.exit(main())
