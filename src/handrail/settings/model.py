"""Every setting, declared once."""

from __future__ import annotations  # a session without settings files evaluates none of them

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from msgspec import Meta

from handrail.protocol.decisions import MODES, Mode
from handrail.protocol.permissions import PERMISSIONS, Permission
from handrail.protocol.wire import convert
from handrail.settings.declaration import (
    ALL_SOURCES,
    FILE_SOURCES,
    USER_SOURCES,
    Field,
    Section,
    declare_size,
    declare_time,
    intersect,
    intersect_hosts,
    list_fields,
    pick_first,
    pick_smaller,
    unite,
)
from handrail.settings.embeddings import Embeddings
from handrail.settings.units import AmountRange, Size, Time

_DialectName = Literal["deepchat", "devminds", "clude", "agentica", "onething", "claude-code", "codex", "opencode"]
_EventDialect = Literal["deepchat", "devminds", "onething"]
ClientRoots = Literal["ignore", "read-only", "writable"]
SearchEngine = Literal["auto", "ripgrep", "python"]
_Switch = Annotated[bool, Field(merge=min)]
_ToolNames = Annotated[tuple[str, ...], Field(allowed="a list of tool names")]
_Characters = Annotated[int, Meta(ge=1_000, le=100_000_000), Field(merge=min)]
_Count = Annotated[int, Meta(ge=0, le=1_000_000), Field(merge=min)]
_Folder = Annotated[str, Meta(pattern=r"\A(?:/|~/|~\Z)[^\0]*\Z")]
"""Absolute or in the home folder. A folder relative to the workspace would be the agent's to fill."""
_Folders = Annotated[
    tuple[_Folder, ...],
    Field(merge=intersect, allowed="a list of folders, each absolute or starting with ~/", has_home=True),
]
_WorkspaceFolder = Annotated[str, Meta(pattern=r"\A(?![/~])(?!(?:[^\0]*/)?\.\.(?:/|\Z))[^\0]+\Z")]
"""Relative and without `..`, so that it stays in the workspace."""
_Toolchain = Annotated[str, Meta(pattern=r"\A(?:/|~/)(?!/*\Z)[^\0]*\Z")]
"""A folder or file like `Folder`, but neither `/` nor the home folder."""
Variable = Annotated[str, Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]{0,127}\Z")]
_Days = Annotated[str, Meta(pattern=r"\A[1-9][0-9]{0,4}d\Z"), Field(allowed='a number of days such as "90d"')]
_Tier = Annotated[int, Meta(ge=0, le=3), Field(merge=max, allowed="0, 1, 2 or 3", loosened_by=USER_SOURCES)]
_ServerEntry = Annotated[str, Meta(pattern=r"\A[^\0]{1,500}\Z")]
_ModelName = Annotated[str, Meta(pattern=r"\A[!-~]{1,200}\Z")]
"""A provider and its name for a model: `anthropic:claude-…`. Only the provider knows whether it exists."""


_EXPIRY = AmountRange("time", "1 min", "365 d", '"12 h" or "7d"')


class _Ask(Section, frozen=True, kw_only=True):
    empty_preview: Annotated[
        Literal["keep", "ask"],
        Field("Whether a command needs approval if its preview changed nothing."),
        Field(merge=pick_first("ask", "keep")),
    ] = "keep"
    # The inbox is the user's, so no project decides this.
    expire: Annotated[
        Time,
        Field("How long a request waits after its process ended, before it is denied.", loosened_by=USER_SOURCES),
        Field(allowed=_EXPIRY.allowed, amount=_EXPIRY),
    ] = "7d"


