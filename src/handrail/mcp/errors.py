"""What the protocol calls an error: the request was not understood. A tool that fails has a result that says so."""

from handrail.protocol.errors import list_frames

BUSY = -32010
"""Ours, from the numbers that are left to servers: too much is on its way. -32000 and -32001 mean something else to the
official clients."""
UNSUPPORTED_VERSION = -32022
"""From 2026-07-28 on: a version that is not spoken here; the error says which are."""

SAME_ID = "a request of this id is on its way, and is answered by itself; use every id once."


def describe_defect(error: Exception) -> str:
    """What a person is told of a defect: where it is, and no word of what it was about."""
    where = (list_frames(error) or ["an unknown place"])[-1]
    return f"handrail: a defect stopped something ({type(error).__name__} at {where}); the rest goes on"
