"""Reads JSON, MessagePack and plain values as types of ours.

What msgspec has to know of a type it finds out when the type is first used. Two threads that are first at the same time
end the process with a segmentation fault (seen with 0.22), so whoever is first does it behind a lock. Nobody else gives
msgspec a type to read: a test looks.
"""

from _thread import allocate_lock
from typing import Any, TypeVar, overload

import msgspec

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
