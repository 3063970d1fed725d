"""Serves one editor over two descriptors, until it goes or somebody ends the process."""

import asyncio
import logging
import signal
from typing import cast

from acp import Agent
from acp.agent.connection import AgentSideConnection

from handrail.acp.face import Face
from handrail.acp.hosting import Host
from handrail.acp.wire import Wire


def serve(host: Host, source: int, sink: int) -> None:
    """Serves to the end; then nothing is at work any more, and every session can be loaded again."""
    # The SDK logs tracebacks, with whatever stands in them; what concerns the person is answered.
    logging.getLogger().addHandler(logging.NullHandler())
    asyncio.run(served(host, source, sink))


async def served(host: Host, source: int, sink: int) -> None:
    """The same in a loop that is there, of the main thread."""
    wire, face = Wire(source, sink), Face(host)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, wire.end)
    connection = AgentSideConnection(cast("Agent", face), wire, listening=False, use_unstable_protocol=True)
    try:
        await connection.listen()
    finally:
        await face.close()
        await wire.answered()
        await connection.close()
