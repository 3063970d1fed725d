"""Every setting, its type and its default."""

from typing import Annotated, Literal

import msgspec

from handrail.protocol.decision import Mode
from handrail.protocol.permission import Permission

Durability = Literal["crash", "power"]
Profile = Literal["standard", "restricted"]
Outside = Literal["deny", "ask"]
SearchEngine = Literal["auto", "ripgrep", "python"]
Characters = Annotated[int, msgspec.Meta(ge=1_000, le=100_000_000)]
Folder = Annotated[str, msgspec.Meta(pattern=r"\A(?:/|~/|~\Z)[^\0]*\Z")]
"""Absolute or in the home folder: relative to the workspace, it would be the agent's to fill."""
WorkspaceFolder = Annotated[str, msgspec.Meta(pattern=r"\A(?![/~])(?!(?:[^\0]*/)?\.\.(?:/|\Z))[^\0]+\Z")]
"""Relative, and without `..`, so that it stays in the workspace."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the file."""


class Tools(Section, frozen=True, kw_only=True):
    """Which tools a session offers."""

    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    deny: tuple[Permission, ...] = ()
    folders: tuple[Folder, ...] = ()
    installed: bool = False


class Read(Section, frozen=True, kw_only=True):
    """What `read` returns."""

    images: bool = True


class Results(Section, frozen=True, kw_only=True):
    """How much of a result the model sees before the rest is kept aside."""

    characters: Characters = 30_000
    batch_characters: Characters = 100_000


class Journal(Section, frozen=True, kw_only=True):
    """How safe a recorded event is."""

    durability: Durability = "crash"


class Events(Section, frozen=True, kw_only=True):
    """Copies of the event stream."""

    jsonl: WorkspaceFolder | None = None


class Paths(Section, frozen=True, kw_only=True):
    """Roots besides the workspace."""

    read_only: tuple[Folder, ...] = ()
    writable: tuple[Folder, ...] = ()
    outside: Outside = "deny"


class Bulk(Section, frozen=True, kw_only=True):
    """From how many files on a change counts as one of many."""

    deleted: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 20
    changed: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 200


class Restricted(Section, frozen=True, kw_only=True):
    """What the restricted profile lets be."""

    commands: tuple[str, ...] = ("ls", "cat", "git status", "git log --oneline", "node -v", "pnpm -v")
    folders: tuple[WorkspaceFolder, ...] = (".minds", ".tasklogs")


class Search(Section, frozen=True, kw_only=True):
    """What `find`, `grep` and `ls` look at."""

    ignore: tuple[str, ...] = ()
    engine: SearchEngine = "auto"


class Undo(Section, frozen=True, kw_only=True):
    """How long changes can be taken back."""

    days: Annotated[int, msgspec.Meta(ge=1, le=3_650)] = 30


class Settings(Section, frozen=True, kw_only=True):
    """All settings of one session, merged."""

    mode: Mode = "ask"
    profile: Profile = "standard"
    tools: Tools = Tools()
    read: Read = Read()
    results: Results = Results()
    journal: Journal = Journal()
    events: Events = Events()
    paths: Paths = Paths()
    bulk: Bulk = Bulk()
    restricted: Restricted = Restricted()
    search: Search = Search()
    undo: Undo = Undo()


def flat(settings: Settings) -> dict[str, object]:
    """Every value by its dotted key, in the order of the model."""
    values: dict[str, object] = {}
    for name in settings.__struct_fields__:
        value: object = getattr(settings, name)
        if isinstance(value, Section):
            values.update((f"{name}.{leaf}", getattr(value, leaf)) for leaf in value.__struct_fields__)
        else:
            values[name] = value
    return values
