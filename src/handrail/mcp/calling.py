"""What a call comes to, whatever it came by: a result, or something that a person has to say first."""

from typing import Any

import msgspec

from handrail.protocol.permission import PermissionRequest
from handrail.protocol.question import Question
from handrail.protocol.result import ToolResult
from handrail.rail import Handrail


class Asks(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a person."""

    call_id: str
    interim: ToolResult[Any]
    """What it is told where nobody can be asked now: PERMISSION_REQUIRED."""
    requests: tuple[PermissionRequest, ...] = ()
    questions: tuple[Question, ...] = ()


class Calls:
    """The calls of one client. Every method may be called by any thread."""

    def __init__(self, rail: Handrail) -> None:
        self.rail = rail

    def begin(self, name: str, arguments: Any, call_id: str | None = None) -> ToolResult[Any] | Asks:
        """Runs a call; of one that was left waiting before, what came of it since."""
        result = self.rail.call(name, arguments, tool_call_id=call_id)
        if result.error is None or result.error.code != "PERMISSION_REQUIRED":
            return result
        own = result.tool_call_id
        requests = tuple(one for one in self.rail.waiting() if one.tool_call_id == own)
        questions = tuple(one for one in self.rail.waiting_questions() if one.tool_call_id == own)
        return Asks(call_id=own, interim=result, requests=requests, questions=questions)
