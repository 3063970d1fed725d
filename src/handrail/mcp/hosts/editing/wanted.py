"""What a settings file is to say, and what it comes to together with what it says already."""

import json
from typing import Any

import msgspec


class ListContains(msgspec.Struct, frozen=True):
    """A list that has these among its items."""

    items: tuple[str, ...]


class ServerEntry(msgspec.Struct, frozen=True):
    """The entry of a server. What a person added to one of the same kind stays; one that is reached by an address is
    another kind."""

    entry: dict[str, Any]

    def can_extend(self, value: Any) -> bool:
        """Whether an entry is one to add to."""
        return isinstance(value, dict) and "url" not in value


class CannotMerge(Exception):  # noqa: N818  not always an error: the person is told what to paste
    """The file can be read, but what is wanted cannot be put there without taking something away."""


def merge_value(value: Any, wanted: Any, path: str = "") -> Any:
    """What a value is to become. Nothing is taken away but what is said otherwise; Misfit where the value is of another
    kind."""
    match wanted:
        case ServerEntry(entry=entry):
            return merge_value(value if wanted.can_extend(value) else None, entry, path)
        case ListContains(items=items):
            there: list[Any] = _of_kind(list, value, path)
            return [*there, *(item for item in items if item not in there)]
        case dict():
            inside: dict[str, Any] = _of_kind(dict, value, path)
            _refuse_outdone(inside, wanted, path)
            return {
                **inside,
                **{key: merge_value(inside.get(key), one, f"{path}.{key}") for key, one in _pairs(wanted)},
            }
        case _:
            return wanted


def _refuse_outdone(inside: dict[str, Any], wanted: Any, path: str) -> None:
    """Where a table has rules for names, the last that fits a name counts: `*` behind ours would undo it."""
    names = list(inside)
    if "*" in names and any(key in wanted for key in names[: names.index("*")]):
        raise CannotMerge(f"its {path[1:]} has * behind what is more exact, and the last one counts")


def _of_kind(kind: type[Any], value: Any, path: str) -> Any:
    if value is None or isinstance(value, kind):
        return kind() if value is None else value
    raise CannotMerge(f"its {path[1:] or 'content'} is not {'a list' if kind is list else 'a table'}")


def to_plain_value(wanted: Any) -> Any:
    """What is wanted where nothing is there yet."""
    return merge_value(None, wanted)


def is_same_json(one: Any, other: Any) -> bool:
    """Whether two values are one in JSON, where 1 is not true."""
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)


def has_wanted(value: Any, wanted: Any) -> bool:
    """Whether a value says already what is wanted."""
    try:
        return is_same_json(value, merge_value(value, wanted))
    except CannotMerge:
        return False


def has_server(value: Any, wanted: Any) -> bool:
    """Whether a value has an entry for every server that is wanted, whatever it says."""
    if isinstance(wanted, ServerEntry):
        return isinstance(value, dict)
    if not isinstance(wanted, dict):
        return True
    return all(has_server(_inside(value, key), inner) for key, inner in _pairs(wanted))


def list_server_entries(value: Any, wanted: Any) -> list[dict[str, Any]]:
    """What a value says of the servers that are wanted."""
    if isinstance(wanted, ServerEntry):
        return [value] if isinstance(value, dict) else []
    pairs = _pairs(wanted) if isinstance(wanted, dict) else []
    return [entry for key, inner in pairs for entry in list_server_entries(_inside(value, key), inner)]


def drop_servers(wanted: Any) -> Any:
    """All else that is wanted."""
    kept = [(key, inner) for key, inner in _pairs(wanted) if not isinstance(inner, ServerEntry)]
    return {key: drop_servers(inner) if isinstance(inner, dict) else inner for key, inner in kept}


def _inside(value: Any, key: str) -> Any:
    try:
        return value[key]
    except (KeyError, TypeError):
        return None


def _pairs(wanted: Any) -> list[tuple[str, Any]]:
    return list(wanted.items())
