"""Puts settings over settings; a weaker source cannot loosen."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from handrail.protocol.text import escape_unprintable, truncate
from handrail.settings.errors import MAX_SHOWN_CHARACTERS
from handrail.settings.model import FILE_SOURCES, STRICTNESS, LayerKind, may_loosen
from handrail.settings.sources import Layer

if TYPE_CHECKING:
    from handrail.policy.config import Rule
    from handrail.settings.mcp_servers import ServerTable


# § [settings.ignored] What is said about a value or a rule that does not count, or not as a whole.


class IgnoredSetting(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a layer says and may not."""

    kind: "LayerKind"
    value: str = msgspec.field(name="said")
    """As it is written: `mode = "auto"`."""
    line: int | None
    note: str
    """The whole sentence for a person."""
    until_trusted: bool = False
    """Whether trusting the project would let it count."""


def build_ignored_value(
    layer: "Layer", key: str, value: object, held: object, below: tuple[object, str]
) -> IgnoredSetting:
    """A value of which only `held` counts; `below` is the value that would count without it, and its source."""
    said = f"{key} = {render_written_value(value)}"
    line = layer.lines.get(key)
    curable = layer.kind == "project" and not layer.trusted and may_loosen("project", key, value)
    part = "is ignored" if held == below[0] else f"counts only where it is stricter ({render_written_value(held)})"
    if layer.kind == "environment":
        note = (
            f"HANDRAIL_MODE={value} is ignored: the mode is {below[0]} ({below[1]}), and the environment can make it"
            " stricter, not looser. To loosen it, use the flag or the user file."
        )
    else:
        note = f"{describe_location(layer, line)}{said} {part}{_why(layer, key, curable=curable)}"
    return IgnoredSetting(kind=layer.kind, value=said, line=line, note=note, until_trusted=curable)


def build_ignored_rule(layer: "Layer", rule: "Rule") -> IgnoredSetting:
    """A rule that allows something, of a layer that is not trusted."""
    said = f"rule {rule.id}: allow {render_written_value(rule.pattern)}" + (
        f" for {rule.tool}" if rule.tool != "exec" else ""
    )
    number = rule.source.partition(":")[2]
    line = int(number) if number else None
    curable = layer.kind == "project"
    note = f"{describe_location(layer, line)}{said} is ignored{_why(layer, 'mode', curable=curable)}"
    return IgnoredSetting(kind=layer.kind, value=said, line=line, note=note, until_trusted=curable)


def build_ignored_server(layer: "Layer", name: str, table: "ServerTable") -> IgnoredSetting:
    """Another MCP server, of a layer that is not trusted: it would be started, or told things."""
    said = _server_said(name, table)
    line = layer.lines.get(f"mcp.servers.{name}")
    curable = layer.kind == "project"
    note = f"{describe_location(layer, line)}{said} is ignored{_why(layer, 'mode', curable=curable)}"
    return IgnoredSetting(kind=layer.kind, value=said, line=line, note=note, until_trusted=curable)


def build_overridden_server(name: str, table: "ServerTable", managed: str) -> IgnoredSetting:
    """A server that is not among those of the managed file."""
    said = _server_said(name, table)
    return IgnoredSetting(
        kind="managed", value=said, line=None, note=f"{said} is ignored: the {managed} says which there are"
    )


def _server_said(name: str, table: "ServerTable") -> str:
    from handrail.settings.mcp_servers import describe_server  # noqa: PLC0415 - few name one

    return f"mcp.servers.{name}: {describe_server(table)}"


def build_overridden_value(key: str, value: object, source: str, held: object, managed: str) -> IgnoredSetting:
    """A value that is looser than the managed one."""
    said = f"{key} = {render_written_value(value)}"
    note = f"{said} ({source}) is ignored: the {managed} says {render_written_value(held)}, and nothing looser counts"
    return IgnoredSetting(kind="managed", value=said, line=None, note=note)


def render_written_value(value: object) -> str:
    """A value as a settings file has it, cut, and with nothing hidden in it."""
    return truncate(escape_unprintable(msgspec.json.encode(value).decode()), MAX_SHOWN_CHARACTERS)


