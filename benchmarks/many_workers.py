"""A dask scheduler with many workers, all in this process: prints its address and waits.

A worker is a `distributed.Worker` with one thread, its own address and its own connection to the
scheduler; no process and no nanny of its own, since cells that sleep need no processor. The
scheduler, the driver and what a cell costs beside its sleep are real. What each worker does by the
clock (ticks, monitors of the system, profiles) is turned down: on a cluster it runs on the workers'
own machines, and 200 times it takes the whole of one core here.
"""

import asyncio
import logging
import sys

from dask import config
from distributed import Scheduler, Worker

RARELY = {
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.tick.limit": "1h",
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.profile.enabled": False,
}


async def serve(workers: int) -> None:
    """Start them and wait for a line of input."""
    async with Scheduler(host="127.0.0.1", port=0, dashboard=False) as scheduler:
        started = [
            Worker(scheduler.address, nthreads=1, memory_limit=0, dashboard=False)
            for _ in range(workers)
        ]
        await asyncio.gather(*started)
        print(scheduler.address.replace("tcp://", "dask://"), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await asyncio.gather(*(worker.close() for worker in started))


if __name__ == "__main__":
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with config.set(RARELY):
        asyncio.run(serve(int(sys.argv[1])))
