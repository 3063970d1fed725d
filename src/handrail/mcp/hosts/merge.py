"""The rules by which wanted settings are merged into those of a person."""

import json
from typing import Any

import msgspec


class ListContains(msgspec.Struct, frozen=True):
    """A list that has these items among others."""

    items: tuple[str, ...]


class ServerEntry(msgspec.Struct, frozen=True):
    """The entry of a server. Additions of a person stay, unless their entry has an address instead of a command."""

    entry: dict[str, Any]

    def can_extend(self, value: Any) -> bool:
        return isinstance(value, dict) and "url" not in value


class ConfigSyntaxError(Exception):
    """A file cannot be parsed."""


class CannotMerge(Exception):  # noqa: N818  not always an error: the person can paste a snippet
    """A file can be parsed, but the wanted settings cannot be added without removing others."""


def merge_value(value: Any, wanted: Any, path: str = "") -> Any:
    """The value with the wanted settings. Others stay. Raises CannotMerge if the value is of another type."""
    match wanted:
        case ServerEntry(entry=entry):
            return merge_value(value if wanted.can_extend(value) else None, entry, path)
        case ListContains(items=items):
            there: list[Any] = _check_type(list, value, path)
            return [*there, *(item for item in items if item not in there)]
        case dict():
            inside: dict[str, Any] = _check_type(dict, value, path)
            _refuse_later_wildcard(inside, wanted, path)
            return {
                **inside,
                **{key: merge_value(inside.get(key), one, f"{path}.{key}") for key, one in _list_items(wanted)},
            }
        case _:
            return wanted


def _refuse_later_wildcard(inside: dict[str, Any], wanted: Any, path: str) -> None:
    """The last rule that matches a name counts, so a later `*` would undo ours."""
    names = list(inside)
    if "*" in names and any(key in wanted for key in names[: names.index("*")]):
        raise CannotMerge(f"its {path[1:]} has * behind what is more exact, and the last one counts")


def _check_type(kind: type[Any], value: Any, path: str) -> Any:
    if value is None or isinstance(value, kind):
        return kind() if value is None else value
    raise CannotMerge(f"its {path[1:] or 'content'} is not {'a list' if kind is list else 'a table'}")


def to_plain_value(wanted: Any) -> Any:
    """The wanted settings of a new file."""
    return merge_value(None, wanted)


def is_same_json(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON, where 1 is not true."""
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)


def has_wanted(value: Any, wanted: Any) -> bool:
    """Whether a value has the wanted settings already."""
    try:
        return is_same_json(value, merge_value(value, wanted))
    except CannotMerge:
        return False


def has_server(value: Any, wanted: Any) -> bool:
    """Whether a value has an entry for every wanted server, with any content."""
    if isinstance(wanted, ServerEntry):
        return isinstance(value, dict)
    if not isinstance(wanted, dict):
        return True
    return all(has_server(_get(value, key), inner) for key, inner in _list_items(wanted))


def list_server_entries(value: Any, wanted: Any) -> list[dict[str, Any]]:
    """The entries of the wanted servers."""
    if isinstance(wanted, ServerEntry):
        return [value] if isinstance(value, dict) else []
    pairs = _list_items(wanted) if isinstance(wanted, dict) else []
    return [entry for key, inner in pairs for entry in list_server_entries(_get(value, key), inner)]


def drop_servers(wanted: Any) -> Any:
    """The wanted settings besides servers."""
    kept = [(key, inner) for key, inner in _list_items(wanted) if not isinstance(inner, ServerEntry)]
    return {key: drop_servers(inner) if isinstance(inner, dict) else inner for key, inner in kept}


def _get(value: Any, key: str) -> Any:
    try:
        return value[key]
    except (KeyError, TypeError):
        return None


def _list_items(wanted: Any) -> list[tuple[str, Any]]:
    return list(wanted.items())
