"""Every setting with its type, unit and range."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, cast

import msgspec

from handrail.protocol.decisions import MODES, Mode
from handrail.protocol.permissions import Permission
from handrail.protocol.wire import convert
from handrail.settings.errors import truncate_repr
from handrail.settings.units import SIZE, SIZES, TIME, TIMES, parse_amount

# § [settings.model] Every setting, its type and its default.

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
            from handrail.policy.secrets import find_withheld_reason  # noqa: PLC0415 - only where somebody names one

            if kept := [name for name in self.environment if find_withheld_reason(name)]:
                raise ValueError(f"commands never get {', '.join(kept)}")


class NetworkSettings(Section, frozen=True, kw_only=True):
    """What of the network commands have without being asked about it."""

    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """ValueError for an entry that lists nothing, or too much."""
        if self.allow:
            from handrail.policy.network.allowlist import Allowlist  # noqa: PLC0415 - only where somebody lists one

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


# § [settings.strictness] Which of two values of a setting is the stricter one, and which layers may make it looser.

LayerKind = Literal["managed", "user", "project", "session", "environment", "flag", "default"]
Meet = Callable[[Any, Any], Any]
"""Of the value below and the one above it, the loosest value that is as strict as both."""

TRUSTED_SOURCES: tuple[LayerKind, ...] = ("managed", "user", "project", "session", "flag")
"""The project once it is trusted. The environment never: whatever starts a process can set it."""
USER_SOURCES: tuple[LayerKind, ...] = ("managed", "user", "flag")
FILE_SOURCES: tuple[LayerKind, ...] = ("managed", "user")
ALL_SOURCES: tuple[LayerKind, ...] = (*TRUSTED_SOURCES, "environment")


class Strictness(msgspec.Struct, frozen=True):
    """How one setting is tightened; `why` says what is at stake."""

    merge_strict: Meet
    why: str
    loosened_by: tuple[LayerKind, ...] = TRUSTED_SOURCES
    reserved: tuple[object, ...] = ()
    """Values that only a person may give, even where others may loosen."""


def may_loosen(kind: LayerKind, key: str, value: object) -> bool:
    """Whether a layer, trusted as far as it can be, may give this value where it is looser than what is below."""
    rule = STRICTNESS[key]
    return kind in rule.loosened_by and (value not in rule.reserved or kind in USER_SOURCES)


def _first(*strictest_first: object) -> Meet:
    return lambda below, above: min(below, above, key=strictest_first.index)


def _least(below: int, above: int) -> int:
    return min(below, above)


def _most(below: int, above: int) -> int:
    return max(below, above)


def _least_of_some(below: int | None, above: int | None) -> int | None:
    """None is as much as there is."""
    given = [one for one in (below, above) if one is not None]
    return min(given, default=None)


def _smaller(name: str) -> Meet:
    return lambda below, above: min(above, below, key=lambda written: parse_amount(name, written))


def _all_of(below: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    return (*below, *(item for item in above if item not in below))


def _common(below: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item for item in above if item in below)


def _in_both(below: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts that both lists have, be it that one says it in fewer words: `*.example.org`."""
    if not below or not above:
        return ()
    from handrail.policy.network.allowlist import Allowlist, parse_host_pattern  # noqa: PLC0415 - few list hosts

    def inside(those: tuple[str, ...], these: tuple[str, ...]) -> list[str]:
        listed = Allowlist.from_entries(these)
        return [entry for entry in those if listed.holds(parse_host_pattern(entry))]

    return tuple(dict.fromkeys([*inside(above, below), *inside(below, above)]))


def _as_below(below: object, above: object) -> object:  # noqa: ARG001  whatever it is, it does not count
    return below


