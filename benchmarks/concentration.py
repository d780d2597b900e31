"""Concentration of a million attention rows of lengths up to 512, against sorting row by row.

The rows come in blocks, as a model would hand them over: each is a slice of one of a few pools,
so that drawing them costs nothing and what is timed is the measure. The peers go row by row:
a full NumPy sort, and torch.topk as experiment 1 of liu2021analyzing would be written. Ours
measures s0 for three levels, entropy and supports besides; the peers only what is said.
"""

from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import math  # noqa: E402
import resource  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402

from attlas.measures.attention.concentration import streamed_concentration  # noqa: E402

ROWS, WIDTH, BLOCK = 1_000_000, 512, 8_000
SAMPLE = 20_000
LENGTHS = {False: "p uniform in 1 ... 512", True: "p = 512"}
TAUS = (0.2, 0.1, 0.05)
SECONDS, GIGABYTES = 10.0, 1.0


def pool(seed: int, full: bool) -> tuple[np.ndarray, np.ndarray]:
    """One block of float32 softmax rows of random sharpness, padded by zeros."""
    draw = np.random.default_rng(seed)
    lengths = np.full(BLOCK, WIDTH) if full else draw.integers(1, WIDTH + 1, BLOCK)
    sharpness = draw.uniform(0, 4, (BLOCK, 1)).astype(np.float32)
    scores = sharpness * draw.standard_normal((BLOCK, WIDTH), dtype=np.float32)
    raised = np.exp(scores - scores.max(1, keepdims=True))
    raised *= np.arange(WIDTH) < lengths[:, None]
    return raised / raised.sum(1, keepdims=True), lengths


def blocks(rows: int, full: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """`rows` rows in blocks."""
    pools = [pool(seed, full) for seed in range(4)]
    for start in range(0, rows, BLOCK):
        weights, lengths = pools[start // BLOCK % len(pools)]
        count = min(BLOCK, rows - start)
        yield weights[:count], lengths[:count]


def sort_loop(parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Top norm and s0 of one level, a full sort a row."""
    found = []
    for weights, lengths in parts:
        for row, p in zip(weights, lengths, strict=True):
            squares = np.sort(row[:p])[::-1] ** 2
            sums = np.cumsum(squares)
            s0 = int(np.searchsorted(sums, (1 - TAUS[0]) ** 2 * sums[-1])) + 1
            found.append((math.sqrt(sums[math.isqrt(int(p)) - 1]), s0))
    return np.array(found)


def topk_loop(parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Top norm alone, one torch.topk a row."""
    found = []
    for weights, lengths in parts:
        tensor = torch.from_numpy(weights)
        for row, p in zip(tensor, lengths, strict=True):
            found.append(torch.topk(row[:p], math.isqrt(int(p))).values.norm().item())
    return np.array(found)[:, None]


def sort_block(parts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Top norm and s0 of one level by torch.sort of whole padded blocks."""
    found = []
    for weights, lengths in parts:
        squares = torch.from_numpy(weights).sort(dim=1, descending=True).values ** 2
        sums = squares.cumsum(1)
        roots = torch.from_numpy(np.sqrt(lengths).astype(np.int64) - 1)
        top = sums.gather(1, roots[:, None])[:, 0].sqrt()
        s0 = (sums < (1 - TAUS[0]) ** 2 * sums[:, -1:]).sum(1) + 1
        found.append(torch.stack([top, s0.to(top.dtype)], 1))
    return torch.cat(found).numpy()


def difference(mine: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference of the top norms."""
    return float(np.max(np.abs(mine[:, 0] - theirs[:, 0])))


def million(full: bool) -> dict:
    """Time and memory of all rows on one core; the pools are drawn beforehand."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stream = blocks(ROWS, full)
    first = next(stream)
    started = time.perf_counter()
    found = streamed_concentration((part for part in (first, *stream)), TAUS)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if found.s0.shape != (ROWS, len(TAUS)):
        raise AssertionError(f"{found.s0.shape} results for {ROWS} rows")
    return {
        "case": f"{ROWS} rows, {LENGTHS[full]}, three levels, float32",
        "seconds": seconds,
        "goal_seconds": SECONDS,
        "peak_gigabytes_of_process": peak / 2**20,
        "of_which_before": before / 2**20,
        "goal_gigabytes": GIGABYTES,
        "met": bool(seconds < SECONDS and peak / 2**20 < GIGABYTES),
        "peers": {},
    }


def measure(full: bool) -> dict:
    """Ours and the peers, interleaved, on a sample of the rows."""
    parts = list(blocks(SAMPLE, full))

    def ours() -> np.ndarray:
        found = streamed_concentration(parts, TAUS)
        return np.stack([found.top_norm, found.s0[:, 0]], 1)

    case = compare(
        f"{SAMPLE} rows, {LENGTHS[full]}, float32",
        ours,
        {
            "NumPy sort, row by row": lambda: sort_loop(parts),
            "torch.topk, row by row (top norm only)": lambda: topk_loop(parts),
            "torch.sort, whole blocks (one level, no entropy)": lambda: sort_block(parts),
        },
        agree=difference,
        rounds=5,
    )
    tolerance = WIDTH * float(np.finfo(np.float32).eps)
    for peer, row in case["peers"].items():
        if row.get("difference", 0.0) > tolerance:
            raise AssertionError(f"{peer} is {row['difference']:.1e} away: over {tolerance:.1e}")
    return {**case, "tolerance": tolerance}


def main() -> None:
    """Measure and write `results/concentration.json`."""
    torch.set_num_threads(1)
    cases = [million(full=False), million(full=True)]
    cases += [measure(full=False), measure(full=True)]
    write_results("concentration", cases)


if __name__ == "__main__":
    main()
