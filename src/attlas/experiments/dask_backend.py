"""Cells as tasks of dask.distributed: a local cluster, or a scheduler elsewhere.

Dask does the queueing, the transport and the retries of a lost worker's cells.
"""

import contextlib
import importlib.metadata
import ipaddress
import logging
import signal
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from dask import config
from distributed import Client, Future, LocalCluster, Security, as_completed

from attlas._files.plain_file import printable
from attlas._jax.processes import worker_variables
from attlas.core.errors import UserError, extra_needed
from attlas.experiments.compatibility import (
    Compatibility,
    Incompatible,
    compatibility,
    incompatibility,
    run_if_compatible,
)
from attlas.experiments.environment import code_hash
from attlas.experiments.local_backend import RETRIES, Outcome
from attlas.experiments.worker import Computed, Failed, Task, compute

LOOPBACK = "127.0.0.1"
RESUMES = "are stored, the same command resumes from them"
_WITHOUT_PAGES: dict[str, list[str]] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
"""The dashboard, and what dask's web servers else say and do for everybody who reaches them."""
DEVICE = "device"
"""The dask resource of workers with an accelerator, which computes one cell at a time."""
PATIENCE = 30
"""Seconds to wait for a scheduler's first worker."""


def run_dask(
    tasks: Sequence[Task], on: str, workers: int = 2, insecure: bool = False
) -> Generator[Outcome, None, None]:
    """Compute tasks on a dask cluster.

    Remote workers need the same attlas and the user's files or packages. If some were started with
    `--resources device=1`, only those get cells, one per device at a time.

    Args:
        on: "dask" for a local cluster on 127.0.0.1, which nobody else can use; "dask://HOST:PORT"
            or "tls://HOST:PORT".
        workers: processes of a local cluster.
        insecure: allow a scheduler on another machine without TLS. Dask runs any code that
            reaches its ports.

    Yields:
        Index of the task and its outcome, as they finish.

    Raises:
        UserError: if no scheduler answers or it goes away, or a worker is incompatible.
    """
    with dask_client(on, workers, insecure) as client:
        driver = require_workers(client, {task.module for task in tasks}, on)
        checked = partial(run_if_compatible, driver, compute)
        futures = client.map(checked, tasks, pure=False, resources=_needed(client))
        index = {future.key: i for i, future in enumerate(futures)}
        stream = ended(futures, on, f"finished cells {RESUMES}")
        del futures  # so that a result can be let go once it is written
        for future, result in stream:
            yield index[future.key], _outcome(str(future.status), result)


def _needed(client: Client) -> dict[str, float] | None:
    """One device per cell, if any worker has devices."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    return {DEVICE: 1.0} if any(DEVICE in worker["resources"] for worker in workers) else None


def ended(futures: Sequence[Future], on: str, advice: str) -> Iterator[tuple[Future, Any]]:
    """Tasks as they end, each with its result, or (type, exception, traceback) if it failed.

    Args:
        on: the cluster, for messages.
        advice: message about stored results and how to continue.

    Raises:
        UserError: if the scheduler goes away, or a worker that joined later is incompatible.
    """
    stream = as_completed(futures, with_results=True, raise_errors=False)
    del futures  # the stream holds them, and lets go of each result once it has been given
    for future, result in stream:
        if future.status in ("cancelled", "lost"):
            raise UserError(f"the dask scheduler at {on} is gone: {advice}")
        if isinstance(result, Incompatible):
            said = f"a worker on {result.host} that joined {on} later {result.why}; {advice}"
            raise UserError(printable(said))
        yield future, result


def require_workers(client: Client, modules: Collection[str], on: str) -> Compatibility | None:
    """Check that a cluster has workers and that all of them are compatible with this process.

    Workers that join later are checked before their first cell, see
    `attlas.experiments.compatibility.run_if_compatible`.

    Returns:
        What each worker must have; None for a local cluster, whose workers this process starts.

    Raises:
        UserError: if there is no worker, or one lacks attlas or a module, or has other code or
            other versions of numerical libraries.
    """
    if on == "dask":
        return None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise UserError(f"the scheduler at {on} has no worker: start one") from None
    version = importlib.metadata.version("attlas")
    remedy = f"install the driver's version there, attlas {version}"
    # First a function of Python's standard library: attlas may be missing on the worker.
    for worker, answer in _answers(client, importlib.metadata.version, "attlas").items():
        if answer != version:
            has = "no attlas" if isinstance(answer, BaseException) else f"attlas {answer}"
            raise UserError(f"the worker {worker} has {has}: {remedy}")
    # Then one that every version of attlas has: an older one lacks `incompatibility`.
    for worker, answer in _answers(client, code_hash).items():
        if answer != code_hash():
            raise UserError(
                f"the worker {worker} runs other code of attlas ({answer!s:.12}, the driver "
                f"{code_hash():.12}): {remedy}"
            )
    driver = compatibility(modules)
    for worker, answer in _answers(client, incompatibility, driver).items():
        if answer:
            raise UserError(printable(f"the worker {worker} {answer}"))
    return driver


def _answers(client: Client, function: Callable[..., str], *args: Any) -> dict[str, Any]:
    """Each worker's answer, or the exception that it raised, by its address."""
    return cast("dict[str, Any]", client.run(function, *args, on_error="return"))


