"""Serves one editor over two descriptors, until it goes or somebody ends the process."""

import asyncio
import logging
import signal
from typing import cast

from acp import Agent
from acp.agent.connection import AgentSideConnection

from handrail.acp.face import HandrailAgent
from handrail.acp.hosting import AgentHost
from handrail.acp.wire import AcpTransport


def serve(host: AgentHost, source: int, sink: int) -> None:
    """Serves to the end; then nothing is at work any more, and every session can be loaded again."""
    # The SDK logs tracebacks, with whatever stands in them; what concerns the person is answered.
    logging.getLogger().addHandler(logging.NullHandler())
    asyncio.run(serve_in_loop(host, source, sink))


async def serve_in_loop(host: AgentHost, source: int, sink: int) -> None:
    """The same in a loop that is there, of the main thread."""
    wire, face = AcpTransport(source, sink), HandrailAgent(host)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, wire.end)
    connection = AgentSideConnection(cast("Agent", face), wire, listening=False, use_unstable_protocol=True)
    try:
        await connection.listen()
    finally:
        await face.close()
        await wire.wait_until_answered()
        await connection.close()