class Tools(Section, frozen=True, kw_only=True):
    enable: Annotated[_ToolNames, Field("Tools offered besides those that are on by default.", intersect)] = ()
    disable: Annotated[
        _ToolNames, Field("Tools that are not offered, base tools too; for other servers mcp__NAME or a glob.", unite)
    ] = ()
    deny: Annotated[
        tuple[Permission, ...],
        Field("Permissions this agent does not have; tools that need one are not offered.", unite),
        Field(allowed=f"a list of {', '.join(PERMISSIONS)}"),
    ] = ()
    # These files run in this process, and trust in a project does not pin their content.
    folders: Annotated[_Folders, Field("Folders with custom tool files.", loosened_by=USER_SOURCES)] = ()
    installed: Annotated[_Switch, Field("Whether tools of installed packages (entry points) are registered.")] = False
    repair_case: Annotated[_Switch, Field("Whether a name that differs from a tool only in case means it.")] = False


class _Skills(Section, frozen=True, kw_only=True):
    enabled: Annotated[_Switch, Field("Whether skills (folders with a SKILL.md) are used.")] = True
    # The model takes these skills for the user's own.
    folders: Annotated[
        _Folders, Field("Folders with skills, searched before the usual ones.", loosened_by=USER_SOURCES)
    ] = ()
    disable: Annotated[tuple[str, ...], Field("Skills that are disabled.", unite, "a list of names of skills")] = ()


class _Read(Section, frozen=True, kw_only=True):
    # An image costs tokens and can carry a prompt injection.
    images: Annotated[_Switch, Field("Whether read returns images as attachments.")] = True


class Results(Section, frozen=True, kw_only=True):
    """How much of a result the model sees before the rest is stored."""

    characters: Annotated[_Characters, Field("Maximum characters of one result; the rest is stored.")] = 30_000
    batch_characters: Annotated[_Characters, Field("Maximum characters of all results of one batch.")] = 100_000


class _Journal(Section, frozen=True, kw_only=True):
    durability: Annotated[
        Literal["crash", "power"],
        Field("The durability of events; power flushes the disk at each commit.", pick_first("power", "crash")),
    ] = "crash"


class _Store(Section, frozen=True, kw_only=True):
    # The state folder is the user's, so no project decides this.
    keep: Annotated[_Days, Field("How long a session is kept after its last use.", loosened_by=USER_SOURCES)] = "365d"


class _Events(Section, frozen=True, kw_only=True):
    # It writes everything that was said into the workspace, without asking.
    jsonl: Annotated[
        _WorkspaceFolder | None,
        Field("Folder in the workspace that live event lines are appended to.", loosened_by=FILE_SOURCES),
        Field(allowed="a folder relative to the workspace, without .."),
    ] = None
    dialect: Annotated[
        _EventDialect | None,
        Field(
            "The format of live event lines: another system's, or handrail's own (default).", loosened_by=FILE_SOURCES
        ),
        Field(allowed="one of " + ", ".join(get_args(_EventDialect))),
    ] = None


class Paths(Section, frozen=True, kw_only=True):
    """Roots besides the workspace."""

    read_only: Annotated[_Folders, Field("Folders outside the workspace that may be read.")] = ()
    writable: Annotated[_Folders, Field("Folders outside the workspace that may be read and written.")] = ()
    outside: Annotated[
        Literal["deny", "ask"],
        Field("Whether a path outside all roots is refused or asked about.", pick_first("deny", "ask")),
        Field(loosened_by=FILE_SOURCES),
    ] = "deny"
    client_roots: Annotated[
        ClientRoots,
        Field("The access to folders of an MCP client outside the roots."),
        Field(merge=pick_first("ignore", "read-only", "writable"), loosened_by=USER_SOURCES),
    ] = "ignore"


class Bulk(Section, frozen=True, kw_only=True):
    """From how many files or bytes on a change counts as a bulk change."""

    deleted: Annotated[
        _Count, Field("More deleted files than this are a bulk change, which needs approval in auto mode.")
    ] = 20
    changed: Annotated[_Count, Field("More changed files than this are a bulk change.")] = 200
    bytes: Annotated[
        Size, declare_size("More written bytes than this are a bulk change.", "4 KB", "64 TB", "500 MB")
    ] = "256 MB"


