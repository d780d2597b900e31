"""Cells in processes of this machine; a cell whose process dies is retried."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

from attlas._jax.processes import started_under, worker_pool, worker_variables
from attlas.experiments.worker import Computed, Failed, Task, compute_next

RETRIES = 2
"""How often a cell is retried, alone, after a process died while it ran."""
LOOKED_AT = 100
"""How many waiting cells are searched for one of another experiment."""

Outcome = tuple[int, Computed | Failed]


def run_local(
    tasks: Sequence[Task],
    workers: int = 2,
    brief: bool = False,
    may_begin: Callable[[int], bool] | None = None,
) -> Generator[Outcome, None, None]:
    """Compute tasks in spawned processes.

    When a process dies, the running cells are retried one at a time in separate processes, which
    identifies the one that kills its process.

    Args:
        brief: whether compiling takes longer than running, see `worker_variables`.
        may_begin: called with a task's index when a process is free; the task is skipped if False.

    Yields:
        Index of the task and its outcome, as they finish.
    """
    waiting = deque(range(len(tasks)))
    workers = max(1, min(workers, len(tasks)))
    with started_under(worker_variables(workers, brief)):
        while waiting:
            orphans = yield from _run_pool(tasks, waiting, workers, may_begin)
            for index in orphans:
                yield index, _run_alone(tasks[index])


def _run_pool(
    tasks: Sequence[Task],
    waiting: deque[int],
    workers: int,
    may_begin: Callable[[int], bool] | None,
) -> Generator[Outcome, None, list[int]]:
    """Run until all tasks are done or a process dies; returns the tasks running at that moment."""
    flying: dict[Future[Computed | Failed], int] = {}
    orphans: list[int] = []
    with worker_pool(workers) as pool:
        while (waiting or flying) and not orphans:
            # No queue beyond the processes: only a running task can have killed one.
            while waiting and len(flying) < workers:
                # Under a time limit tasks run in order of cost.
                index = waiting[0] if may_begin else _next(tasks, waiting, flying.values())
                waiting.remove(index)
                if may_begin is None or may_begin(index):
                    flying[_submit(pool, tasks[index])] = index
            done, _ = wait(flying, return_when=FIRST_COMPLETED)
            for future in done:
                index = flying.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    orphans.append(index)
                else:
                    yield index, future.result()
        for future, index in flying.items():
            if isinstance(future.exception(), BrokenProcessPool):
                orphans.append(index)
            else:
                yield index, future.result()
    return sorted(orphans)


def _next(tasks: Sequence[Task], waiting: deque[int], flying: Iterable[int]) -> int:
    """The first task of an experiment that is not running, or else the first."""
    # Cells of one experiment often share programs: one after the other, only the first compiles.
    running = {tasks[index].experiment for index in flying}
    near = islice(waiting, LOOKED_AT)
    return next((index for index in near if tasks[index].experiment not in running), waiting[0])


def _run_alone(task: Task) -> Computed | Failed:
    """Run one task in a process of its own, a bounded number of times."""
    for _ in range(RETRIES):
        with worker_pool(1) as pool:
            future = _submit(pool, task)
            if not isinstance(future.exception(), BrokenProcessPool):
                return future.result()
    return Failed(f"its process died {RETRIES + 1} times (killed, or out of memory)")


def _submit(pool: ProcessPoolExecutor, task: Task) -> Future[Computed | Failed]:
    """Submit one task; an already broken pool reports it in the future, too."""
    try:
        return pool.submit(compute_next, task)
    except BrokenProcessPool as error:
        future: Future[Computed | Failed] = Future()
        future.set_exception(error)
        return future
