"""A policy decision with the facts that it depends on."""

from typing import Literal

import msgspec

from handrail.protocol.errors import ErrorCode
from handrail.protocol.results import OVERLAY_TIER
from handrail.protocol.wire import Wire

Mode = Literal["plan", "ask", "auto", "full"]
MODES: tuple[Mode, ...] = ("plan", "ask", "auto", "full")
"""Strictest first."""

Verdict = Literal["allow", "confirm", "deny"]
Access = Literal["read", "write", "delete"]
FileKind = Literal["file", "directory", "link", "other", "missing"]


class PathFact(Wire, frozen=True):
    """A path that a call names, at the time when facts were gathered."""

    path: str
    """As the call named it."""
    access: Access
    kind: FileKind
    real: str | None = None
    """Its target: relative in the workspace, absolute in an extra root. None: outside all roots."""
    named: str | None = None
    """Its target without following links, if different."""
    writable: bool = True
    """Whether its root is writable."""
    size: int | None = None
    repository: bool = False
    """Whether it is part of a git repository that is not called `.git`, or makes its folder one."""
    root: bool = False
    """Whether it is a root or contains one."""
    outside: str | None = None
    """Its absolute target outside all roots. None: it is inside, or was not resolved."""
    folder: str | None = None
    """The folder that an approval would open for the call. None: none can be opened."""
    closed_reason: str = msgspec.field(default="", name="shut")
    """Why that folder is never opened. Empty: the user may be asked."""
    shared: bool = False
    """Whether the file has hard links, which a write changes too."""
    credential: bool = False
    """Whether one of its hard links in the roots has the name of a credential."""
    read_only: bool = False
    """Whether the mode of the file allows no writing (0444)."""
    sets_mode: bool = False
    """Whether the call makes the file executable, or takes that back."""


class DisplayedCommand(Wire, frozen=True):
    """A simple command found by the display parser, for commands outside the provable subset. It proves nothing."""

    words: tuple[str, ...]
    """The program and its arguments, without quotes. Expansions stay as written."""
    text: str = ""
    """As written in the command."""
    writes: tuple[str, ...] = ()
    """Files that its output is redirected to."""
    forks_itself: bool = False
    """Whether it is a function that starts itself again and again (a fork bomb)."""


class CommandFact(Wire, frozen=True):
    """The command of a call and the sandbox that it would have."""

    text: str
    cwd: str = "."
    """The working directory, as the call names it."""
    background: bool = False
    """Whether it runs in the background, on the real tree."""
    yields: bool = False
    """Whether it moves to the background if it takes longer than the call waits."""
    tier: int = 2
    """The sandbox: 3 overlay (can be undone), 2 namespaces, 1 Landlock, 0 none."""
    snapshot: bool = False
    """Whether its changes can be undone although there is no overlay."""
    there: tuple[str, ...] = ()
    """Existing folders that a `cd` in it enters."""
    hosts: tuple[str, ...] = ()
    """The hosts that the command names, or that its programs are known to need: `example.org:443`."""
    unopened: tuple[str, ...] = ()
    """Network targets that no approval can open, each with the reason."""
    loopback: bool = False
    """Whether loopback addresses are the session's own network, which needs no approval. Otherwise they are hosts."""
    seen: tuple[DisplayedCommand, ...] | None = None
    """The findings of the display parser. None: it was not needed, or could not be used."""

    @property
    def has_overlay(self) -> bool:
        """Whether its changes go into an overlay, or would if it made any."""
        return self.tier >= OVERLAY_TIER and not self.background

    @property
    def outlives(self) -> bool:
        """Whether it may outlive its call, on the real tree."""
        return self.background or (self.yields and not self.has_overlay)


class ProcessFact(Wire, frozen=True):
    """The action of a call on a process session."""

    action: str
    id: str = ""
    """Its whole id. Empty: the call is about all process sessions."""
    command: str = ""
    looks: bool = False
    """Whether the command is read-only whatever it is sent, enforced by the sandbox."""
    layered: bool = False
    """Whether its changes go into an overlay and can be undone."""
    connected: bool = False
    """Whether the program has network access, if the call writes to it."""


class Narrowing(Wire, frozen=True):
    """How active skills narrow the tool of a call. It never allows anything."""

    skills: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    """Commands by their words, `git status`, or their first words, `git:*`. For other tools, globs of paths."""


class MemoryFact(Wire, frozen=True):
    """The action of a call on the notes of a workspace."""

    action: str
    note: str = ""
    """The id of the note, or the title of a new one."""


class ForeignFact(Wire, frozen=True):
    """The tool of another server that a call names. The server's own description proves nothing."""

    server: str
    tool: str
    """Its name on that server."""
    read_only: bool = False
    """Whether its server calls it read-only."""
    changed: bool = False
    """Whether its description changed since it was last approved, or first seen."""


class Facts(Wire, frozen=True):
    """All facts that a decision may depend on."""

    paths: tuple[PathFact, ...] = ()
    command: CommandFact | None = None
    process: ProcessFact | None = None
    narrowed: Narrowing | None = None
    """How active skills narrow the tool. None: they do not."""
    memory: MemoryFact | None = None
    foreign: ForeignFact | None = None


class DecisionPart(Wire, frozen=True):
    """One path or one simple command of a call, judged on its own."""

    subject: str
    """The path, command or tool."""
    decision: Verdict
    rule: str
    reason: str
    effect: str = ""
    """The reason without the subject, if the reason ends in the subject."""
    grant: str = ""
    """The grant that would cover it: a class of commands, `git commit`, or a tool of another server. Empty: none."""


class Decision(Wire, frozen=True):
    """The strictest verdict over all parts, with the rule that gave it."""

    decision: Verdict
    rule: str
    """The rule that decided. Of several, the strictest."""
    reason: str
    subject: str = ""
    """The path, command or tool that the decision is about."""
    code: ErrorCode | None = None
    """The error code of a denied call."""
    parts: tuple[DecisionPart, ...] = ()
    """The parts, if there are several."""
    effect: str = ""
    """The reason without the subject, if the reason ends in the subject."""
    grants: tuple[str, ...] = ()
    """The grants that would make an approval unnecessary: classes of commands, or tools of other servers. Empty: a part
    that needs approval has none."""
    edits: bool = False
    """Whether the grant for plain edits may cover the call. The changes of a command must be plain edits too."""

    def to_part(self) -> DecisionPart:
        """The decision as its only part."""
        return DecisionPart(
            subject=self.subject, decision=self.decision, rule=self.rule, reason=self.reason, effect=self.effect
        )