class Restricted(Section, frozen=True, kw_only=True):
    commands: Annotated[
        tuple[str, ...],
        Field("Commands, by their first words, that the restricted profile runs.", intersect, "a list of commands"),
    ] = ("ls", "cat", "git status", "git log --oneline", "node -v", "pnpm -v")
    folders: Annotated[
        tuple[_WorkspaceFolder, ...],
        Field("Folders of the workspace that the restricted profile reads and writes.", intersect),
        Field(allowed="a list of folders relative to the workspace, without .."),
    ] = (".minds", ".tasklogs")


class Search(Section, frozen=True, kw_only=True):
    # An ignored file can still be read by its name.
    ignore: Annotated[
        tuple[str, ...], Field("Patterns skipped besides the built-in ignore list.", unite, "a list of patterns")
    ] = ()
    # Python's own search starts no program.
    engine: Annotated[
        SearchEngine,
        Field("The search engine; auto takes ripgrep if it is installed.", pick_first("python", "auto", "ripgrep")),
    ] = "auto"
    # The endpoint gets parts of the files, so only the user names one.
    embeddings: Annotated[
        Embeddings | None,
        Field("The model that codebase_search ranks by meaning with; it gets parts of your files."),
        Field(
            allowed='a table such as { address = "http://127.0.0.1:11434/v1", model = "nomic-embed-text" }',
            loosened_by=FILE_SOURCES,
        ),
    ] = None


class _Undo(Section, frozen=True, kw_only=True):
    # The state folder is the user's, so no project decides this.
    days: Annotated[
        int, Meta(ge=1, le=3_650), Field("Days for which a change can be undone.", loosened_by=USER_SOURCES)
    ] = 30


class Sandbox(Section, frozen=True, kw_only=True):
    tier: Annotated[_Tier, Field("The highest sandbox tier to use: 3 overlay, 2 namespaces, 1 Landlock, 0 none.")] = 3
    least: Annotated[_Tier, Field("The lowest sandbox tier in which commands run; below it no command runs.")] = 0
    toolchains: Annotated[
        tuple[_Toolchain, ...],
        Field("More folders and files outside the roots that commands can see.", intersect),
        Field(
            allowed="a list of folders and files, each absolute or starting with ~/, but none that holds everything or"
            " credentials",
            loosened_by=USER_SOURCES,
            has_home=True,
        ),
    ] = ()
    environment: Annotated[
        tuple[Variable, ...],
        Field("More variables that commands get.", intersect, loosened_by=USER_SOURCES),
        Field(allowed="a list of variable names, without secrets and variables that control how programs start"),
    ] = ()

    def __post_init__(self) -> None:
        """ValueError: commands never get a variable of this name."""
        if self.environment:
            from handrail.policy.secrets import find_withheld_reason  # noqa: PLC0415  few name variables

            if withheld := [name for name in self.environment if find_withheld_reason(name)]:
                raise ValueError(f"commands never get {', '.join(withheld)}")


class NetworkSettings(Section, frozen=True, kw_only=True):
    """The network that commands have without an approval."""

    # A host can receive whatever a command reads, so only the user opens one.
    allow: Annotated[
        tuple[str, ...],
        Field("Hosts that writing commands may reach; all others are blocked."),
        Field(
            merge=intersect_hosts,
            allowed='a list such as "index.example.org:443", "*.example.org", "127.0.0.1:8080" or "10.0.0.0/8:5432"; '
            "the default ports are 80 and 443",
            loosened_by=FILE_SOURCES,
        ),
    ] = ()

    def __post_init__(self) -> None:
        """ValueError: an entry names no host, or too many."""
        if self.allow:
            from handrail.policy.network.allowlist import Allowlist  # noqa: PLC0415  few list hosts

            Allowlist.from_entries(self.allow)


_WAIT = "How long a session waits for other MCP servers to start."
_PERMISSION_WAIT = "How long a call waits for approval if the MCP client cannot ask."


class _Mcp(Section, frozen=True, kw_only=True):
    """MCP in both directions. The tables of other servers are in `LoadedSettings.servers`."""

    wait: Annotated[Time, declare_time(_WAIT, "100 ms", "10 min", '"5s"')] = "5s"
    permission_wait: Annotated[Time, declare_time(_PERMISSION_WAIT, "100 ms", "10 min", '"45s"')] = "10s"


