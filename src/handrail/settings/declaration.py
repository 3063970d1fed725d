"""The declaration of a setting: help, allowed values, range, merge rule."""

from collections.abc import Callable
from functools import cache
from itertools import zip_longest
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from handrail.settings.units import AmountRange

LayerKind = Literal["managed", "user", "project", "session", "environment", "flag", "default"]
_MergeRule = Callable[[Any, Any], Any]
"""The loosest value that is as strict as the value below and the value above it."""

TRUSTED_SOURCES: tuple[LayerKind, ...] = ("managed", "user", "project", "session", "flag")
"""The project counts once it is trusted. The environment never does: any parent process can set it."""
USER_SOURCES: tuple[LayerKind, ...] = ("managed", "user", "flag")
FILE_SOURCES: tuple[LayerKind, ...] = ("managed", "user")
ALL_SOURCES: tuple[LayerKind, ...] = (*TRUSTED_SOURCES, "environment")


def _keep_below(below: object, above: object) -> object:  # noqa: ARG001  a merge rule has two arguments
    """No value is stricter than another, so a layer that may not loosen changes nothing."""
    return below


def pick_first(*strictest_first: object) -> _MergeRule:
    """The rule that picks the stricter of two words."""
    return lambda below, above: min(below, above, key=strictest_first.index)


def pick_smaller(below: int | None, above: int | None) -> int | None:
    """The smaller number. None is unlimited."""
    return min((limit for limit in (below, above) if limit is not None), default=None)


def unite(below: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    """All items of both lists: a longer list is stricter."""
    return (*below, *(item for item in above if item not in below))


def intersect(below: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    """The items that both lists have: a shorter list is stricter."""
    return tuple(item for item in above if item in below)


def intersect_hosts(below: tuple[str, ...], above: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts that both lists allow, also by a pattern such as `*.example.org`."""
    if not below or not above:
        return ()
    from handrail.policy.network.allowlist import Allowlist, parse_host_pattern  # noqa: PLC0415  few list hosts

    def list_allowed(entries: tuple[str, ...], by: tuple[str, ...]) -> list[str]:
        allowed = Allowlist.from_entries(by)
        return [entry for entry in entries if allowed.holds(parse_host_pattern(entry))]

    return tuple(dict.fromkeys([*list_allowed(above, below), *list_allowed(below, above)]))


class Field(msgspec.Struct, frozen=True):
    """The declaration of a key. An annotation may hold several, which complete each other."""

    help: str = ""
    merge: _MergeRule = _keep_below
    allowed: str = ""
    """The allowed values in words. If no part names them, they follow from the type."""
    loosened_by: tuple[LayerKind, ...] = TRUSTED_SOURCES
    reserved: tuple[object, ...] = ()
    """Values that only the user may choose, even if other layers may loosen the setting."""
    amount: AmountRange | None = None
    """The range of a time or a size."""
    has_home: bool = False
    """Whether it is a list of paths that may begin with `~`."""

    def can_be_loosened(self, kind: LayerKind, value: object) -> bool:
        """Whether a trusted layer of this kind may choose a value that is looser than the one below."""
        return kind in self.loosened_by and (value not in self.reserved or kind in USER_SOURCES)


_DEFAULT_FIELD = Field()


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a settings file."""

    def __post_init__(self) -> None:
        """ValueError: a time or size is out of its range."""
        # The last fields have the defaults.
        for name, default in zip_longest(reversed(self.__struct_fields__), reversed(self.__struct_defaults__)):
            value = getattr(self, name)
            if value is not default and (field := list_fields(type(self)).get(name)) and field.amount:
                field.amount.parse(value)


@cache
def list_fields(section: type[Section]) -> dict[str, Field]:
    """The declaration of every key, in order. Keys of nested sections are dotted."""
    fields: dict[str, Field] = {}
    for name, kind in get_type_hints(section, include_extras=True).items():
        if isinstance(kind, type) and issubclass(kind, Section):
            fields.update((f"{name}.{leaf}", field) for leaf, field in list_fields(kind).items())
        else:
            fields[name] = _read_annotation(kind)
    return fields


def _read_annotation(kind: Any) -> Field:
    merged: dict[str, Any] = {}
    for part in kind.__metadata__:
        if isinstance(part, Field):
            values = msgspec.structs.asdict(part)
            merged |= {name: value for name, value in values.items() if value != getattr(_DEFAULT_FIELD, name)}
    if "allowed" not in merged:
        merged["allowed"] = _describe_allowed(kind)
    return Field(**merged)


def _describe_allowed(kind: Any) -> str:
    """The values of a plain type: true or false, words, a range of numbers."""
    plain, choices = kind.__origin__, get_args(kind.__origin__)
    if plain is bool:
        return "true or false"
    if get_origin(plain) is Literal:
        return f"{', '.join(choices[:-1])} or {choices[-1]}"
    if choices:  # a type or None
        return _describe_allowed(choices[0])
    bounds = next(meta for meta in kind.__metadata__ if isinstance(meta, msgspec.Meta))
    return f"{'a whole number' if plain is int else 'a number'} from {bounds.ge} to {bounds.le}"


def declare_time(text: str, least: str, most: str, examples: str) -> Field:
    """A setting that is a time. A shorter one is stricter."""
    amount = AmountRange("time", least, most, examples)
    return Field(text, amount.pick_smaller, amount.allowed, amount=amount)


def declare_size(text: str, least: str, most: str, example: str) -> Field:
    """A setting that is a size. A smaller one is stricter."""
    amount = AmountRange("size", least, most, f'"{example}"')
    return Field(text, amount.pick_smaller, amount.allowed, amount=amount)
