"""The parameters of a foreign tool."""

from collections.abc import Mapping
from itertools import count
from keyword import iskeyword
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import NODEFAULT, Meta, Struct

_NUMBERS = count(1)
"""Types of one schema need different names."""


class Parameter(NamedTuple):
    kind: Any
    default: Any


def need(kind: Any, description: str = "", **limits: Any) -> Parameter:
    """A required parameter. `limits` are those of msgspec.Meta."""
    return Parameter(_annotate(kind, description, limits), NODEFAULT)


def may(kind: Any, default: Any = None, description: str = "", **limits: Any) -> Parameter:
    """An optional parameter. Without a default it may be null."""
    limited = _annotate(kind, "", limits)
    return Parameter(_annotate(limited if default is not None else limited | None, description, {}), default)


def record(**fields: Parameter) -> Any:
    """The type of an object with these fields."""
    return build_struct(f"record{next(_NUMBERS)}", fields)


def rows(**fields: Parameter) -> Any:
    """The type of a list of such objects."""
    return tuple[build_struct(f"row{next(_NUMBERS)}", fields), ...]


def _annotate(kind: Any, description: str, limits: dict[str, Any]) -> Any:
    """`kind` is a type, or the allowed texts: `a | b`."""
    if isinstance(kind, str):
        kind = Literal[tuple(kind.split(" | "))]
    if description:
        limits = {**limits, "description": description}
    return Annotated[kind, Meta(**limits)] if limits else kind


def build_struct(name: str, fields: Mapping[str, Parameter]) -> type[Struct]:
    """The typed arguments. `-i` becomes the attribute `i`, `from` becomes `from_`."""
    names = {_to_attribute(field): field for field in fields}
    return msgspec.defstruct(
        name,
        [
            (own, fields[field].kind) if fields[field].default is NODEFAULT else (own, *fields[field])
            for own, field in names.items()
        ],
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
        rename=names,
    )


def _to_attribute(field: str) -> str:
    name = field.lstrip("-").replace("-", "_")
    return f"{name}_" if iskeyword(name) else name
