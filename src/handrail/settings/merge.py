"""Merges layers of settings: the nearest layer that may set a value decides."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from handrail.protocol.text import escape_unprintable, truncate
from handrail.settings.declaration import FILE_SOURCES, LayerKind
from handrail.settings.errors import MAX_SHOWN_CHARACTERS
from handrail.settings.model import DEFAULTS, Settings, list_settings

if TYPE_CHECKING:
    from handrail.policy.config import Rule
    from handrail.settings.mcp_servers import ServerTable


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """Valid values by dotted key, and their source."""

    kind: LayerKind
    source: str
    values: Mapping[str, object] = {}
    rules: "tuple[Rule, ...]" = ()
    servers: "Mapping[str, ServerTable] | None" = None
    """Other MCP servers by name. None: the layer does not mention them."""
    lines: Mapping[str, int] = {}
    trusted: bool = True
    """Whether it may loosen anything at all."""

    @property
    def is_empty(self) -> bool:
        return not self.values and not self.rules and self.servers is None


class IgnoredSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A value, rule or server that was ignored because its layer may not loosen anything by it."""

    kind: LayerKind
    value: str = msgspec.field(name="said")
    """As it is written: `mode = "auto"`."""
    key: str = ""
    """Empty for a rule or a server."""
    line: int | None
    note: str
    """The whole sentence for a person."""
    until_trusted: bool = False
    """Whether it would count if the user trusted the project."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """The settings file of a workspace."""

    path: str
    workspace: str
    """Its real path."""
    digest: str
    """The SHA-256 of the file. Trust is given to exactly this content."""
    trusted: bool
    remark: str = ""
    """Why trust does not count, although it was given or may have been."""


class ToolFile(msgspec.Struct, frozen=True):
    """The content of a tool file. Exactly these bytes run, whatever the file has later."""

    path: str
    source: bytes
    digest: str = ""
    """The SHA-256 of the content."""


class LoadedSettings(msgspec.Struct, frozen=True, kw_only=True):
    settings: Settings
    sources: dict[str, str]
    """The source of every dotted key."""
    lines: Mapping[str, int | None] = {}
    """The line of a dotted key in the file that is its source, as far as it is known."""
    rules: "tuple[Rule, ...]" = ()
    servers: "Mapping[str, ServerTable]" = {}
    """Other MCP servers that the settings files name. `.mcp.json` may add to them (`mcp_json`)."""
    servers_fixed: bool = False
    """Whether the managed file lists the servers. Then there are no others."""
    notes: tuple[str, ...] = ()
    ignored: tuple[IgnoredSetting, ...] = ()
    """Each is among the notes, too."""
    managed: Mapping[str, object] = {}
    """The values of the managed file. No layer may choose a looser one."""
    project: Project | None = None
    tool_files: tuple[ToolFile, ...] = ()
    """The trusted tool files of the project. Only the command line fills them in."""


class Merge:
    """The merged values with their sources, the rules, the servers, and what was ignored."""

    __slots__ = ("ignored", "lines", "rules", "servers", "sources", "values")

    def __init__(self) -> None:
        self.values = dict(DEFAULTS)
        self.sources = dict.fromkeys(DEFAULTS, "default")
        self.lines: dict[str, int | None] = {}
        self.rules: list[Rule] = []
        self.servers: dict[str, ServerTable] = {}
        self.ignored: list[IgnoredSetting] = []

    def put(self, layer: Layer) -> None:
        """Add a layer that is nearer than those before."""
        ignored = [*self._put_values(layer), *self._put_rules(layer), *self._put_servers(layer)]
        self.ignored += sorted(ignored, key=lambda setting: setting.line or 0)  # in the order of the file

    def put_managed(self, layer: Layer) -> None:
        """Add the managed layer. Values of other layers count only if they are stricter."""
        for key, raw in layer.values.items():
            value, chosen, source = _to_tuple(raw), self.values[key], self.sources[key]
            held = value if source == "default" else list_settings()[key].merge(value, chosen)
            if source != "default" and not _is_same(held, chosen):
                self._override(
                    f"{key} = {_render_value(chosen)}",
                    f" ({source}) is ignored: the {layer.source} says {_render_value(held)}, and looser values "
                    "are ignored",
                )
            self.values[key] = held
            if _is_same(held, value):
                self._set_source(key, layer)
            elif not _is_same(held, chosen):
                self.sources[key] = f"{layer.source} and {source}"
        self.rules[:0] = layer.rules
        if layer.servers is not None:
            for name, table in self.servers.items():
                if layer.servers.get(name) != table:
                    written = _describe_server(name, table)
                    self._override(written, f" is ignored: the {layer.source} lists all servers")
            self.servers = dict(layer.servers)

    def _override(self, written: str, reason: str) -> None:
        self.ignored.append(IgnoredSetting(kind="managed", value=written, line=None, note=written + reason))

    def _put_values(self, layer: Layer) -> Iterator[IgnoredSetting]:
        for key, raw in layer.values.items():
            value, below, source = _to_tuple(raw), self.values[key], self.sources[key]
            loosens = layer.trusted and list_settings()[key].can_be_loosened(layer.kind, value)
            held = value if loosens else list_settings()[key].merge(below, value)
            if not _is_same(held, value):
                yield _build_ignored_value(layer, key, value, held, below, source)
            if _is_same(held, value) or held != below:
                self.values[key] = held
                self._set_source(key, layer)

    def _set_source(self, key: str, layer: Layer) -> None:
        self.sources[key], self.lines[key] = layer.source, layer.lines.get(key)

    def _put_rules(self, layer: Layer) -> Iterator[IgnoredSetting]:
        for rule in layer.rules:
            if layer.trusted or rule.verdict != "allow":
                self.rules.append(rule)
            else:
                tool = f" for {rule.tool}" if rule.tool != "exec" else ""
                written = f"rule {rule.id}: allow {_render_value(rule.pattern)}{tool}"
                yield _build_untrusted(layer, written, layer.lines.get(f"rule.{rule.id}"))

    def _put_servers(self, layer: Layer) -> Iterator[IgnoredSetting]:
        for name, table in (layer.servers or {}).items():
            if layer.trusted:  # only files name servers
                self.servers[name] = table
            else:
                yield _build_untrusted(layer, _describe_server(name, table), layer.lines.get(f"mcp.servers.{name}"))


def _to_tuple(value: object) -> object:
    """The value as the model has it. TOML and flags have lists."""
    return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _is_same(one: object, other: object) -> bool:
    """Order and repetition mean nothing in a list of settings."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return frozenset[object](one) == frozenset[object](other)  # pyright: ignore[reportUnknownArgumentType]
    return one == other


