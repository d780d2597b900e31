"""The child process of `attlas.server.child`: `python -m attlas.server.task ANSWER`."""

import json
import os
import resource
import sys
import threading
from pathlib import Path
from typing import Any

from attlas.core.errors import UserError


def main(answer: Path) -> None:
    """Read a request from standard input, limit this process, run the task, write its answer."""
    request = json.loads(sys.stdin.readline())
    limit_this_process(request)
    # The server ends with its caller, and this process with the server.
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    from attlas.server.tasks import TASKS

    try:
        document = TASKS[request["task"]](request["arguments"], Path(request["results"]))
    except UserError as error:
        document = {"error": str(error)}
    except MemoryError:
        document = {"error": f"'{request['task']}' needs more memory than it may use"}
    incomplete = answer.with_suffix(".part")
    incomplete.write_text(json.dumps(document), encoding="utf-8")
    incomplete.replace(answer)
    sys.stdout.flush()
    os._exit(0)  # without the threads that the code of the caller left


def limit_this_process(request: dict[str, Any]) -> None:
    """Set the limits of the operating system; no code of this user can raise them again."""
    cores = os.cpu_count() or 1
    seconds = int(request["seconds"] * cores) + 1
    for kind, most in {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_DATA: request["memory"],
        resource.RLIMIT_FSIZE: request["file"],
        resource.RLIMIT_CORE: 0,
    }.items():
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def _end_with_the_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
