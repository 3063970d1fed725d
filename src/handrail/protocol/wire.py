"""The codec of wire types.

Every room imports this module, so it must stay light.
"""

from _thread import allocate_lock
from datetime import datetime
from typing import Annotated, Any, TypeVar, cast, overload

import msgspec

Json = Any
"""A JSON value. Its shape is the sender's."""

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its offset from UTC, as in RFC 3339."""


class Wire(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    """Inside `data`, `meta`, arguments and `permission_request`: camelCase, defaults are omitted."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls and results: snake_case, every field is present."""


encode = msgspec.json.Encoder().encode
"""The JSON encoder of the wire."""

_Kind = TypeVar("_Kind")
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, TypeError, RecursionError)
"""The exceptions of decoding, also for a damaged file."""

# msgspec inspects a type when it first decodes it. If two threads do so at once, the process dies with a segmentation
# fault (seen with 0.22). So every decoder is created here, behind a lock. A test checks that no other module does it.
_LOCK = allocate_lock()  # not from threading, which would slow down the start
_json_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_msgpack_decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {}


@overload
def get_json_decoder(kind: type[_Kind]) -> msgspec.json.Decoder[_Kind]: ...
@overload
def get_json_decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...
def get_json_decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    try:
        decoder = _json_decoders.get(kind)
    except TypeError:  # `Annotated` with metadata that has no hash: no cache
        with _LOCK:
            return msgspec.json.Decoder(kind)
    if decoder is None:
        with _LOCK:
            decoder = _json_decoders[kind] = msgspec.json.Decoder(kind)
    return decoder


def get_msgpack_decoder(kind: type[_Kind]) -> msgspec.msgpack.Decoder[_Kind]:
    decoder = _msgpack_decoders.get(kind)
    if decoder is None:
        with _LOCK:
            decoder = _msgpack_decoders[kind] = msgspec.msgpack.Decoder(kind)
    return decoder


@overload
def decode_json(data: bytes | str, kind: type[_Kind]) -> _Kind: ...
@overload
def decode_json(data: bytes | str, kind: Any) -> Any: ...
def decode_json(data: bytes | str, kind: Any) -> Any:
    """A value of this type. msgspec's exceptions pass through."""
    return get_json_decoder(kind).decode(data)


def decode_msgpack(data: bytes, kind: type[_Kind]) -> _Kind:
    """A value of this type. msgspec's exceptions pass through."""
    return get_msgpack_decoder(kind).decode(data)


def convert(value: object, kind: type[_Kind], *, strict: bool = True) -> _Kind:
    """A value of this type from decoded JSON. msgspec's exceptions pass through. `strict`: a text is no number."""
    get_json_decoder(kind)
    return msgspec.convert(value, kind, strict=strict)


_MAX_LEVELS = 64
"""Every reader of a journal can take this nesting, however deep its own stack is."""
_MAX_ITEMS = 10_000


def sanitize_json(value: Any) -> tuple[Json, bool]:
    """The value if it is JSON that the journal takes, else a JSON approximation. The flag says whether it was."""
    try:
        # A level takes two bytes, so a short value cannot be deep.
        if len(encode(value)) <= 2 * _MAX_LEVELS or not _is_deeper(value, _MAX_LEVELS):
            return value, True
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass
    return _JsonCopy().copy(value, _MAX_LEVELS), False


def escape_surrogates(text: str) -> str:
    """The text with lone surrogates escaped, so that it can be encoded as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _is_deeper(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple):
        return depth == 0 or any(_is_deeper(item, depth - 1) for item in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return False


class _JsonCopy:
    """A copy with a bound on its items, so that a value which contains itself many times has an end."""

    __slots__ = ("_room",)

    def __init__(self) -> None:
        self._room = _MAX_ITEMS

    def copy(self, value: Any, depth: int) -> Json:
        if isinstance(value, dict | list | tuple):
            return self._copy_items(value, depth - 1) if depth > 0 else "<too deep>"  # pyright: ignore[reportUnknownArgumentType]
        return _copy_scalar(value)

    def _copy_items(self, value: dict[Any, Any] | list[Any] | tuple[Any, ...], depth: int) -> Json:
        room = self._room
        self._room = max(0, room - len(value))
        if isinstance(value, dict):
            return {str(_copy_scalar(key)): self.copy(item, depth) for key, item in list(value.items())[:room]}
        return [self.copy(item, depth) for item in value[:room]]


def _copy_scalar(value: Any) -> Json:
    """A plain JSON scalar. The encoder rejects subclasses of str, int and float."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return escape_surrogates(str.__str__(value))
    if isinstance(value, int):
        return int(value) if value.bit_length() < 64 else "<too large>"
    return float(value) if isinstance(value, float) else f"<{type(value).__name__}>"


def to_dict(value: object) -> dict[str, Any]:
    """A value of the wire as a dictionary. Empty if it is none."""
    plain = msgspec.to_builtins(value)
    return cast("dict[str, Any]", plain) if isinstance(plain, dict) else {}
