"""What the protocol calls an error: the request was not understood. A tool that fails has a result that says so."""

from typing import Any

PARSE = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
BUSY = -32010
"""Ours, from the numbers that are left to servers: too much is on its way. -32000 and -32001 mean something else to the
official clients."""
UNSUPPORTED_VERSION = -32022
"""From 2026-07-28 on: a version that is not spoken here; the error says which are."""

SAME_ID = "a request of this id is on its way, and is answered by itself; use every id once."


def describe_defect(error: Exception) -> str:
    """What a person is told of a defect: where it is, and no word of what it was about."""
    from handrail.protocol.errors import list_frames  # noqa: PLC0415  hardly ever needed

    where = (list_frames(error) or ["an unknown place"])[-1]
    return f"handrail: a defect stopped something ({type(error).__name__} at {where}); the rest goes on"


class ProtocolError(Exception):
    """A request that gets an error and no result."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def wire(self) -> dict[str, Any]:
        """As an answer carries it."""
        told: dict[str, Any] = {"code": self.code, "message": self.message}
        return told if self.data is None else {**told, "data": self.data}
