"""The server of the protocol: lists the tools, calls them, and tells what went wrong.

What belongs here: what the protocol's library is given. Which index is asked, in which thread and
for how long, and which errors are told, is handed in by whoever serves it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

import mcp_types as protocol
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from concordance.errors import ConcordanceError
from concordance.index import Index
from concordance.mcp.tools import INSTRUCTIONS, TOOLS, Told

LOG = logging.getLogger("concordance.mcp")
MOST_FAULTS = 5

Context = ServerRequestContext[Any, Any]


class Runner(Protocol):
    """What runs a call in a thread of its own, for so many seconds."""

    seconds: float

    async def run(self, call: Callable[[], Told]) -> Told:
        """Run it, or raise an error of ours where there is no room or no time for it."""


def make_server(
    index_of: Callable[[Context], Index],
    runner: Runner,
    tell: Callable[[ConcordanceError], str],
    *,
    version: str,
) -> Server[Any]:
    """The server, for any transport.

    Args:
        index_of: The index of whoever sent a request.
        runner: Where questions are asked.
        tell: What a caller is told of an error.
        version: Of this program.
    """
    listed = protocol.ListToolsResult(tools=[_described(name) for name in TOOLS])
    schemas = {tool.name: tool.input_schema for tool in listed.tools}

    async def list_tools(_: Context, __: Any) -> protocol.ListToolsResult:
        return listed

    async def call_tool(
        context: Context, asked: protocol.CallToolRequestParams
    ) -> protocol.CallToolResult:
        return await _call(asked, lambda: index_of(context), runner, tell)

    server = Server[Any](
        "concordance",
        version=version,
        title="Concordance",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=schemas.get,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # What the library would report of each request to whatever collects traces in this process.
    server.middleware.clear()
    return server


async def _call(
    asked: protocol.CallToolRequestParams,
    index: Callable[[], Index],
    runner: Runner,
    tell: Callable[[ConcordanceError], str],
) -> protocol.CallToolResult:
    """A tool's result, or what went wrong as the result of a tool, which a model can act on."""
    tool = TOOLS.get(asked.name)
    if tool is None:
        raise MCPError(protocol.INVALID_PARAMS, f"the tools are: {', '.join(TOOLS)}")
    try:
        arguments = tool.taken.model_validate(asked.arguments or {})
        asking = index()
        told = await runner.run(lambda: tool.call(asking, arguments, runner.seconds))
    except ValidationError as error:
        return _failed(_faults(error))
    except ConcordanceError as error:
        return _failed(tell(error))
    except Exception as error:  # the library would send on what any failure says
        LOG.exception("unexpected: %s", type(error).__name__)
        return _failed("A fault of this program; the cause is in its log")
    return protocol.CallToolResult(content=[_text(told.text)], structured_content=told.structured)


def _described(name: str) -> protocol.Tool:
    tool = TOOLS[name]
    return protocol.Tool(
        name=name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=protocol.ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


def _text(text: str) -> protocol.TextContent:
    return protocol.TextContent(type="text", text=text)


def _failed(why: str) -> protocol.CallToolResult:
    return protocol.CallToolResult(content=[_text(why)], is_error=True)


def _faults(error: ValidationError) -> str:
    """Each argument that can't be used, by its name; what it held is not repeated."""
    found = error.errors(include_url=False, include_input=False)
    told = [
        f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: "
        f"{fault['msg'].removeprefix('Value error, ')}"
        for fault in found[:MOST_FAULTS]
    ]
    if len(found) > MOST_FAULTS:
        told.append(f"and {len(found) - MOST_FAULTS} more")
    return "\n".join(told)
