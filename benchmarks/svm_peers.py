"""Attention SVMs beside the strongest uses of other solvers that we could build.

DAQP is a dual active-set method in C, called on the least-norm problem itself; nnls is scipy's
method of Lawson and Hanson on the dual, in five lines; L-BFGS-B climbs the dual without forming a
matrix, at every p, in a dozen lines that anyone may copy. `difference` is the relative difference
of the optimal norms. L-BFGS-B stops where no margin misses 1 by more than 1e-7, which certifies a
gap of about as much (the norm is nearer), or goes on as far as it comes ("to rounding"); attlas
certifies a gap below 1e-8, most often 1e-12, in the one time that it has, so that of a row at
p != 2 the first peer is the time to about 1e-7 and the second, at the accuracy of attlas, that to
1e-12. With many constraints for each variable, attlas solves working sets, and its peers have all
constraints at once: a working set around DAQP would be the same algebra.

DAQP and nnls are given dense matrices with rows of length at most one, built before the clock
starts; one row of DAQP has that in its time, since attlas starts from tokens and queries.

What no program of ours can leave out stands beside it: at p = 2 the Gram matrices of many problems
and two solutions on supports of 18 rows, in NumPy; at other p one Newton system of the rows that
bind, its Gram matrix and factor, and the products of one certificate. Most steps take the factor
of another as a preconditioner, in single precision as the gradient steps before them, which find
the support. Profile of one core: of one problem at d = 50 and p = 1.75 or 3, 28 and 35 % of
the time are gradient steps, 56 and 51 % Newton steps, 16 and 14 % what reads, certifies and packs.
"""

import time
from collections.abc import Callable

from benchmarks.attention_problems import differences, feasible, rows
from benchmarks.interleave import compare, peak_memory, pin_to_one_core, seconds, write_results

pin_to_one_core()

import daqp  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from scipy.optimize import minimize, nnls  # noqa: E402

from attlas.solvers._methods.attention_problem import attention_rows  # noqa: E402
from attlas.solvers._methods.central_path import factorise  # noqa: E402
from attlas.solvers._methods.certificate import certify  # noqa: E402
from attlas.solvers._methods.lp_interior_point import linearised  # noqa: E402
from attlas.solvers.attention_svm import attention_svm, attention_svm_batch  # noqa: E402

ROUGH, EXACT = "L-BFGS-B on the dual", "L-BFGS-B on the dual, to rounding"
BUILT = "DAQP, its matrices built in one batch"
SYSTEM, SUPPORTS = (
    "one Newton system and certificate alone",
    "Gram matrices and two solutions of 18 rows alone",
)


def unit_rows(X: np.ndarray, z: np.ndarray, tokens: np.ndarray) -> tuple[np.ndarray, float]:
    """The constraint matrix over the length of its longest row, and that length."""
    A = rows(X, z, tokens)
    longest = float(np.linalg.norm(A, axis=1).max())
    return A / longest, longest


def by_daqp(A: np.ndarray) -> float:
    """Least norm by the dual active-set method on the primal problem."""
    m, size = A.shape
    below = np.full(m, 1e30)
    w, _, status, _ = daqp.solve(
        np.eye(size), np.zeros(size), A, below, np.ones(m), np.zeros(m, np.int32)
    )
    assert status == 1, status
    return float(np.linalg.norm(w))


def by_nnls(A: np.ndarray) -> float:
    """Least norm by min |A'l|^2 + (1'l - 1)^2 over l >= 0."""
    system = np.vstack([A.T, np.ones(len(A))])
    l, _ = nnls(system, np.eye(1, len(system), len(system) - 1)[0], maxiter=30 * len(A))
    w = A.T @ l
    return float(np.linalg.norm(w) / (A @ w).min())


def by_dual_ascent(D: np.ndarray, z: np.ndarray, p: float, margin: float = 1e-7) -> float:
    """Optimal norm by L-BFGS-B on max 1'l - |A'l|_q^2 / 2, with rows of rank one.

    It stops where no margin misses 1 by more than `margin`, or no step changes the dual.
    """
    q, scale = p / (p - 1), (np.linalg.norm(D, axis=2) * np.linalg.norm(z, axis=1)[:, None]).max()
    D = D / scale

    def loss(l: np.ndarray) -> tuple[float, np.ndarray]:
        u = np.einsum("ns,nsd->nd", l.reshape(D.shape[:2]), D).T @ z
        norm = np.sum(np.abs(u) ** q) ** (1 / q)
        w = norm * np.sign(u) * (np.abs(u) / norm) ** (q - 1)
        margins = np.matmul(D, (z @ w.T)[:, :, None])[..., 0].ravel()
        return 0.5 * norm**2 - l.sum(), margins - 1

    m = D.shape[0] * D.shape[1]
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-13 if margin else 0, "maxcor": 20}
    options["gtol"] = margin
    found = minimize(loss, np.ones(m), jac=True, method="L-BFGS-B", bounds=[(0, None)] * m,
                     options=options)  # fmt: skip
    return float(np.sqrt(max(-2 * found.fun, 0)) / scale)


def norm(W: np.ndarray, p: float) -> float:
    """Entrywise norm."""
    return float(np.linalg.norm(np.asarray(W).ravel(), p))


def newton_system(X: np.ndarray, z: np.ndarray, tokens: np.ndarray, p: float) -> Callable:
    """One Newton system of the constraints that bind at the solution, and its certificate."""
    found = attention_svm(X, z, tokens, p)
    operator = attention_rows(X[None], z[None], tokens[None])
    others = np.arange(X.shape[1]) != tokens[:, None]
    w, l = found.unwrap().reshape(1, -1), found.certificate["dual"][others][None]
    active = operator.part(np.flatnonzero(l[0] > 1e-9 * l.max()))
    pull = operator.adjoint(l)

    def system() -> None:
        inverse, correction = linearised(w, pull, p)
        factorise(active.gram(inverse))(1 - active.apply(w + correction))
        certify(operator, w, l, p)

    return system