def scheduler_address(on: str, insecure: bool = False) -> str:
    """The address of a scheduler; refused if others could read the traffic or run code.

    Args:
        on: "dask://HOST:PORT" or "tls://HOST:PORT".
        insecure: allow another machine without TLS.

    Raises:
        UserError: if it is not an address, or a remote one without TLS.

    Examples:
        >>> scheduler_address("dask://127.0.0.1:8786")
        'tcp://127.0.0.1:8786'
        >>> scheduler_address("dask://node7:8786")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: dask://node7:8786 is another machine without TLS: ...
    """
    protocol, _, place = on.partition("://")
    host, _, port = place.rpartition(":")
    if protocol not in ("dask", "tls") or not host or not port.isdecimal():
        raise UserError(f"cannot run on '{on}': choose local, dask, dask://HOST:PORT or tls://...")
    if protocol == "tls":
        return on
    if not (insecure or _is_loopback(host.strip("[]"))):
        raise UserError(
            f"{on} is another machine without TLS: use tls://{place}, or --insecure if the "
            "network is yours"
        )
    return f"tcp://{place}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, not a number
        return host == "localhost"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress dask's tracebacks at the end of a run: our message is one line."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextlib.contextmanager
def dask_client(
    on: str, workers: int, insecure: bool, variables: Mapping[str, str] | None = None
) -> Iterator[Client]:
    """A client of a new local cluster or of a running scheduler, as `run_dask` uses it.

    Args:
        variables: environment of the processes of a local cluster; by default `worker_variables`.

    Raises:
        UserError: if no scheduler answers.
    """
    # A task is given up once this many workers have died under it.
    allowed = {"distributed.scheduler.allowed-failures": RETRIES}
    with config.set(allowed), _quiet(), _client(on, workers, insecure, variables) as client:
        yield client


@contextlib.contextmanager
def _client(
    on: str, workers: int, insecure: bool, variables: Mapping[str, str] | None
) -> Iterator[Client]:
    if on == "dask":
        with extra_needed("`--on dask`", "cluster"):
            import cryptography  # noqa: F401 (dask makes the credentials with it)
        with _started_deaf(), config.set(_WITHOUT_PAGES):
            cluster = _local_cluster(workers, variables)
        with cluster, Client(cluster) as client:
            yield client
        return
    address = scheduler_address(on, insecure)
    try:
        security = Security(require_encryption=True) if address.startswith("tls") else None
        client = Client(address, security=security)
    except (OSError, TimeoutError, TypeError, ValueError, RuntimeError) as error:
        raise UserError(f"no dask scheduler answers at {address} ({error}): is it up?") from error
    with client:
        yield client


def _local_cluster(workers: int, variables: Mapping[str, str] | None) -> LocalCluster:
    """Processes on this machine that nobody else can use.

    Raises:
        UserError: if one of them ends before it is ready, such as one that the system kills.
    """
    try:
        return LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host=LOOPBACK,
            protocol="tls",
            # Made for this run and never written: who has not got them cannot connect.
            security=Security.temporary(),
            dashboard_address=f"{LOOPBACK}:0",
            worker_dashboard_address=f"{LOOPBACK}:0",
            scheduler_kwargs={"dashboard": False},
            memory_limit=0,
            env=dict(variables or worker_variables(workers)),
            preload=["attlas.experiments.worker"],
        )
    except RuntimeError as error:
        raise UserError(
            f"a worker process of Dask ended before it was ready ({error}): run the command again"
        ) from error


@contextlib.contextmanager
def _started_deaf() -> Iterator[None]:
    """Ignore Ctrl-C here and in processes started inside: half-started ones print tracebacks."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _outcome(status: str, result: object) -> Computed | Failed:
    if isinstance(result, Computed | Failed):
        return result
    # With `raise_errors=False` the result of a failed task is (type, exception, traceback).
    reason = result[1] if isinstance(result, tuple) else result
    return Failed(f"dask gave the cell up ({status}): {reason}")
