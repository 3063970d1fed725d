"""Puts layer over layer: the nearest decides, as far as it may loosen; the managed one is never loosened."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from handrail.settings.ignored import (
    IgnoredSetting,
    build_ignored_rule,
    build_ignored_server,
    build_ignored_value,
    build_overridden_server,
    build_overridden_value,
)
from handrail.settings.layers import Layer
from handrail.settings.strictness import STRICTNESS, may_loosen

if TYPE_CHECKING:
    from handrail.policy.rules.rule import Rule
    from handrail.settings.servers import ServerTable


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