def batch_of_rows(X: np.ndarray, z: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """The dense constraint matrices of a batch, all at once."""
    b, n, T, d = X.shape
    others = np.arange(T) != tokens[..., None]
    best = np.take_along_axis(X, tokens[..., None, None], axis=2)
    D = best - X[others].reshape(b, n, T - 1, d)
    return (D[..., None] * z[:, :, None, None]).reshape(b, n * (T - 1), d * d)


def supports(X: np.ndarray, z: np.ndarray, tokens: np.ndarray) -> None:
    """Gram matrices of a batch, and two solutions on 18 rows of each."""
    gram = attention_rows(X, z, tokens).gram(np.ones((len(X), X.shape[-1] ** 2)))
    for _ in range(2):
        np.linalg.solve(gram[:, :18, :18], np.ones((len(X), 18, 1)))


def one(n: int, T: int, d: int, p: float, names: tuple[str, ...], rounds: int) -> dict:
    """One problem beside the named peers."""
    X, z, tokens = feasible(1, n, T, d)
    (A, longest), D = unit_rows(X, z, tokens), differences(X, tokens)
    peers: dict[str, Callable[[], float]] = {
        "DAQP": lambda: by_daqp(A) / longest,
        "nnls on the dual": lambda: by_nnls(A) / longest,
        ROUGH: lambda: by_dual_ascent(D, z, p),
        EXACT: lambda: by_dual_ascent(D, z, p, 0.0),
        SYSTEM: newton_system(X, z, tokens, p),
    }
    return compare(
        f"one problem, d = {d}, {len(A)} constraints, p = {p:g}",
        lambda: norm(attention_svm(X, z, tokens, p).unwrap(), p),
        {name: peers[name] for name in names},
        agree=lambda mine, theirs: 0.0 if theirs is None else abs(mine - theirs) / theirs,
        rounds=rounds,
        goal=dict.fromkeys(names, 3.0),
        clock=time.process_time,
    )


def many(p: float) -> dict:
    """1000 problems with 42 constraints and 100 variables."""
    parts = [feasible(seed, 6, 8, 10) for seed in range(1000)]
    X, z, tokens = (np.stack([part[k] for part in parts]) for k in range(3))
    scales = np.ones(len(parts))
    if p == 2:
        unit, longest = zip(*(unit_rows(*part) for part in parts), strict=True)
        scales = np.array(longest)
        peers = {
            "DAQP": lambda: np.array([by_daqp(A) for A in unit]),
            BUILT: lambda: np.array([by_daqp(A) for A in batch_of_rows(X, z, tokens)]) * scales,
            "nnls on the dual": lambda: np.array([by_nnls(A) for A in unit]),
            SUPPORTS: lambda: supports(X, z, tokens),
        }
    else:
        factors = [(differences(part[0], part[2]), part[1]) for part in parts]
        peers = {
            ROUGH: lambda: np.array([by_dual_ascent(*f, p) for f in factors]),
            EXACT: lambda: np.array([by_dual_ascent(*f, p, 0.0) for f in factors]),
        }
    return compare(
        f"1000 problems, 42 constraints, 100 variables, p = {p:g}",
        lambda: np.array([norm(W, p) for W in attention_svm_batch(X, z, tokens, p).unwrap()]),
        peers,
        agree=lambda mine, theirs: (
            0.0 if theirs is None else float(np.max(np.abs(mine * scales / theirs - 1)))
        ),
        rounds=3,
        goal=dict.fromkeys(peers, 2.0 if p == 2 else 5.0),
        clock=time.process_time,
    )


def alone(n: int, T: int, d: int) -> dict:
    """A problem at p = 2 whose matrix no peer holds: time, certified gap, peak memory so far."""
    X, z, tokens = feasible(1, n, T, d)
    duration, solution = seconds(lambda: attention_svm(X, z, tokens, 2.0), clock=time.process_time)
    case = {
        "case": f"one problem, d = {d}, {n * (T - 1)} constraints, p = 2, ours alone",
        "seconds": duration,
        "gap": float(solution.certificate["gap"]),
        "peak_bytes": peak_memory(),
    }
    print(case, flush=True)
    return case


def main() -> None:
    """Measure and write `results/svm_peers.json`, case by case."""
    exact, rough = ("DAQP", "nnls on the dual", ROUGH), (ROUGH, EXACT, SYSTEM)
    cases: list[dict] = []
    works = [
        *(lambda p=p: many(p) for p in (2.0, 1.75, 3.0)),
        *(lambda d=d: one(50, 11, d, 2.0, exact, 3) for d in (20, 50)),
        *(lambda d=d, p=p: one(50, 11, d, p, rough, 3) for d in (20, 50) for p in (1.75, 3.0)),
        lambda: one(500, 11, 20, 2.0, ("DAQP", ROUGH), 3),
        lambda: one(1000, 21, 20, 2.0, ("DAQP",), 3),
        *(lambda p=p: one(1000, 21, 20, p, (ROUGH,), 1) for p in (1.75, 3.0)),
        lambda: alone(50_000, 21, 20),
        lambda: alone(1000, 101, 64),
    ]
    with jax.enable_x64(True):
        for work in works:
            cases.append(work())
            write_results("svm_peers", cases)


if __name__ == "__main__":
    main()
