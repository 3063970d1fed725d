"""What a workspace says about how to work in it: AGENTS.md, else CLAUDE.md, as `read` would let it be read."""

import os

import msgspec

from handrail.policy.decide import decide
from handrail.protocol.errors import ToolError
from handrail.runtime.session import Session
from handrail.runtime.steps import collect_touched_facts
from handrail.tools.contract import Touches
from handrail.tools.read import READ

NAMES = ("AGENTS.md", "CLAUDE.md")
"""The first that there is counts."""
MAX_INSTRUCTION_BYTES = 32_000


class Instructions(msgspec.Struct, frozen=True, kw_only=True):
    """The text of the file, as much of it as is taken."""

    name: str
    text: str
    left_out: int = 0
    """Bytes behind it."""


def read_instructions(session: Session) -> Instructions | None:
    """The instructions in the workspace's main folder; None where there are none, or policy does not let them be
    read unasked."""
    if session.offer.denies("fs.read"):
        return None
    return next((found for name in NAMES if (found := _read(session, name)) is not None), None)


def _read(session: Session, name: str) -> Instructions | None:
    workspace = session.workspace
    try:
        facts = collect_touched_facts(workspace, Touches(reads=(name,)))
        if decide(READ, None, facts, session.rules).decision != "allow":
            return None
        with workspace.open_file(name) as opened:
            data = os.read(opened.descriptor, MAX_INSTRUCTION_BYTES)
            left_out = max(0, opened.status.st_size - len(data))
    except (ToolError, OSError):
        return None
    finally:
        workspace.drop_cached()
    text = data.decode("utf-8", "ignore" if left_out else "replace").removeprefix("\ufeff")
    return Instructions(name=name, text=_printable(text), left_out=left_out) if text.strip() else None


def _printable(text: str) -> str:
    """The text without what nobody sees: control characters, and marks that turn the direction of writing."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(character for character in plain if character in "\n\t" or not _is_hidden(character))


def _is_hidden(character: str) -> bool:
    code = ord(character)
    return (
        code < 32
        or 127 <= code < 160
        or 0x200B <= code <= 0x200F
        or 0x202A <= code <= 0x202E
        or (0x2060 <= code <= 0x206F)
        or 0xE0000 <= code <= 0xE007F
    )
