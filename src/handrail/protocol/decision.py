"""What policy says about a call, and the facts it said it from."""

from typing import Literal

from handrail.protocol.error import ErrorCode
from handrail.protocol.wire import Wire

Mode = Literal["plan", "ask", "auto", "full"]
MODES: tuple[Mode, ...] = ("plan", "ask", "auto", "full")
"""Strictest first."""

Verdict = Literal["allow", "confirm", "deny"]
Access = Literal["read", "write", "delete"]
FileKind = Literal["file", "directory", "link", "other", "missing"]


class PathFact(Wire, frozen=True):
    """What a path that a call names was when the facts were gathered."""

    path: str
    access: Access
    kind: FileKind
    real: str | None = None
    """Where it leads: relative in the workspace, absolute in an extra root; None outside all roots."""
    writable: bool = True
    size: int | None = None


class Facts(Wire, frozen=True):
    """Everything about the world that a decision may depend on."""

    paths: tuple[PathFact, ...] = ()


class DecisionPart(Wire, frozen=True):
    """One path or one simple command of a call, judged on its own."""

    subject: str
    decision: Verdict
    rule: str
    reason: str


class Decision(Wire, frozen=True):
    """The strictest verdict over all parts, with the rule that gave it."""

    decision: Verdict
    rule: str
    reason: str
    subject: str = ""
    """The path, command or tool that the verdict is about."""
    code: ErrorCode | None = None
    parts: tuple[DecisionPart, ...] = ()
