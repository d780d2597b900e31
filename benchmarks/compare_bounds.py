"""All bounds on a Transformer of 25 million parameters, and its norms beside plain SciPy.

The first case is the whole table: seconds of the first call, which compiles, and of the next ones,
by the clock and of the core (what an idle machine would take), and the peak memory of the process.
The second is the norms of all matrices, certified and in float64, beside the straightforward way in
SciPy: all singular values of each matrix (of each product of keys and queries) and sums of
|entries|, in the weights' float32 or in float64, with no allowance for rounding. `difference` is
that of the spectral norms, relatively. Where the certified ones lie below SciPy's in float64 by
more than its rounding, or above by more than their allowance, the benchmark fails.
"""

import time

from benchmarks.interleave import compare, peak_memory, pin_to_one_core, seconds, write_results

pin_to_one_core()

import numpy as np  # noqa: E402
from scipy import linalg  # noqa: E402

from attlas.bounds.comparison.compare import compare_bounds  # noqa: E402
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights  # noqa: E402
from attlas.bounds.comparison.weight_norms import weight_norms  # noqa: E402

LAYERS, HEADS, D, R, K = 8, 8, 512, 64, 320
GOAL_SECONDS = 20.0


def transformer() -> TransformerWeights:
    """8 layers of 8 heads, entries of size 1 / sqrt(d) in float32."""
    draws = np.random.default_rng(0)

    def drawn(*shape: int) -> np.ndarray:
        return (draws.standard_normal(shape) / np.sqrt(D)).astype(np.float32)

    def head() -> Head:
        return Head((drawn(D, R), drawn(D, R)), drawn(D, K), drawn(K, D))

    layers = tuple(tuple(head() for _ in range(HEADS)) for _ in range(LAYERS))
    return TransformerWeights(layers, drawn(D))


def parameters(weights: TransformerWeights) -> int:
    """Number of entries."""
    heads = [head for layer in weights.layers for head in layer]
    sizes = [(*head.query_key, head.value, head.output) for head in heads]
    return weights.readout.size + sum(part.size for parts in sizes for part in parts)


def straightforward(weights: TransformerWeights, dtype: type) -> np.ndarray:
    """Spectral norms of W_c, W_v, W_QK head by head, with all other norms computed as well."""
    found = []
    for layer in weights.layers:
        for head in layer:
            product = head.query_key[0].astype(dtype) @ head.query_key[1].astype(dtype).T
            for M in (head.output.T.astype(dtype), head.value.T.astype(dtype), product):
                size = np.abs(M)
                found.append(linalg.svdvals(M)[0])
                _ = size.sum(), size.sum(0).max(), size.sum(1).max()
                for axis in (0, 1):
                    lengths = np.linalg.norm(M, axis=axis)
                    _ = lengths.sum(), lengths.max()
    return np.array(found, float)


def certified(weights: TransformerWeights) -> np.ndarray:
    """Our spectral norms in the same order, with all other norms."""
    norms = weight_norms(weights)
    return np.array([part.spectral for layer in norms.layers for head in layer for part in head])


def whole_table(weights: TransformerWeights) -> dict:
    """The first case."""
    inputs = np.random.default_rng(1).standard_normal((8, 64, D)) / np.sqrt(D)
    before = peak_memory()

    def work():
        return compare_bounds(weights, inputs, 10**6, 0.05)

    started = time.process_time()
    cold, table = seconds(work)
    busy = time.process_time() - started
    warm = [seconds(work)[0] for _ in range(3)]
    started = time.process_time()
    work()
    busy_again = time.process_time() - started
    case = {
        "case": f"compare, {parameters(weights) / 1e6:.1f} M parameters, float32 weights",
        "seconds": float(np.median(warm)),
        "seconds_range": [min(warm), max(warm)],
        "seconds_first_call": cold,
        "core_seconds_first_call": busy,
        "core_seconds": busy_again,
        "goal_seconds": GOAL_SECONDS,
        "entries": len(table.entries),
        "peak_memory": peak_memory(),
        "peak_memory_before": before,
        "weights_memory": 4 * parameters(weights),
    }
    print(case, flush=True)
    if not all(np.isfinite(entry.gap) for entry in table.entries):
        raise AssertionError("an entry of the table is not finite")
    return case


def main() -> None:
    """Measure and write `results/compare_bounds.json`."""
    weights = transformer()
    cases = [whole_table(weights)]
    write_results("compare_bounds", cases)
    own, exact = certified(weights), straightforward(weights, np.float64)
    excess = float(np.max(own / exact - 1))
    # SciPy rounds downward or upward by some eps of the sides; ours allows for eps times their
    # product at most, `spectral_norm`
    side, product = (float(np.finfo(float).eps) * size for size in (2 * D, D * D))
    if np.min(own / exact - 1) < -side or excess > product:
        raise AssertionError(f"certified norms are {excess:.1e} off: over {product:.1e}")
    peers = {
        "SciPy, float32, not certified": lambda: straightforward(weights, np.float32),
        "SciPy, float64, not certified": lambda: straightforward(weights, np.float64),
    }
    case = compare(
        "all norms of the same weights",
        lambda: certified(weights),
        peers,
        agree=lambda mine, theirs: float(np.max(np.abs(mine / theirs - 1))),
        rounds=3,
        clock=time.process_time,
    )
    cases.append({**case, "excess_of_certified": excess, "tolerance": product})
    write_results("compare_bounds", cases)


if __name__ == "__main__":
    main()
