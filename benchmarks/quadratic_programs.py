"""Attention SVMs at p = 2 beside four general solvers of quadratic programs.

OSQP and SCS split operators, PIQP and ProxQP are interior-point and augmented-Lagrangian methods;
all are compiled. Each gets the form in which it is faster here, named in its row: the least-norm
problem itself, min |w|^2 / 2 with A w >= 1, or its dual, min |A'l|^2 / 2 - 1'l over l >= 0, whose
Gram matrices are one batched product in NumPy in its time. The dense rows A, each at most of length
one, are built before the clock starts. Solvers of many problems of one size are set up once and get
new matrices, where they can. All are asked for residuals of 1e-9; `difference` is the relative
difference of the optimal norms, and says who reached them. attlas certifies a gap below 1e-8.
"""

import time
from collections.abc import Callable

from benchmarks.attention_problems import feasible
from benchmarks.interleave import compare, pin_to_one_core, write_results

pin_to_one_core()

import jax  # noqa: E402
import numpy as np  # noqa: E402
import osqp  # noqa: E402
import piqp  # noqa: E402
import proxsuite  # noqa: E402
import scipy.sparse as sparse  # noqa: E402
import scs  # noqa: E402

from attlas.solvers.attention_svm import attention_svm, attention_svm_batch  # noqa: E402
from benchmarks.svm_peers import norm, unit_rows  # noqa: E402

RESIDUAL = 1e-9
Norms = Callable[[np.ndarray], np.ndarray]
"""From constraint matrices, [b, m, k], to the optimal norms, [b]."""


def norms_of(w: np.ndarray, A: np.ndarray) -> np.ndarray:
    """Lengths of the solutions once their least margin is one."""
    margins = np.einsum("bmk,bk->bm", A, w, optimize=True).min(axis=1)
    return np.linalg.norm(w, axis=1) / margins


def from_duals(duals: list[np.ndarray], A: np.ndarray) -> np.ndarray:
    """Optimal norms from the multipliers of every problem."""
    return norms_of(np.einsum("bmk,bm->bk", A, np.stack(duals), optimize=True), A)


def by_osqp_dual(A: np.ndarray) -> np.ndarray:
    """OSQP on the dual, set up once for all problems of one size."""
    gram, m = A @ A.transpose(0, 2, 1), A.shape[1]
    upper, solver, duals = np.triu_indices(m), osqp.OSQP(), []
    order = np.lexsort(upper)  # column by column, as OSQP stores an upper triangle
    rows, columns = upper[0][order], upper[1][order]
    for number, G in enumerate(gram):
        values = G[rows, columns]
        if number == 0:
            P = sparse.csc_matrix((values, (rows, columns)), shape=(m, m))
            solver.setup(P, -np.ones(m), sparse.eye(m, format="csc"), np.zeros(m),
                         np.full(m, np.inf), eps_abs=RESIDUAL, eps_rel=RESIDUAL, polishing=True,
                         max_iter=100_000, verbose=False)  # fmt: skip
        else:
            solver.update(Px=values)
        duals.append(np.maximum(solver.solve().x, 0))
    return from_duals(duals, A)


def by_piqp_dual(A: np.ndarray) -> np.ndarray:
    """PIQP's dense solver on the dual, set up once for all problems of one size."""
    gram, m = A @ A.transpose(0, 2, 1), A.shape[1]
    solver, duals = piqp.DenseSolver(), []
    solver.settings.eps_abs = solver.settings.eps_rel = RESIDUAL
    for number, G in enumerate(gram):
        if number == 0:
            solver.setup(G, -np.ones(m), x_l=np.zeros(m))
        else:
            solver.update(P=G)
        solver.solve()
        duals.append(np.maximum(solver.result.x, 0))
    return from_duals(duals, A)


