"""Helps tests of process sessions: waits for what they print, and for how they are, by asking."""

import time
from collections.abc import Callable
from typing import Any

from handrail import Handrail
from handrail.protocol.records import ProcessRecord
from handrail.protocol.results import ToolResult

SECONDS = 60.0


def started(rail: Handrail, command: str, **more: Any) -> str:
    """The id of a command that goes on."""
    result = rail.call("exec", {"command": command, "background": True, **more})
    assert result.ok, result.error
    assert result.data.session_id
    return result.data.session_id


def asked(rail: Handrail, action: str, process: str | None = None, **more: Any) -> ToolResult[Any]:
    """What came of a call of process that has to succeed."""
    args = {"action": action, **({"sessionId": process} if process else {}), **more}
    result = rail.call("process", args)
    assert result.ok, result.error
    return result


def polled_until(rail: Handrail, process: str, wanted: str) -> str:
    """All that polls give until it holds a text."""
    text, until = "", time.monotonic() + SECONDS
    while wanted not in text:
        assert time.monotonic() < until, f"{wanted!r} is not in {text!r}"
        text += asked(rail, "poll", process).data.output
    return text


def record_when(rail: Handrail, process: str, holds: Callable[[ProcessRecord], bool]) -> ProcessRecord:
    """What is known of one once something is true of it."""
    until = time.monotonic() + SECONDS
    while True:
        [record] = [one for one in rail.processes() if one.id == process]
        if holds(record):
            return record
        assert time.monotonic() < until, record
        time.sleep(0.02)


def ended(rail: Handrail, process: str) -> ProcessRecord:
    """What is known of one that has ended."""
    return record_when(rail, process, lambda record: record.state != "running")
