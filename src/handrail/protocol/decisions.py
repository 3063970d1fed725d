"""Modes, facts about a call and the decision of the policy."""

from typing import Literal

import msgspec

from handrail.protocol.errors import ErrorCode
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
    """As the call named it."""
    access: Access
    """What the call wants with it."""
    kind: FileKind
    real: str | None = None
    """Where it leads: relative in the workspace, absolute in an extra root; None outside all roots."""
    named: str | None = None
    """Where it would lead if no link were on the way, when that is elsewhere."""
    writable: bool = True
    """Whether its root may be written to."""
    size: int | None = None
    repository: bool = False
    """Whether it steers a git repository that is not called `.git`, or makes its folder one."""
    root: bool = False
    """Whether it is a root as a whole, or holds one."""
    outside: str | None = None
    """Where it leads, outside all roots, as an absolute path; None inside, or where nobody looked."""
    folder: str | None = None
    """The folder that would have to be opened for it; None where none can be."""
    closed_reason: str = msgspec.field(default="", name="shut")
    """Why that folder is never opened, in words; empty where a person may be asked."""
    shared: bool = False
    """Whether the file has other names (hard links), which a write changes too."""
    credential: bool = False
    """Whether one of its other names in the roots is that of a credential."""
    read_only: bool = False
    """Whether the file's mode lets nobody write it (0444)."""


class DisplayedCommand(Wire, frozen=True):
    """A simple command that the display parser found in a command outside the provable subset. It proves nothing."""

    words: tuple[str, ...]
    """The program and its arguments; quotes are taken off, what bash would expand stays as it is written."""
    text: str = ""
    """As it stands in the command."""
    writes: tuple[str, ...] = ()
    """Files that its output is redirected to."""
    forks_itself: bool = False
    """A function that starts itself again and again."""


OVERLAY_TIER = 3
"""The tier of a sandbox in which what a command changes goes into an overlay."""


class CommandFact(Wire, frozen=True):
    """The command of a call, and what can be done with one here."""

    text: str
    cwd: str = "."
    """The folder that it starts in, as the call names it."""
    background: bool = False
    """Whether it may outlive its call, on the real tree."""
    yields: bool = False
    """Whether it goes on after its call where it takes longer than the call waits."""
    tier: int = 2
    """The sandbox: 3 an overlay that can be undone, 2 namespaces, 1 Landlock, 0 none."""
    snapshot: bool = False
    """Whether what it changes can be undone although there is no overlay."""
    there: tuple[str, ...] = ()
    """Folders that a `cd` in it leads to, and that can be entered."""
    hosts: tuple[str, ...] = ()
    """The hosts that it names, or that its programs are known to reach: `example.org:443`."""
    unopened: tuple[str, ...] = ()
    """What of the network it names and no yes can open, each with the reason in words."""
    seen: tuple[DisplayedCommand, ...] | None = None
    """What the display parser found; None where it was not needed, or could not be used."""

    @property
    def has_overlay(self) -> bool:
        """Whether what it changes goes into an overlay; of one that is proven to only look, whether it would."""
        return self.tier >= OVERLAY_TIER and not self.background

    @property
    def outlives(self) -> bool:
        """Whether it may go on after its call, on the real tree."""
        return self.background or (self.yields and not self.has_overlay)


class ProcessFact(Wire, frozen=True):
    """What a call wants with a process session, and what that runs."""

    action: str
    id: str = ""
    """Its whole id; empty where the call is about all of them."""
    command: str = ""
    """What it runs."""
    looks: bool = False
    """Whether the command only looks, whatever it is sent, and the sandbox sees to that."""
    layered: bool = False
    """Whether what it changes goes into an overlay, and can be undone."""
    connected: bool = False
    """Whether the program can reach other machines, when a call writes to it."""


class Narrowing(Wire, frozen=True):
    """What the tool of a call is left to be used for while skills are active. It never allows anything."""

    skills: tuple[str, ...]
    """The active skills that say so."""
    patterns: tuple[str, ...] = ()
    """For commands their words, `git status`, or their first ones, `git:*`; for every other tool globs of paths."""


class MemoryFact(Wire, frozen=True):
    """What a call wants with the notes of a workspace."""

    action: str
    note: str = ""
    """Its id, or the title of a new one."""


class ForeignFact(Wire, frozen=True):
    """Which tool of another server a call is about, and what is known of it. The server's own words prove nothing."""

    server: str
    tool: str
    """As its server calls it."""
    read_only: bool = False
    """Whether its server says that it only looks."""
    changed: bool = False
    """Whether its server describes it otherwise than when a person last said yes to it, or first met it."""


class Facts(Wire, frozen=True):
    """Everything about the world that a decision may depend on."""

    paths: tuple[PathFact, ...] = ()
    command: CommandFact | None = None
    process: ProcessFact | None = None
    narrowed: Narrowing | None = None
    """What active skills leave of the tool; None where they leave all of it."""
    memory: MemoryFact | None = None
    foreign: ForeignFact | None = None


class DecisionPart(Wire, frozen=True):
    """One path or one simple command of a call, judged on its own."""

    subject: str
    """The path, command or tool."""
    decision: Verdict
    rule: str
    reason: str
    grant: str = ""
    """What may be allowed for good: a class of commands, `git commit`, or a tool of another server; empty where nothing
    may be."""


class Decision(Wire, frozen=True):
    """The strictest verdict over all parts, with the rule that gave it."""

    decision: Verdict
    rule: str
    """The rule that decided; of several, the strictest."""
    reason: str
    """Why, in words."""
    subject: str = ""
    """The path, command or tool that the verdict is about."""
    code: ErrorCode | None = None
    """The error of a call that is denied."""
    parts: tuple[DecisionPart, ...] = ()
    """The parts, where there is more than one."""
    grants: tuple[str, ...] = ()
    """The classes of commands, or the tools of other servers, that a person may allow for good instead of being asked;
    empty where a part asks that is of none."""
