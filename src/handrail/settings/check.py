"""Whether values fit the model, key by key, so that every problem is found at once."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from handrail.protocol.reading import convert
from handrail.settings.errors import truncate_repr
from handrail.settings.model import Settings, flatten_settings

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