def describe_location(layer: "Layer", line: int | None) -> str:
    """Where something stands, as the beginning of a sentence."""
    if layer.kind in {"flag", "session"}:
        return f"{layer.source} "
    name = "handrail.toml" if layer.kind == "project" else layer.source
    return f"{name} line {line}: " if line else f"{name}: "


def _why(layer: "Layer", key: str, *, curable: bool) -> str:
    if curable:
        return " until you trust this project: handrail trust"
    if layer.kind == "user":
        return ": the file lies in the workspace, where an agent could write it"
    where = "the user file" if STRICTNESS[key].loosened_by == FILE_SOURCES else "the user file or a flag"
    return f": {where} can say so, a {layer.kind} cannot"


# § [settings.merge] Puts layer over layer: the nearest decides, as far as it may loosen; the managed one is never
# § loosened.


class Merge:
    """The values so far, each with its source, the rules, and what did not count."""

    __slots__ = ("ignored", "rules", "servers", "sources", "values")

    def __init__(self, bottom: Layer) -> None:
        self.values = dict(bottom.values)
        self.sources = dict.fromkeys(bottom.values, bottom.source)
        self.rules: list[Rule] = []
        self.servers: dict[str, ServerTable] = {}
        self.ignored: list[IgnoredSetting] = []

    def put(self, layer: Layer) -> None:
        """A layer nearer than those before."""
        ignored = [*self._put_values(layer), *self._put_rules(layer), *self._put_servers(layer)]
        self.ignored += sorted(ignored, key=lambda one: one.line or 0)  # as they stand in the file

    def _put_values(self, layer: Layer) -> Iterator[IgnoredSetting]:
        for key, given in layer.values.items():
            value, below = _settled(given), (self.values[key], self.sources[key])
            held = value if layer.trusted and may_loosen(layer.kind, key, value) else _meet(key, below[0], value)
            if not _same(held, value):
                yield build_ignored_value(layer, key, value, held, below)
            if _same(held, value) or held != below[0]:
                self.values[key], self.sources[key] = held, layer.source

    def _put_rules(self, layer: Layer) -> Iterator[IgnoredSetting]:
        for rule in layer.rules:
            if layer.trusted or rule.verdict != "allow":
                self.rules.append(rule)
            else:
                yield build_ignored_rule(layer, rule)

    def _put_servers(self, layer: Layer) -> Iterator[IgnoredSetting]:
        for name, table in (layer.servers or {}).items():
            if layer.trusted:  # files only: neither a flag nor a variable names a server
                self.servers[name] = table
            else:
                yield build_ignored_server(layer, name, table)

    def put_managed(self, layer: Layer) -> None:
        """The managed layer: what others chose still counts where it is stricter."""
        for key, given in layer.values.items():
            value, chosen, source = _settled(given), self.values[key], self.sources[key]
            held = value if source == "default" else _meet(key, value, chosen)
            if source != "default" and not _same(held, chosen):
                self.ignored.append(build_overridden_value(key, chosen, source, held, layer.source))
            self.values[key] = held
            self.sources[key] = _source(layer, source, is_managed=_same(held, value), is_chosen=_same(held, chosen))
        self.rules[:0] = layer.rules
        if layer.servers is not None:
            others = {name: table for name, table in self.servers.items() if layer.servers.get(name) != table}
            self.ignored += [build_overridden_server(name, table, layer.source) for name, table in others.items()]
            self.servers = dict(layer.servers)


def _source(layer: Layer, chosen: str, *, is_managed: bool, is_chosen: bool) -> str:
    if is_managed:
        return layer.source
    return chosen if is_chosen else f"{layer.source} and {chosen}"


def _meet(key: str, below: object, above: object) -> object:
    return STRICTNESS[key].merge_strict(below, above)


def _settled(value: object) -> object:
    """As the model has it: TOML and flags bring lists."""
    return tuple(value) if isinstance(value, list) else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _same(one: object, other: object) -> bool:
    """Order and repetition say nothing in any list of settings."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return _items(one) == _items(other)  # pyright: ignore[reportUnknownArgumentType]
    return one == other


def _items(values: Iterable[object]) -> frozenset[object]:
    return frozenset(values)
