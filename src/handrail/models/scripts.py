"""Scripts for the scripted model as people write them down: JSON, a list of lines."""

from typing import Any

import msgspec

from handrail.models.model import ModelError, TokenUsage
from handrail.models.scripted import ScriptedReply
from handrail.protocol.messages import Finish
from handrail.protocol.wire import decode_json


class _Written(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line as a file has it."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    """Name and arguments of each."""
    finish: Finish | None = None
    spent: TokenUsage = TokenUsage()
    fails: tuple[str, str] | None = None
    """Code and message of the error."""


def parse_script(data: bytes) -> list[ScriptedReply]:
    """The lines of a script: `[{"text": …, "calls": [["read", {"path": …}]]}, …]`. msgspec's error where it is none."""
    return [
        ScriptedReply(
            text=one.text,
            reasoning=one.reasoning,
            calls=one.calls,
            finish=one.finish,
            spent=one.spent,
            fails=ModelError(*one.fails) if one.fails else None,
        )
        for one in decode_json(data, list[_Written])
    ]
