"""What a struct looks like on the wire: a row for each field, with its type in words and its docstring."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, cast, get_origin

import msgspec
from msgspec import NODEFAULT
from msgspec.inspect import (
    AnyType,
    BoolType,
    DateTimeType,
    DictType,
    Field,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    TupleType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

Name = Callable[[type], str]
"""How the page names a struct: a link to where it is described."""


class Row(NamedTuple):
    """One field."""

    name: str
    type: str
    required: str
    meaning: str


def rows(shape: Any, name: Name, *, without: type | None = None) -> list[Row]:
    """The fields of a struct, its tag first; `without` those it has from a base."""
    info = _info(shape)
    known = set[str](without.__struct_fields__) if without and issubclass(without, msgspec.Struct) else set[str]()
    meanings = _meanings(struct_of(shape))
    found = [_row(field, meanings.get(field.name, ""), name) for field in info.fields if field.name not in known]
    if info.tag is None or without:
        return found
    return [Row(str(info.tag_field), f"`{_json(info.tag)}`", "yes", "The kind of this type."), *found]


def parts(shape: Any) -> Iterator[type]:
    """The structs that the fields of a struct are made of, in order, not theirs."""
    for field in _info(shape).fields:
        yield from _structs(field.type)


def struct_of(shape: Any) -> type:
    """The class of a struct, whatever it is generic over."""
    return get_origin(shape) or shape


def _info(shape: Any) -> StructType:
    info = type_info(shape)
    if not isinstance(info, StructType):
        raise TypeError(f"{shape} is not a struct")
    return info


def _row(field: Field, meaning: str, name: Name) -> Row:
    kind = field.type
    if isinstance(kind, Metadata):
        extra = cast("dict[str, str]", kind.extra_json_schema or {})  # pyright: ignore[reportUnknownMemberType]
        meaning = extra.get("description", meaning)
    default = field.default if field.default is not NODEFAULT else None
    optional = f"no, `{_json(default)}`" if default not in (None, "", ()) else "no"
    return Row(field.encode_name, _words(kind, name), "yes" if field.required else optional, meaning)


_PLAIN: dict[type[Type], str] = {
    AnyType: "any JSON",
    BoolType: "boolean",
    DateTimeType: "time",
    DictType: "object",
    FloatType: "number",
    IntType: "integer",
    NoneType: "null",
    StrType: "string",
}


def _words(kind: Type, name: Name) -> str:  # noqa: PLR0911  a table of kinds
    match kind:
        case Metadata(type=inner):
            return _words(inner, name)
        case IntType(ge=low, le=high) if low is not None and high is not None:
            return f"integer, {low:,} to {high:,}"
        case LiteralType(values=values):
            return _choice(values)
        case UnionType(types=types):
            *others, last = (_words(one, name) for one in types)
            return f"{', '.join(others)}{';' if ' or ' in others[-1] else ''} or {last}"
        case VarTupleType(item_type=LiteralType(values=values)):
            return f"list, each {_choice(values)}"
        case VarTupleType(item_type=item) | ListType(item_type=item):
            return f"list of {_words(item, name)}"
        case TupleType(item_types=items):
            return f"[{', '.join(_words(item, name) for item in items)}]"
        case StructType(cls=cls):
            return name(struct_of(cls))
        case _:
            return _PLAIN[type(kind)]


def _choice(values: tuple[Any, ...]) -> str:
    if len(values) > 12:
        return "an [error code](#error-codes)"
    spelled = [f"`{value}`" for value in values]
    return spelled[0] if len(spelled) == 1 else f"{', '.join(spelled[:-1])} or {spelled[-1]}"


def _structs(kind: Type) -> Iterator[type]:
    match kind:
        case StructType(cls=cls):
            yield struct_of(cls)
        case UnionType(types=types):
            for one in types:
                yield from _structs(one)
        case VarTupleType(item_type=item) | ListType(item_type=item):
            yield from _structs(item)
        case _:
            pass


@cache
def _meanings(cls: type) -> dict[str, str]:
    """The string literals under the fields of a class and of its bases, by the name of the field."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, msgspec.Struct) and base.__module__.startswith("handrail"):
            found |= _docstrings(base)
    return found


def _docstrings(cls: type) -> dict[str, str]:
    tree = ast.parse(inspect.getsource(inspect.getmodule(cls) or cls))
    body = next(node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == cls.__name__)
    found: dict[str, str] = {}
    for node, after in pairwise(body):
        match node, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = re.sub(r"\bNone\b", "null", " ".join(text.split()))
            case _:
                pass
    return found


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
