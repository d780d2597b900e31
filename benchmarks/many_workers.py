"""A dask scheduler with many workers, all in this process: prints its address and waits.

Cells that sleep need no processor: two hundred workers are threads here, and the scheduler, the
driver and what a cell costs beside its sleep are real.
"""

import asyncio
import logging
import sys

from distributed import Scheduler, Worker


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
    asyncio.run(serve(int(sys.argv[1])))