_BODY = "Maximum body of a request to `handrail serve`."


class _Server(Section, frozen=True, kw_only=True):
    """`handrail serve`. A server works in several workspaces, so no project decides these."""

    direct_calls: Annotated[
        _Switch, Field("Whether operators may run calls without a model over HTTP.", loosened_by=FILE_SOURCES)
    ] = False
    body: Annotated[Size, declare_size(_BODY, "4 KB", "64 MB", "4 MB"), Field(loosened_by=FILE_SOURCES)] = "1 MB"
    requests: Annotated[
        int,
        Meta(ge=1, le=100_000),
        Field("Maximum requests per second of one token.", min, loosened_by=FILE_SOURCES),
    ] = 100
    websockets: Annotated[
        int,
        Meta(ge=1, le=100_000),
        Field("Maximum open event streams of one token.", min, loosened_by=FILE_SOURCES),
    ] = 256


_CHECK_WAIT = "How long a change waits for the problems that it caused."


class _Lsp(Section, frozen=True, kw_only=True):
    """Language servers. They run once the settings enable one of the lsp_ tools."""

    # A server is a program, so no project chooses it.
    servers: Annotated[
        tuple[_ServerEntry, ...],
        Field("The language servers to use; all that are installed by default.", loosened_by=USER_SOURCES),
        Field(allowed='a list such as "ty", "clangd=/opt/llvm/bin/clangd" or "*.lua=lua-language-server"'),
    ] = ()
    diagnostics: Annotated[
        Literal["off", "errors", "warnings"],
        Field("The new problems that the result of a change lists."),
        Field(merge=pick_first("off", "errors", "warnings")),
    ] = "errors"
    wait: Annotated[Time, declare_time(_CHECK_WAIT, "100 ms", "10 min", '"1.5s"')] = "1.5s"


_EXEC = "The time limit of a command if the call sets none."
_OUTPUT = "Maximum output of a command in memory; more goes to a file."
_WAITING = "Maximum disk space of all waiting previews of a workspace."
_IDLE = "How long a process session runs without output and calls."


class Limits(Section, frozen=True, kw_only=True):
    """How much one command may use, and how many may run in the background for how long."""

    exec: Annotated[Time, declare_time(_EXEC, "100 ms", "10 min", '"120s" or "1.5 min"')] = "120s"
    output: Annotated[Size, declare_size(_OUTPUT, "64 KB", "64 MB", "4 MB")] = "4 MB"
    memory: Annotated[
        Size, declare_size("Maximum memory of a command with its child processes.", "16 MB", "64 TB", "1.5 GB")
    ] = "4 GB"
    processes: Annotated[int, Meta(ge=8, le=1_000_000), Field("Maximum processes of a command at once.", min)] = 512
    file_size: Annotated[
        Size, declare_size("Maximum size of a file that a command writes.", "4 KB", "64 TB", "500 MB")
    ] = "2 GB"
    preview: Annotated[
        Size, declare_size("Maximum data that a command may write before its approval.", "64 KB", "64 TB", "2 GB")
    ] = "1 GB"
    waiting: Annotated[Size, declare_size(_WAITING, "64 KB", "64 TB", "2 GB")] = "4 GB"
    idle: Annotated[Time, declare_time(_IDLE, "1 s", "168 h", '"30 min"')] = "30 min"
    sessions: Annotated[int, Meta(ge=1, le=1_000), Field("Maximum running process sessions of a session.", min)] = 64


