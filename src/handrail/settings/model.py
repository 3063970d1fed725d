"""Every setting, its type and its default."""

from typing import Annotated, Literal

import msgspec

from handrail.protocol.decision import Mode
from handrail.protocol.permission import Permission
from handrail.settings.ranges import SIZES, TIMES, parse_amount
from handrail.settings.units import SIZE, TIME

Durability = Literal["crash", "power"]
Profile = Literal["standard", "restricted"]
Outside = Literal["deny", "ask"]
ClientRoots = Literal["ignore", "read-only", "writable"]
Previews = Literal["when-asked", "never"]
SearchEngine = Literal["auto", "ripgrep", "python"]
Characters = Annotated[int, msgspec.Meta(ge=1_000, le=100_000_000)]
Folder = Annotated[str, msgspec.Meta(pattern=r"\A(?:/|~/|~\Z)[^\0]*\Z")]
"""Absolute or in the home folder: relative to the workspace, it would be the agent's to fill."""
WorkspaceFolder = Annotated[str, msgspec.Meta(pattern=r"\A(?![/~])(?!(?:[^\0]*/)?\.\.(?:/|\Z))[^\0]+\Z")]
"""Relative, and without `..`, so that it stays in the workspace."""
Toolchain = Annotated[str, msgspec.Meta(pattern=r"\A(?:/|~/)(?!/*\Z)[^\0]*\Z")]
"""A folder or file like `Folder`, but neither the whole disk nor the whole home folder."""
Variable = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]{0,127}\Z")]
Time = Annotated[str, msgspec.Meta(pattern=TIME)] | Annotated[int, msgspec.Meta(ge=1)]
Size = Annotated[str, msgspec.Meta(pattern=SIZE)] | Annotated[int, msgspec.Meta(ge=1)]
Days = Annotated[str, msgspec.Meta(pattern=r"\A[1-9][0-9]{0,4}d\Z")]
Tier = Annotated[int, msgspec.Meta(ge=0, le=3)]
ModelName = Annotated[str, msgspec.Meta(pattern=r"\A[!-~]{1,200}\Z")]
"""The provider and its name for the model: `anthropic:claude-…`. Whether there is one, the providers say."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the file."""


class Tools(Section, frozen=True, kw_only=True):
    """Which tools a session offers."""

    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    deny: tuple[Permission, ...] = ()
    folders: tuple[Folder, ...] = ()
    installed: bool = False


class Skills(Section, frozen=True, kw_only=True):
    """Which skills are found."""

    enabled: bool = True
    folders: tuple[Folder, ...] = ()
    disable: tuple[str, ...] = ()


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


class Store(Section, frozen=True, kw_only=True):
    """How long the state folder keeps things."""

    keep: Days = "365d"


class Events(Section, frozen=True, kw_only=True):
    """Copies of the event stream."""

    jsonl: WorkspaceFolder | None = None


class Paths(Section, frozen=True, kw_only=True):
    """Roots besides the workspace."""

    read_only: tuple[Folder, ...] = ()
    writable: tuple[Folder, ...] = ()
    outside: Outside = "deny"
    client_roots: ClientRoots = "ignore"


class Bulk(Section, frozen=True, kw_only=True):
    """From how many files or bytes on a change counts as a bulk change."""

    deleted: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 20
    changed: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 200
    bytes: Size = "256 MB"

    def __post_init__(self) -> None:
        """ValueError for a size that is too small or too large."""
        parse_amount("file_size", self.bytes)


class Restricted(Section, frozen=True, kw_only=True):
    """What the restricted profile lets be."""

    commands: tuple[str, ...] = ("ls", "cat", "git status", "git log --oneline", "node -v", "pnpm -v")
    folders: tuple[WorkspaceFolder, ...] = (".minds", ".tasklogs")


class Search(Section, frozen=True, kw_only=True):
    """What `find`, `grep` and `ls` look at."""

    ignore: tuple[str, ...] = ()
    engine: SearchEngine = "auto"


class Undo(Section, frozen=True, kw_only=True):
    """How long changes can be undone."""

    days: Annotated[int, msgspec.Meta(ge=1, le=3_650)] = 30


class Sandbox(Section, frozen=True, kw_only=True):
    """How commands are confined."""

    tier: Tier = 3
    least: Tier = 0
    toolchains: tuple[Toolchain, ...] = ()
    environment: tuple[Variable, ...] = ()

    def __post_init__(self) -> None:
        """ValueError for a variable that commands never get."""
        if self.environment:
            from handrail.policy.variables import find_withheld_reason  # noqa: PLC0415 - only where somebody names one

            if kept := [name for name in self.environment if find_withheld_reason(name)]:
                raise ValueError(f"commands never get {', '.join(kept)}")


class NetworkSettings(Section, frozen=True, kw_only=True):
    """What of the network commands have without being asked about it."""

    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """ValueError for an entry that lists nothing, or too much."""
        if self.allow:
            from handrail.policy.network.listed import Allowlist  # noqa: PLC0415 - only where somebody lists one

            Allowlist.from_entries(self.allow)


class Mcp(Section, frozen=True, kw_only=True):
    """Other MCP servers. Which there are stands beside the settings, as rules do (`LoadedSettings.servers`)."""

    wait: Time = "5s"

    def __post_init__(self) -> None:
        """ValueError for one that is too short or too long."""
        parse_amount("exec", self.wait)


class Limits(Section, frozen=True, kw_only=True):
    """How much one command may use, and how long and how many go on after their calls."""

    exec: Time = "120s"
    output: Size = "4 MB"
    memory: Size = "4 GB"
    processes: Annotated[int, msgspec.Meta(ge=8, le=1_000_000)] = 512
    file_size: Size = "2 GB"
    preview: Size = "1 GB"
    waiting: Size = "4 GB"
    idle: Time = "30 min"
    sessions: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 64

    def __post_init__(self) -> None:
        """ValueError for one that is too little or too much."""
        for name in (*TIMES, *SIZES):
            parse_amount(name, getattr(self, name))


class AgentSettings(Section, frozen=True, kw_only=True):
    """How much one turn of a model may use."""

    calls: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 200
    tokens: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    repeats: Annotated[int, msgspec.Meta(ge=2, le=1_000)] = 4
    attempts: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5
    full: Annotated[float, msgspec.Meta(ge=0.1, le=1.0)] = 0.8
    window: Annotated[int, msgspec.Meta(ge=2_000, le=100_000_000)] | None = None


class Settings(Section, frozen=True, kw_only=True):
    """All settings of one session, merged."""

    mode: Mode = "ask"
    model: ModelName | None = None
    preview: Previews = "when-asked"
    profile: Profile = "standard"
    tools: Tools = Tools()
    skills: Skills = Skills()
    read: Read = Read()
    results: Results = Results()
    journal: Journal = Journal()
    store: Store = Store()
    events: Events = Events()
    paths: Paths = Paths()
    bulk: Bulk = Bulk()
    restricted: Restricted = Restricted()
    search: Search = Search()
    undo: Undo = Undo()
    sandbox: Sandbox = Sandbox()
    network: NetworkSettings = NetworkSettings()
    mcp: Mcp = Mcp()
    limits: Limits = Limits()
    agent: AgentSettings = AgentSettings()


def flatten_settings(settings: Settings) -> dict[str, object]:
    """Every value by its dotted key, in the order of the model."""
    values: dict[str, object] = {}
    for name in settings.__struct_fields__:
        value: object = getattr(settings, name)
        if isinstance(value, Section):
            values.update((f"{name}.{leaf}", getattr(value, leaf)) for leaf in value.__struct_fields__)
        else:
            values[name] = value
    return values
