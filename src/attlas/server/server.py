"""The tools as a server of the Model Context Protocol, by its official SDK."""

import json
import threading
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from attlas.core.errors import UserError
from attlas.server.child import Limits, run_task
from attlas.server.schemas import DESCRIPTIONS, first_error, input_schemas, output_schemas

INSTRUCTIONS = """attlas tests theorems by running them. A claim is a Python function that returns
the two sides of a statement on one instance, with a sampler and a control (a false variant that
must fail). SUPPORTED means that no instance violated it, and is no proof; VIOLATED was confirmed in
60 digits; INCONCLUSIVE decides nothing, and the reason says why. Pass drafts as `source`."""


def serve(limits: Limits, results: Path) -> None:
    """Answer on standard input and output until the caller closes them."""
    anyio.run(_serve, limits, results)


def server_of(limits: Limits, results: Path) -> Server[dict[str, Any]]:
    """The server without a transport.

    Args:
        limits: of each call.
        results: folder in which `check` stores the verdicts of claims that lie in files.
    """
    inputs, outputs = input_schemas(), output_schemas()
    # Calls wait for each other, so that together they use no more than the limits.
    alone = anyio.CapacityLimiter(1)

    async def list_tools(context: Any, parameters: Any) -> types.ListToolsResult:
        del context, parameters
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=DESCRIPTIONS[name],
                    input_schema=inputs[name],
                    output_schema=outputs[name],
                )
                for name in inputs
            ]
        )

    async def call_tool(context: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        del context
        arguments = call.arguments or {}
        if call.name not in inputs:
            return _refused(f"there is no tool '{call.name}': there are {', '.join(inputs)}")
        if error := first_error(arguments, inputs[call.name]):
            return _refused(error)
        stop = threading.Event()
        task = partial(run_task, call.name, arguments, limits, results=results, stop=stop)
        try:
            answer = await anyio.to_thread.run_sync(task, abandon_on_cancel=True, limiter=alone)
        except UserError as error:
            return _refused(str(error))
        finally:
            stop.set()
        text = json.dumps(answer)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=answer
        )

    return Server(
        "attlas",
        version=metadata.version("attlas"),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _refused(line: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=line)], is_error=True)


async def _serve(limits: Limits, results: Path) -> None:
    server = server_of(limits, results)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