def _build_ignored_value(
    layer: Layer, key: str, value: object, held: object, below: object, source: str
) -> IgnoredSetting:
    """A value that counts only as `held`. `below` is the value of the layers before, `source` its source."""
    written, line = f"{key} = {_render_value(value)}", layer.lines.get(key)
    curable = layer.kind == "project" and not layer.trusted and list_settings()[key].can_be_loosened("project", value)
    if layer.kind == "environment":
        note = (
            f"HANDRAIL_MODE={value} is ignored: the mode is {below} ({source}), and the environment can make it"
            " stricter, not looser. To loosen it, use the flag or the user file."
        )
    else:
        part = "is ignored" if held == below else f"applies only if stricter ({_render_value(held)})"
        note = f"{_describe_location(layer, line)}{written} {part}{_describe_reason(layer, key, curable=curable)}"
    return IgnoredSetting(kind=layer.kind, value=written, key=key, line=line, note=note, until_trusted=curable)


def _build_untrusted(layer: Layer, written: str, line: int | None) -> IgnoredSetting:
    """A rule that allows something, or an MCP server, of a layer that is not trusted."""
    curable = layer.kind == "project"
    note = f"{_describe_location(layer, line)}{written} is ignored{_describe_reason(layer, 'mode', curable=curable)}"
    return IgnoredSetting(kind=layer.kind, value=written, line=line, note=note, until_trusted=curable)


def _describe_server(name: str, table: "ServerTable") -> str:
    from handrail.settings.mcp_servers import describe_server  # noqa: PLC0415  few name one

    return f"mcp.servers.{name}: {describe_server(table)}"


def _render_value(value: object) -> str:
    """A value as a settings file has it, truncated and with invisible characters escaped."""
    return truncate(escape_unprintable(msgspec.json.encode(value).decode()), MAX_SHOWN_CHARACTERS)


def _describe_location(layer: Layer, line: int | None) -> str:
    """The beginning of a sentence: the file and line of the value."""
    if layer.kind in {"flag", "session"}:
        return f"{layer.source} "
    name = "handrail.toml" if layer.kind == "project" else layer.source
    return f"{name} line {line}: " if line else f"{name}: "


def _describe_reason(layer: Layer, key: str, *, curable: bool) -> str:
    """The end of a sentence: why the layer may not loosen, or how to let it."""
    if curable:
        return " until you trust this project: handrail trust"
    if layer.kind == "user":
        return ": the file is in the workspace, where an agent could write it"
    where = "the user file" if list_settings()[key].loosened_by == FILE_SOURCES else "the user file or a flag"
    return f": only {where} may set this"
