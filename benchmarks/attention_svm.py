"""The l_p attention SVM to a relative gap of 1e-8, beside cvxpy (vectorised) with Clarabel.

Both sides solve the same constraints; `difference` is the relative difference of the optimal
norms. The strongest use of the peer is beside the plain one: at p = 2 Clarabel called directly on
the quadratic program, at other exponents Clarabel on the cone program that cvxpy compiled before
the clock started. All sides run on one core and are timed in processor time, which other work on
the machine does not lengthen.
"""

import time

from benchmarks.attention_problems import feasible, rows
from benchmarks.interleave import compare, pin_to_one_core, seconds, write_results

pin_to_one_core()

import clarabel  # noqa: E402
import cvxpy as cp  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402

from attlas.solvers.attention_svm import attention_svm, attention_svm_batch  # noqa: E402


def by_cvxpy(A: np.ndarray, p: float) -> float:
    """Optimal norm by cvxpy's vectorised formulation."""
    w = cp.Variable(A.shape[1])
    problem = cp.Problem(cp.Minimize(cp.pnorm(w, p)), [A @ w >= 1])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def by_clarabel(A: np.ndarray) -> float:
    """Optimal 2-norm by Clarabel's quadratic program."""
    m, d = A.shape
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    cone = [clarabel.NonnegativeConeT(m)]
    quadratic = sparse.csc_matrix(sparse.eye(d))
    solver = clarabel.DefaultSolver(
        quadratic, np.zeros(d), sparse.csc_matrix(-A), -np.ones(m), cone, settings
    )
    return float(np.linalg.norm(solver.solve().x))


def by_compiled(A: np.ndarray, p: float):
    """Clarabel alone on the cone program of cvxpy: a function that gives the optimal norm."""
    w = cp.Variable(A.shape[1])
    problem = cp.Problem(cp.Minimize(cp.pnorm(w, p)), [A @ w >= 1])
    data, chain, inverse = problem.get_problem_data(cp.CLARABEL, solver_opts={})

    def solve() -> float:
        found = chain.solve_via_data(problem, data, solver_opts={})
        problem.unpack_results(found, chain, inverse)
        return float(problem.value)

    return solve


def norm(W, p: float) -> float:
    """Entrywise norm on the host."""
    return float(np.linalg.norm(np.asarray(W).ravel(), p))


def relative(mine: float, theirs: float) -> float:
    """Relative difference of two optimal norms."""
    return abs(mine - theirs) / theirs


def one(d: int, n: int, p: float, goal: float, rounds: int) -> dict:
    """One problem with n (T = 11, 10 n constraints) against cvxpy."""
    X, z, tokens = feasible(1, n, 11, d)
    A = rows(X, z, tokens)
    return compare(
        f"one problem, d = {d}, {len(A)} constraints, p = {p:g}",
        lambda: norm(attention_svm(X, z, tokens, p).unwrap(), p),
        {
            "cvxpy + Clarabel": lambda: by_cvxpy(A, p),
            "Clarabel, direct": (lambda: by_clarabel(A)) if p == 2 else by_compiled(A, p),
        },
        agree=relative,
        rounds=rounds,
        goal={"cvxpy + Clarabel": goal},
        clock=time.process_time,
    )


def batch(p: float, goal: float) -> dict:
    """1000 problems with 42 constraints and 100 variables; the peers do the first 20."""
    count, few = 1000, 20
    parts = [feasible(seed, 6, 8, 10) for seed in range(count)]
    X, z, tokens = (np.stack([part[k] for part in parts]) for k in range(3))
    matrices = [rows(*part) for part in parts[:few]]
    peers = {"cvxpy + Clarabel": lambda: np.array([by_cvxpy(A, p) for A in matrices])}
    if p == 2:
        peers["Clarabel, direct"] = lambda: np.array([by_clarabel(A) for A in matrices])
    else:
        compiled = [by_compiled(A, p) for A in matrices]
        peers["Clarabel, direct"] = lambda: np.array([solve() for solve in compiled])
    return compare(
        f"1000 problems, 42 constraints, 100 variables, p = {p:g}",
        lambda: np.array([norm(W, p) for W in attention_svm_batch(X, z, tokens, p).unwrap()]),
        peers,
        agree=lambda mine, theirs: float(np.max(np.abs(mine[:few] - theirs) / theirs)),
        weights=dict.fromkeys(peers, few / count),
        goal={"cvxpy + Clarabel": goal, "Clarabel, direct": 15.0 if p == 2 else 1.0},
        clock=time.process_time,
    )


def alone(d: int, n: int, T: int, p: float, goal: float) -> dict:
    """A problem too large for the peer: our time and certified gap."""
    X, z, tokens = feasible(1, n, T, d)
    taken, solution = seconds(lambda: attention_svm(X, z, tokens, p))
    case = {
        "case": f"one problem, d = {d}, {n * (T - 1)} constraints, p = {p:g}, ours alone",
        "seconds": taken,
        "goal_seconds": goal,
        "gap": float(solution.certificate["gap"]),
        "converged": bool(solution.converged),
    }
    print(case, flush=True)
    return case


def main() -> None:
    """Measure and write `results/attention_svm.json`."""
    cases: list[dict] = []
    smooth = (1.75, 2.0, 3.0)
    with jax.enable_x64(True):
        for p in (2.0, 1.5, 1.75, 3.0, 4.0):
            cases.append(batch(p, 10.0 if p == 2 else 20.0))
        for p in smooth:
            cases.append(one(20, 50, p, 50.0, 3))
        # Case by case: a run that is cut short keeps what it measured.
        write_results("attention_svm", cases)
        for work in (
            *(lambda p=p: alone(100, 500, 11, p, 20.0) for p in smooth),
            lambda: alone(20, 500, 11, 3.0, 20.0),
            *(lambda p=p: one(50, 50, p, 300.0, 3) for p in smooth),
            lambda: one(50, 50, float("inf"), 10.0, 1),
        ):
            cases.append(work())
            write_results("attention_svm", cases)


if __name__ == "__main__":
    main()
