"""Reads a settings file."""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import msgspec

from handrail.protocol.text import truncate
from handrail.settings.errors import MAX_SHOWN_CHARACTERS, SettingsError, find_key_lines, find_lines_below, quote_path
from handrail.settings.model import find_invalid_values, flatten
from handrail.settings.sources import Layer

if TYPE_CHECKING:
    from handrail.policy.config import Rule
    from handrail.settings.mcp_servers import ServerTable


# § [settings.document] One settings file: from bytes to tables and the text they came from.

_MAX_FILE_BYTES = 1024 * 1024
_AT = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)\Z", re.DOTALL)
# tomllib takes minutes for one key of 100,000 parts; no setting has more than two.
_DEEP_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){32}""",
    re.ASCII,
)


_ADVICE = {
    "user": "Correct the file, or name another one in HANDRAIL_CONFIG, then try again.",
    "project": "Correct the file, or remove it, then try again.",
    "managed": "Whoever manages this machine has to correct the file.",
}
FileKind = Literal["managed", "user", "project"]


class File(msgspec.Struct, frozen=True):
    """A settings file, and whose it is."""

    path: str
    kind: FileKind


class Document(msgspec.Struct, frozen=True):
    """A file that is TOML; nothing is said yet about its keys."""

    content: bytes
    text: str
    tables: dict[str, Any]


def read_document(file: File) -> Document:
    """The file's tables; anything but a readable TOML file is a SettingsError."""
    content = read_bytes(file)
    text = _decode(file, content)
    return Document(content, text, _parse(file, text))


def refuse(file: File, *problems: str) -> NoReturn:
    """Raise for a file that cannot be used."""
    headline = f"The {file.kind if file.kind != 'user' else 'settings'} file {quote_path(file.path)} cannot be used"
    raise SettingsError(headline, problems, f"Nothing was run. {_ADVICE[file.kind]}")


def read_bytes(file: File) -> bytes:
    """What is in it; a SettingsError where it is no regular file, cannot be read, or is too large."""
    # Without O_NONBLOCK a FIFO would hang here until somebody writes to it.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if file.kind == "project":
        flags |= os.O_NOFOLLOW  # a link in a project leads wherever its author likes, and can lead elsewhere tomorrow
    try:
        descriptor = os.open(file.path, flags)
        try:
            return _content(file, descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        if flags & os.O_NOFOLLOW and os.path.islink(file.path):
            refuse(file, "it is a link; a project's settings are read from a regular file only")
        refuse(file, f"it cannot be read: {_reason(error)}")


def _content(file: File, descriptor: int) -> bytes:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        refuse(file, "it is not a regular file")
    with open(descriptor, "rb", closefd=False) as stream:
        content = stream.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        refuse(file, "it is larger than 1 MiB")
    return content


def _reason(error: OSError | ValueError) -> str:
    """The system's words without the path, which is in the headline."""
    return (error.strerror if isinstance(error, OSError) else None) or truncate(str(error), MAX_SHOWN_CHARACTERS)


def _decode(file: File, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        refuse(file, f"line {line}: byte 0x{content[error.start]:02x} is not UTF-8")


def _parse(file: File, text: str) -> dict[str, Any]:
    if deep := _DEEP_KEY.search(text):
        refuse(file, f"line {text.count(chr(10), 0, deep.start()) + 1}: a name of more than 32 parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        refuse(file, "its values are nested too deeply")
    except ValueError as error:  # TOMLDecodeError, or an integer with too many digits
        refuse(file, _located(str(error), text))


def _located(message: str, text: str) -> str:
    """The parser's message with line and column in front, the end of the document included."""
    found = _AT.match(message)
    if not found:
        return f"not TOML: {truncate(message, MAX_SHOWN_CHARACTERS)}"
    line = found[2] or text.count("\n") + 1
    column = found[3] or len(text) - text.rfind("\n")
    return f"line {line}, column {column}: not TOML: {truncate(found[1], MAX_SHOWN_CHARACTERS)}"


# § [settings.reading] Reads one settings file as a layer: all its keys known, all its values allowed.


def read_layer(path: str, kind: FileKind) -> tuple[Layer, str]:
    """The layer and the SHA-256 of the file; a SettingsError with all that is wrong with it."""
    file = File(path, kind)
    document = read_document(file)
    tables = dict(document.tables)
    rules, problems = _rules(tables.pop("rule"), kind, document.text) if "rule" in tables else ((), [])
    servers, wrong = _servers(tables, document.text)
    values = flatten(tables)
    if problems := [*_described(find_invalid_values(values), document.text), *problems, *wrong]:
        refuse(file, *problems)
    layer = Layer(
        kind=kind,
        source=f"{kind} file {quote_path(path)}",
        values=values,
        rules=rules,
        servers=servers,
        lines={**find_key_lines(document.text), **_server_lines(document.text)},
    )
    return layer, sha256(document.content).hexdigest()


def _rules(tables: object, kind: FileKind, text: str) -> "tuple[tuple[Rule, ...], list[str]]":
    from handrail.settings.rules import parse_rules  # noqa: PLC0415 - only where there are rules

    return parse_rules(tables, kind, text)


def _servers(tables: dict[str, Any], text: str) -> "tuple[Mapping[str, ServerTable] | None, list[str]]":
    """Takes them out of the tables: they are no setting, but any number of things."""
    section: object = tables.get("mcp")
    if not isinstance(section, dict) or "servers" not in section:
        return None, []
    from handrail.settings.mcp_servers import parse_servers  # noqa: PLC0415 - only where there are servers

    rest: dict[str, Any] = dict(section)  # pyright: ignore[reportUnknownArgumentType]
    written: object = rest.pop("servers")
    tables["mcp"] = rest
    return parse_servers(written, find_lines_below(text, "mcp.servers"))


def _server_lines(text: str) -> dict[str, int]:
    return {f"mcp.servers.{name}": line for name, line in find_lines_below(text, "mcp.servers").items()}


def _described(wrong: Mapping[str, object], text: str) -> list[str]:
    if not wrong:
        return []
    from handrail.settings.errors import describe_refused  # noqa: PLC0415 - only for an error

    return describe_refused(wrong, text)
