"""A tool's parameters in one line, from the type of its arguments: what must be given, and what holds otherwise."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import msgspec
from msgspec import inspect

from handrail.protocol.tool_spec import ToolSpec

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}")
_MAX_ARGUMENT_NAMES = 12


def render_signature(spec: ToolSpec) -> str:
    """`read(path, offset=1, limit=2000 lines)`."""
    named = _of(spec.arguments) if spec.foreign is None else _of_schema(spec.foreign.input_schema)
    return f"{spec.name}({named})"


def _of_schema(schema: dict[str, Any]) -> str:
    """The names alone, and only such as are names: another server wrote them, and this stands in the prompt."""
    required = schema.get("required")
    needed = set(map(str, cast("list[Any]", required) if isinstance(required, list) else ()))
    every = [str(name) for name in schema["properties"]]
    names = sorted(filter(_NAME.fullmatch, every), key=lambda name: name not in needed)[:_MAX_ARGUMENT_NAMES]
    told = [name if name in needed else f"{name}?" for name in names]
    return ", ".join(told if len(names) == len(every) else [*told, "…"])


@lru_cache(maxsize=128)
def _of(arguments: type[msgspec.Struct]) -> str:
    return ", ".join(_parameters(inspect.type_info(arguments)))


def _parameters(kind: Any) -> list[str]:
    fields: list[inspect.Field] = sorted(kind.fields, key=lambda field: not field.required)
    return [_parameter(field) for field in fields]


def _parameter(field: inspect.Field) -> str:
    kind, extra = _bare(field.type)
    shape = _shape(kind)
    name = f"{field.encode_name}: {shape}" if shape else field.encode_name
    if field.required:
        return name
    default = extra.get("default", _default(field))
    if default is None or default is msgspec.UNSET:
        return f"{name}?"
    spelled = default if isinstance(default, str) and default else msgspec.json.encode(default).decode()
    return f"{name}={spelled}{' ' if 'unit' in extra else ''}{extra.get('unit', '')}"


def _default(field: inspect.Field) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        made: Callable[[], Any] = field.default_factory
        return made()
    return field.default


def _bare(kind: Any) -> tuple[Any, dict[str, Any]]:
    """The type itself, and what its annotations say for this place."""
    extra: dict[str, Any] = {}
    while isinstance(kind, inspect.Metadata):
        extra = {**(kind.extra or {}), **extra}  # pyright: ignore[reportUnknownMemberType]  msgspec leaves it open
        kind = kind.type
    return kind, extra


def _shape(kind: Any) -> str:
    """What has to be known to give a value at all: the choices, the fields of an entry."""
    kind = _bare(kind)[0]
    if isinstance(kind, inspect.UnionType):
        shapes = [shape for one in kind.types if (shape := _shape(one))]
        return shapes[0] if len(shapes) == 1 else ""
    if isinstance(kind, inspect.LiteralType):
        return "|".join(map(str, kind.values))
    if isinstance(kind, inspect.StructType):
        return f"{{{', '.join(_parameters(kind))}}}"
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        inner = _shape(kind.item_type)
        return f"[{inner}]" if inner else ""
    return ""
