"""Cells as tasks of dask.distributed: a local cluster, or a scheduler elsewhere.

Queues, retries of a lost worker's cells, and transport are dask's own.
"""

import contextlib
import ipaddress
import signal
import threading
from collections.abc import Generator, Iterator, Sequence

from dask import config
from distributed import Client, LocalCluster, Security, as_completed

from attlas.core.errors import UserError
from attlas.core.processes import worker_variables
from attlas.runs.local_backend import RETRIES, Outcome
from attlas.runs.worker import Computed, Failed, Task, compute

LOOPBACK = "127.0.0.1"


def run_dask(
    tasks: Sequence[Task], on: str, workers: int = 2, insecure: bool = False
) -> Generator[Outcome, None, None]:
    """Compute tasks on a dask cluster.

    Workers elsewhere need attlas installed, and the packages named in ATTLAS_EXPERIMENTS.

    Args:
        tasks: what to compute.
        on: "dask" for a local cluster on 127.0.0.1; "dask://HOST:PORT" or "tls://HOST:PORT".
        workers: processes of a local cluster.
        insecure: allow a scheduler on another machine without TLS. Dask runs any code that
            reaches its ports.

    Yields:
        Index of the task and what became of it, as they finish.
    """
    # A task is given up once this many workers have died under it.
    allowed = {"distributed.scheduler.allowed-failures": RETRIES}
    with config.set(allowed), _client(on, workers, insecure) as client:
        futures = client.map(compute, tasks, pure=False)
        index = {future.key: i for i, future in enumerate(futures)}
        stream = as_completed(futures, with_results=True, raise_errors=False)
        del futures  # the stream holds them, and lets go of each result once it is written
        for future, result in stream:
            yield index[future.key], _outcome(future.status, result)


def scheduler_address(on: str, insecure: bool = False) -> str:
    """The address of a scheduler, refused where others could read or run code on the way.

    Args:
        on: "dask://HOST:PORT" or "tls://HOST:PORT".
        insecure: allow another machine without TLS.

    Returns:
        An address that dask understands.

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
def _client(on: str, workers: int, insecure: bool) -> Iterator[Client]:
    if on == "dask":
        with _started_deaf():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host=LOOPBACK,
                dashboard_address="",
                memory_limit=0,
                env=worker_variables(workers),
                preload=["attlas.runs.worker"],
            )
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


@contextlib.contextmanager
def _started_deaf() -> Iterator[None]:
    """Processes started inside never hear Ctrl-C: half-started ones would answer in tracebacks.

    This process does not hear it either for these seconds.
    """
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
