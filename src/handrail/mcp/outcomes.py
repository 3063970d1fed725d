"""What a call comes to: a result, something that a person has to say first, or that it is left waiting for them."""

from typing import Any

import msgspec

from handrail.protocol.permissions import Answer, PermissionRequest, Question, Reply
from handrail.protocol.results import ToolResult


class UnansweredCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a person."""

    call_id: str
    interim: ToolResult[Any]
    """What it is told where nobody can be asked now."""
    requests: tuple[PermissionRequest, ...] = ()
    questions: tuple[Question, ...] = ()
    digest: str = ""
    """Of the name and the arguments that it was called with."""
    again: bool = False
    """Whether what the person said last could not be understood."""

    @property
    def shown(self) -> tuple[tuple[str, int], ...]:
        """What is asked, as far as an answer is bound to it."""
        return list_revisions(self.requests, self.questions)


class ParkedCall(msgspec.Struct, frozen=True):
    """A call that was left waiting. It is in no hand here any more, so whoever tells this delivers nothing."""

    interim: ToolResult[Any]


Outcome = ToolResult[Any] | UnansweredCall | ParkedCall


class FormAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said, as far as it is something: nothing of it leaves the call waiting."""

    answer: Answer | Reply | None = None
    """To a permission request or a question. A question that gets `deny` is put aside."""
    unclear: bool = False
    """Whether it was an answer, but none of those that there are."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said."""
        return self.answer is None


def list_revisions(
    requests: tuple[PermissionRequest, ...], questions: tuple[Question, ...]
) -> tuple[tuple[str, int], ...]:
    """What is asked, each with how often it was put anew."""
    return (*((one.id, one.revision) for one in requests), *((one.tool_call_id, 0) for one in questions))