STRICTNESS: dict[str, Strictness] = {
    "mode": Strictness(_first(*MODES), "a looser mode asks less", reserved=("full",)),
    "model": Strictness(_as_below, "whoever answers reads what the model is shown of the workspace", ALL_SOURCES),
    "preview": Strictness(_first("never", "when-asked"), "what is tried runs before anybody said yes, be it in a copy"),
    "profile": Strictness(_first("restricted", "standard"), "restricted runs a short list of commands"),
    "tools.enable": Strictness(_common, "another tool is another way to act"),
    "tools.disable": Strictness(_all_of, "a tool that is off does nothing"),
    "tools.deny": Strictness(_all_of, "a permission that is missing cannot be used"),
    "tools.folders": Strictness(
        _common,
        "its files run in this process, and may be others by the next start than those one trusted",
        USER_SOURCES,
    ),
    "tools.installed": Strictness(_first(False, True), "code of other packages runs in this process"),
    "skills.enabled": Strictness(_first(False, True), "a skill is text that the model goes by"),
    "skills.folders": Strictness(_common, "what is there is told to the model as the person's own", USER_SOURCES),
    "skills.disable": Strictness(_all_of, "a skill that is off says nothing"),
    "read.images": Strictness(_first(False, True), "an image costs, and can carry words to the model"),
    "results.characters": Strictness(_least, "more of a result costs more, and crowds out the person's words"),
    "results.batch_characters": Strictness(_least, "as above"),
    "journal.durability": Strictness(_first("power", "crash"), "power loses less"),
    "store.keep": Strictness(
        _as_below, "how long the person's state folder keeps things is the person's", USER_SOURCES
    ),
    "events.jsonl": Strictness(_as_below, "it writes into the workspace whatever was said, unasked", FILE_SOURCES),
    "paths.read_only": Strictness(_common, "another root is more to read"),
    "paths.writable": Strictness(_common, "another root is more to change"),
    "paths.outside": Strictness(_first("deny", "ask"), "asking lets somebody say yes", FILE_SOURCES),
    "paths.client_roots": Strictness(
        _first("ignore", "read-only", "writable"), "a client's folders are more to read and to change", USER_SOURCES
    ),
    "bulk.deleted": Strictness(_least, "a higher number asks later"),
    "bulk.changed": Strictness(_least, "a higher number asks later"),
    "bulk.bytes": Strictness(_smaller("file_size"), "a higher number asks later"),
    "restricted.commands": Strictness(_common, "another command is more that runs unasked"),
    "restricted.folders": Strictness(_common, "another folder is more to read and write"),
    "search.ignore": Strictness(_all_of, "what is skipped is not shown; it can still be read by name"),
    "search.engine": Strictness(_first("python", "auto", "ripgrep"), "Python's own search starts no program"),
    "undo.days": Strictness(_as_below, "how long the person's state folder keeps things is the person's", USER_SOURCES),
    "sandbox.tier": Strictness(_most, "a lower tier confines less", USER_SOURCES),
    "sandbox.least": Strictness(_most, "below it no command runs", USER_SOURCES),
    "sandbox.toolchains": Strictness(_common, "another folder is more that commands read", USER_SOURCES),
    "sandbox.environment": Strictness(_common, "another variable is more that commands learn", USER_SOURCES),
    "network.allow": Strictness(_in_both, "another host is more that commands can tell and be told", FILE_SOURCES),
    "mcp.wait": Strictness(_smaller("exec"), "who waits longer begins later"),
    "limits.exec": Strictness(_smaller("exec"), "who takes longer is in the way longer"),
    "limits.output": Strictness(_smaller("output"), "more output takes more memory"),
    "limits.memory": Strictness(_smaller("memory"), "who takes more memory leaves less to others"),
    "limits.processes": Strictness(_least, "more processes leave less to others"),
    "limits.file_size": Strictness(_smaller("file_size"), "a larger file fills the disk sooner"),
    "limits.preview": Strictness(_smaller("preview"), "a larger preview fills the disk sooner"),
    "limits.waiting": Strictness(_smaller("waiting"), "more previews that wait fill the disk sooner"),
    "limits.idle": Strictness(_smaller("idle"), "what nobody asks for any more takes memory from others"),
    "limits.sessions": Strictness(_least, "more that goes on leaves less to others"),
    "agent.calls": Strictness(_least, "more calls do more before anybody looks"),
    "agent.tokens": Strictness(_least_of_some, "tokens cost the person's money"),
    "agent.repeats": Strictness(_least, "who does the same again and again costs, and does nothing"),
    "agent.attempts": Strictness(_least, "each attempt may cost"),
    "agent.full": Strictness(_least, "a longer transcript costs more with every question"),
    "agent.window": Strictness(_least_of_some, "as above"),
}
"""For every dotted key, in the order of the model."""


# § [settings.check] Whether values fit the model, key by key, so that every problem is found at once.

DEFAULTS = flatten_settings(Settings())


def find_invalid_values(values: Mapping[str, object]) -> dict[str, object]:
    """Those of the values whose key is unknown or that the key does not allow."""
    return {key: value for key, value in values.items() if not _fits(key, value)}


def flatten(tables: Mapping[str, Any]) -> dict[str, object]:
    """The values of a document by dotted key; a table that is no section stays a value."""
    values: dict[str, object] = {}
    for name, value in tables.items():
        if name in Settings.__struct_fields__ and name not in DEFAULTS and isinstance(value, dict):
            values.update(_leaves(name, cast("dict[str, object]", value)))
        else:
            values[_part(name)] = value
    return values


def nest(values: Mapping[str, object]) -> dict[str, Any]:
    """The opposite of `flatten`, for known keys."""
    tables: dict[str, Any] = {}
    for key, value in values.items():
        section, _, leaf = key.rpartition(".")
        (tables.setdefault(section, {}) if section else tables)[leaf] = value
    return tables


def _fits(key: str, value: object) -> bool:
    if key not in DEFAULTS:
        return False
    try:
        convert(nest({key: value}), Settings)
    except (msgspec.ValidationError, ValueError):  # ValueError: text that is not Unicode, from an argument
        return False
    return True


def _leaves(section: str, table: Mapping[str, object]) -> dict[str, object]:
    return {f"{section}.{_part(name)}": value for name, value in table.items()}


def _part(name: str) -> str:
    """A quoted key may hold anything: a dot that is no separator, an escape sequence."""
    plain = name.isascii() and name.replace("-", "_").isidentifier()
    return name if plain else truncate_repr(name)