class _Agent(Section, frozen=True, kw_only=True):
    calls: Annotated[int, Meta(ge=1, le=1_000_000), Field("How many tool calls one turn may make.", min)] = 200
    tokens: Annotated[
        Annotated[int, Meta(ge=1, le=1_000_000_000)] | None,
        Field("Maximum tokens of one turn, prompts and answers; unlimited by default.", pick_smaller),
    ] = None
    repeats: Annotated[
        int,
        Meta(ge=2, le=1_000),
        Field("How often in a row the same calls may give the same results before the turn ends.", min),
    ] = 4
    attempts: Annotated[
        int,
        Meta(ge=1, le=100),
        Field("How often a request is sent to a provider that is busy or failing.", min),
    ] = 5
    full: Annotated[
        float,
        Meta(ge=0.1, le=1.0),
        Field("The part of the model's window from which the transcript is compacted.", min),
    ] = 0.8
    window: Annotated[
        Annotated[int, Meta(ge=2_000, le=100_000_000)] | None,
        Field("The size of the model's window in tokens, if the provider does not report it.", pick_smaller),
    ] = None
    # A map is a part of the files, as `read` gives them.
    map: Annotated[
        int,
        Meta(ge=0, le=20_000),
        Field("Tokens of the system prompt for a map of the most referenced definitions; 0: none.", min),
    ] = 0


class Settings(Section, frozen=True, kw_only=True):
    mode: Annotated[
        Mode,
        Field("How much runs without approval; the environment can only make it stricter.", pick_first(*MODES)),
        Field(reserved=("full",)),
    ] = "ask"
    model: Annotated[
        _ModelName | None,
        Field("The model of handrail run; its provider sees every file that the model reads.", loosened_by=ALL_SOURCES),
        Field(allowed='a provider and a model, such as "anthropic:claude-sonnet-4-5" or "ollama:qwen3"'),
    ] = None
    dialect: Annotated[
        _DialectName | None,
        Field("Give the model the tool names and result formats of another system, such as claude-code."),
        Field(allowed="one of " + ", ".join(get_args(_DialectName))),
    ] = None
    # A preview runs before the approval of its command, even if only in a copy.
    preview: Annotated[
        Literal["when-asked", "never"],
        Field("Whether a command that needs approval runs in a copy first, to show its changes."),
        Field(merge=pick_first("never", "when-asked")),
    ] = "when-asked"
    ask: _Ask = _Ask()
    profile: Annotated[
        Literal["standard", "restricted"],
        Field("The profile of a session; restricted: few commands, few folders, no approvals."),
        Field(merge=pick_first("restricted", "standard")),
    ] = "standard"
    tools: Tools = Tools()
    skills: _Skills = _Skills()
    read: _Read = _Read()
    results: Results = Results()
    journal: _Journal = _Journal()
    store: _Store = _Store()
    events: _Events = _Events()
    paths: Paths = Paths()
    bulk: Bulk = Bulk()
    restricted: Restricted = Restricted()
    search: Search = Search()
    undo: _Undo = _Undo()
    sandbox: Sandbox = Sandbox()
    network: NetworkSettings = NetworkSettings()
    mcp: _Mcp = _Mcp()
    server: _Server = _Server()
    lsp: _Lsp = _Lsp()
    limits: Limits = Limits()
    agent: _Agent = _Agent()

    @classmethod
    def from_values(cls, values: Mapping[str, object]) -> Self:
        """The settings with these values by dotted key, and defaults. msgspec.ValidationError: one is not allowed."""
        return convert(cls.nest_values(values), cls)

    @staticmethod
    def nest_values(values: Mapping[str, object]) -> dict[str, Any]:
        """The tables of a settings file with these values by dotted key."""
        tables: dict[str, Any] = {}
        for key, value in values.items():
            section, _, leaf = key.rpartition(".")
            (tables.setdefault(section, {}) if section else tables)[leaf] = value
        return tables

    def flatten(self) -> dict[str, object]:
        """Every value by its dotted key, in the order of the model."""
        values: dict[str, object] = {}
        for name in self.__struct_fields__:
            value: object = getattr(self, name)
            if isinstance(value, Section):
                values.update((f"{name}.{leaf}", getattr(value, leaf)) for leaf in value.__struct_fields__)
            else:
                values[name] = value
        return values


DEFAULTS = Settings().flatten()


def list_settings() -> dict[str, Field]:
    """The declaration of every setting by its dotted key."""
    return list_fields(Settings)