def by_piqp_primal(A: np.ndarray) -> np.ndarray:
    """PIQP's dense solver on the least-norm problem."""
    m, size = A.shape[1:]
    solver, solutions = piqp.DenseSolver(), []
    solver.settings.eps_abs = solver.settings.eps_rel = RESIDUAL
    for number, B in enumerate(A):
        if number == 0:
            solver.setup(np.eye(size), np.zeros(size), G=B, h_l=np.ones(m))
        else:
            solver.update(G=B)
        solver.solve()
        solutions.append(np.array(solver.result.x))
    return norms_of(np.stack(solutions), A)


def by_proxqp_dual(A: np.ndarray) -> np.ndarray:
    """ProxQP's dense solver on the dual."""
    gram, m = A @ A.transpose(0, 2, 1), A.shape[1]
    duals = [
        proxsuite.proxqp.dense.solve(
            G, -np.ones(m), C=np.eye(m), l=np.zeros(m), eps_abs=RESIDUAL, eps_rel=0.0
        ).x
        for G in gram
    ]
    return from_duals([np.maximum(l, 0) for l in duals], A)


def by_proxqp_primal(A: np.ndarray) -> np.ndarray:
    """ProxQP's dense solver on the least-norm problem."""
    m, size = A.shape[1:]
    solutions = [
        proxsuite.proxqp.dense.solve(
            np.eye(size), np.zeros(size), C=B, l=np.ones(m), eps_abs=RESIDUAL, eps_rel=0.0
        ).x
        for B in A
    ]
    return norms_of(np.stack(solutions), A)


def by_scs_dual(A: np.ndarray) -> np.ndarray:
    """SCS on the dual."""
    gram, m = A @ A.transpose(0, 2, 1), A.shape[1]
    settings = {"verbose": False, "eps_abs": RESIDUAL, "eps_rel": RESIDUAL, "max_iters": 100_000}
    below, duals = -sparse.eye(m, format="csc"), []
    for G in gram:
        data = {"P": sparse.csc_matrix(np.triu(G)), "A": below, "b": np.zeros(m), "c": -np.ones(m)}
        duals.append(np.maximum(scs.SCS(data, {"l": m}, **settings).solve()["x"], 0))
    return from_duals(duals, A)


def case(name: str, problems: list, peers: dict[str, Norms], goal: float, rounds: int) -> dict:
    """Problems of one size, beside the solvers."""
    units, longest = zip(*(unit_rows(*part) for part in problems), strict=True)
    A, scales = np.stack(units), np.array(longest)
    X, z, tokens = (np.stack([part[k] for part in problems]) for k in range(3))

    def ours() -> np.ndarray:
        if len(problems) == 1:
            return np.array([norm(attention_svm(X[0], z[0], tokens[0], 2.0).unwrap(), 2)])
        return np.array([norm(W, 2) for W in attention_svm_batch(X, z, tokens, 2.0).unwrap()])

    return compare(
        name,
        ours,
        {peer: lambda solve=solve: solve(A) for peer, solve in peers.items()},
        agree=lambda mine, theirs: float(np.max(np.abs(mine * scales / theirs - 1))),
        rounds=rounds,
        goal=dict.fromkeys(peers, goal),
        clock=time.process_time,
    )


def main() -> None:
    """Measure and write `results/quadratic_programs.json`."""
    dual = {
        "PIQP on the dual": by_piqp_dual,
        "ProxQP on the dual": by_proxqp_dual,
        "OSQP on the dual": by_osqp_dual,
        "SCS on the dual": by_scs_dual,
    }
    small = {**dual, "PIQP": by_piqp_primal, "ProxQP": by_proxqp_primal}
    del small["PIQP on the dual"], small["ProxQP on the dual"]
    many = [feasible(seed, 6, 8, 10) for seed in range(1000)]
    single = "one problem, d = {}, 500 constraints, p = 2"
    with jax.enable_x64(True):
        cases = [
            case("1000 problems, 42 constraints, 100 variables, p = 2", many, dual, 2.0, 3),
            case(single.format(20), [feasible(1, 50, 11, 20)], small, 3.0, 5),
            case(single.format(50), [feasible(1, 50, 11, 50)], dual, 3.0, 5),
        ]
    write_results("quadratic_programs", cases)


if __name__ == "__main__":
    main()
