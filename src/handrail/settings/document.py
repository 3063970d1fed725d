"""One settings file: from bytes to tables and the text they came from."""

import os
import re
import stat
import tomllib
from typing import Any, NoReturn

import msgspec

from handrail.settings.errors import SettingsError, clip, shown_path

_LARGEST_BYTES = 1024 * 1024
_AT = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)\Z", re.DOTALL)
# tomllib takes minutes for one key of 100,000 parts; no setting has more than two.
_DEEP_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){32}""",
    re.ASCII,
)


class Document(msgspec.Struct, frozen=True):
    """A file that is TOML; nothing is said yet about its keys."""

    text: str
    tables: dict[str, Any]


def read_document(path: str) -> Document:
    """The file's tables; anything but a readable TOML file is a SettingsError."""
    text = _decode(path, _read_bytes(path))
    return Document(text, _parse(path, text))


def refuse(path: str, *problems: str) -> NoReturn:
    """Raise for a file that cannot be used."""
    raise SettingsError(
        f"The settings file {shown_path(path)} cannot be used",
        problems,
        "Nothing was run. Correct the file, or name another one in HANDRAIL_CONFIG, then try again.",
    )


def _read_bytes(path: str) -> bytes:
    try:
        # Without O_NONBLOCK a FIFO would hang here until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return _content(path, descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        refuse(path, f"it cannot be read: {_reason(error)}")


def _content(path: str, descriptor: int) -> bytes:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        refuse(path, "it is not a regular file")
    with open(descriptor, "rb", closefd=False) as file:
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        refuse(path, "it is larger than 1 MiB")
    return content


def _reason(error: OSError | ValueError) -> str:
    """The system's words without the path, which is in the headline."""
    return (error.strerror if isinstance(error, OSError) else None) or clip(str(error))


def _decode(path: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        refuse(path, f"line {line}: byte 0x{content[error.start]:02x} is not UTF-8")


def _parse(path: str, text: str) -> dict[str, Any]:
    if deep := _DEEP_KEY.search(text):
        refuse(path, f"line {text.count(chr(10), 0, deep.start()) + 1}: a name of more than 32 parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        refuse(path, "its values are nested too deeply")
    except ValueError as error:  # TOMLDecodeError, or an integer with too many digits
        refuse(path, _located(str(error), text))


def _located(message: str, text: str) -> str:
    """The parser's message with line and column in front, the end of the document included."""
    found = _AT.match(message)
    if not found:
        return f"not TOML: {clip(message)}"
    line = found[2] or text.count("\n") + 1
    column = found[3] or len(text) - text.rfind("\n")
    return f"line {line}, column {column}: not TOML: {clip(found[1])}"
