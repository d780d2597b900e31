"""A local dask cluster serves its own driver alone: other users of the machine reach nothing."""

import asyncio
import os
import ssl
import urllib.error
import urllib.request
from typing import Any

import psutil
import pytest
from distributed import Client, Security
from distributed.comm.core import CommClosedError
from distributed.core import rpc
from distributed.protocol.pickle import dumps

from attlas.experiments.dask_backend import dask_client

PAGES = ("", "status", "health", "metrics", "info/main/workers.html", "json/counts.json", "api/v1")


def addresses(client: Client) -> list[str]:
    """Of the processes that run functions: workers and their nannies."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return [*workers, *(worker["nanny"] for worker in workers.values())]


def answer(client: Client, address: str, arguments: dict[str, Any]) -> object:
    """What a process at an address gives for a function that another one sends."""

    async def asking():
        async with rpc(address, connection_args=arguments, timeout=5, deserialize=False) as there:
            if address == client.scheduler_info()["address"]:
                return (await there.identity())["type"]
            return (await there.run(function=dumps(os.getpid)))["status"]

    return asyncio.run(asking())


def unverified(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments with which a stranger accepts whatever certificate it meets."""
    context = arguments["ssl_context"]
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return arguments


@pytest.mark.thorough
def test_a_local_cluster_answers_its_own_driver_alone():
    stranger = unverified(Security.temporary().get_connection_args("client"))
    nobody = unverified({"ssl_context": ssl.create_default_context(), "require_encryption": True})
    with dask_client("dask", 1, insecure=False) as client:
        own = client.security.get_connection_args("client")
        places = [client.scheduler_info()["address"], *addresses(client)]
        assert [answer(client, place, own) for place in places] == ["Scheduler", "OK", "OK"]
        for place in places:
            for arguments in (stranger, nobody):
                with pytest.raises((CommClosedError, OSError)):
                    answer(client, place, arguments)
            with pytest.raises((CommClosedError, OSError)):
                answer(client, place.replace("tls://", "tcp://"), {})
        assert client.submit(abs, -3).result() == 3
        listening = open_ports()
    assert {host for host, _ in listening} == {"127.0.0.1"}
    assert len(listening) >= 4


@pytest.mark.thorough
def test_a_local_cluster_has_no_pages():
    with dask_client("dask", 1, insecure=False):
        pages = {page_of(port, page) for _, port in open_ports() for page in PAGES}
    assert pages == {404, None}


def open_ports() -> set[tuple[str, int]]:
    """Where this process and those that it started listen."""
    this = psutil.Process()
    return {
        (str(socket.laddr[0]), int(socket.laddr[1]))
        for process in (this, *this.children(recursive=True))
        for socket in process.net_connections("inet")
        if socket.status == psutil.CONN_LISTEN
    }


def page_of(port: int, page: str) -> int | None:
    """The status of a page, None where a port does not speak HTTP."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=5) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except (urllib.error.URLError, OSError):
        return None
