"""Encoding and decoding of the wire types, and JSON that any program can read."""

from _thread import allocate_lock
from datetime import datetime
from typing import Annotated, Any, TypeVar, overload

import msgspec

# § [protocol.wire] The two ways a struct is spelled on the wire.

Json = Any
"""A JSON value. Its shape is the sender's; structs say what is known."""

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A moment with its offset from UTC, as RFC 3339 spells it."""


class Wire(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """Inside `data`, `meta`, arguments and `permission_request`: camelCase, absent when not given."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls and results: snake_case, every field always present."""


encode = msgspec.json.Encoder().encode
"""The one JSON encoder of the wire."""


# § [protocol.reading] Reads JSON, MessagePack and plain values as types of ours.  What msgspec has to know of a
# § type it finds out when the type is first used. Two threads that are first at the same time end the process with
# § a segmentation fault (seen with 0.22), so whoever is first does it behind a lock. Nobody else gives msgspec a
# § type to read: a test looks.

Kind = TypeVar("Kind")
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError)
"""What reading raises where the value is not of the type, whatever bytes, or other things, a damaged file gives."""

_FIRST = allocate_lock()  # threading would be loaded for it by all that reads settings
_json: dict[Any, msgspec.json.Decoder[Any]] = {}
_msgpack: dict[Any, msgspec.msgpack.Decoder[Any]] = {}


@overload
def get_json_decoder(kind: type[Kind]) -> msgspec.json.Decoder[Kind]: ...
@overload
def get_json_decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...
def get_json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    """The one that reads this type."""
    try:
        decoder = _json.get(kind)
    except TypeError:  # `Annotated` with something that has no hash: such a one is made anew each time
        with _FIRST:
            return msgspec.json.Decoder(kind)
    if decoder is None:
        with _FIRST:
            decoder = _json[kind] = msgspec.json.Decoder(kind)
    return decoder


@overload
def get_msgpack_decoder(kind: type[Kind]) -> msgspec.msgpack.Decoder[Kind]: ...
@overload
def get_msgpack_decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]: ...
def get_msgpack_decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """The one that reads this type."""
    decoder = _msgpack.get(kind)
    if decoder is None:
        with _FIRST:
            decoder = _msgpack[kind] = msgspec.msgpack.Decoder(kind)
    return decoder


@overload
def decode_json(data: bytes | str, kind: type[Kind]) -> Kind: ...
@overload
def decode_json(data: bytes | str, kind: Any) -> Any: ...
def decode_json(data: bytes | str, kind: Any) -> Any:
    """A value of this type; what msgspec raises, where it is none."""
    return get_json_decoder(kind).decode(data)


def decode_msgpack(data: bytes, kind: type[Kind]) -> Kind:
    """A value of this type; what msgspec raises, where it is none."""
    return get_msgpack_decoder(kind).decode(data)


def convert(value: object, kind: type[Kind]) -> Kind:
    """A value of this type, of what JSON could have brought; what msgspec raises, where it is none."""
    get_json_decoder(kind)
    return msgspec.convert(value, kind)


# § [protocol.plain] Makes anything a caller may hand in fit for the journal, without losing that it was there.

_MAX_LEVELS = 64
"""Levels of nesting that everything which reads a journal can take, however deep its own stack is."""
_MAX_ITEMS = 10_000


def sanitize_json(value: Any) -> tuple[Json, bool]:
    """The value itself where it is JSON, else the nearest JSON to it; and whether it was JSON."""
    try:
        # Two bytes a level: what is short cannot be deep.
        if len(encode(value)) <= 2 * _MAX_LEVELS or not _is_deeper(value, _MAX_LEVELS):
            return value, True
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    return _Copy().of(value, _MAX_LEVELS), False


def escape_surrogates(text: str) -> str:
    """The text with lone surrogates made visible, so that it can be written as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_deeper(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return False


class _Copy:
    """One copy in the making. It has room for so many items, so that what holds itself many times over has an end."""

    __slots__ = ("_room",)

    def __init__(self) -> None:
        self._room = _MAX_ITEMS

    def of(self, value: Any, depth: int) -> Json:
        if isinstance(value, dict | list | tuple):
            return self._items(value, depth - 1) if depth > 0 else "<too deep>"  # pyright: ignore[reportUnknownArgumentType]
        return _scalar(value)

    def _items(self, value: dict[Any, Any] | list[Any] | tuple[Any, ...], depth: int) -> Json:
        room = self._room
        self._room = max(0, room - len(value))
        if isinstance(value, dict):
            return {_key(key): self.of(item, depth) for key, item in list(value.items())[:room]}
        return [self.of(item, depth) for item in value[:room]]


def _key(key: Any) -> str:
    return str(_scalar(key))


def _scalar(value: Any) -> Json:
    """Of a subclass, what it stands for: the encoder takes only the types themselves."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return escape_surrogates(str.__str__(value))
    if isinstance(value, int):
        return int(value) if value.bit_length() < 64 else "<too large>"
    return float(value) if isinstance(value, float) else f"<{type(value).__name__}>"
