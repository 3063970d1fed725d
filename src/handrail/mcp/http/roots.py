"""The folders that a client with a handshake works on: it is asked before its first call, and again when they changed.

It is asked on the stream of the request that needs them, since not every client has another one open.
"""

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from handrail.api import Handrail
from handrail.mcp.client_folders import parse_client_folders
from handrail.mcp.http.connections import ConnectionState
from handrail.mcp.http.replies import get_reply
from handrail.mcp.http.telling import send_log
from handrail.mcp.http.threads import CallThreads
from handrail.mcp.news import ServerNotification

_ANSWER_SECONDS = 5.0
"""Seconds that a client has to answer. Its calls do not wait for ever for something that most have none of."""


async def request_roots(
    context: ServerRequestContext[Any, Any], connection: ConnectionState, rail: Handrail, threads: CallThreads
) -> None:
    """Asks a client that was not asked. One that gave its request up meanwhile is asked again by its next one."""
    connection.roots_are_known = True  # who comes meanwhile does not ask too
    try:
        await _honour_roots(context, rail, threads)
    except BaseException:
        connection.roots_are_known = False
        raise
    if get_reply(context).is_lost:
        connection.roots_are_known = False


async def _honour_roots(context: ServerRequestContext[Any, Any], rail: Handrail, threads: CallThreads) -> None:
    """Asks for them, and has the session serve them as far as it may; what it does not, is told."""
    metadata = ServerMessageMetadata(related_request_id=context.request_id)
    try:
        told = await context.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, _ANSWER_SECONDS, metadata
        )
    except (MCPError, ValidationError):
        return
    folders = parse_client_folders(told.model_dump(mode="json"))
    for text in await threads.run(lambda: rail.set_client_roots(folders)):
        await send_log(context, ServerNotification("warning", text))
