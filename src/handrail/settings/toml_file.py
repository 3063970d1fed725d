"""Reads a settings file."""

import os
import re
import stat
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

import msgspec

from handrail.protocol.text import truncate
from handrail.settings.errors import (
    MAX_SHOWN_CHARACTERS,
    SettingsError,
    describe_refused,
    find_key_lines,
    find_lines_below,
    find_table_lines,
    quote_path,
    truncate_repr,
)
from handrail.settings.merge import Layer
from handrail.settings.model import DEFAULTS, Settings, find_invalid_values

if TYPE_CHECKING:
    from handrail.policy.config import Rule
    from handrail.settings.mcp_servers import ServerTable

_MAX_FILE_BYTES = 1024 * 1024
_LOCATION = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)\Z", re.DOTALL)
# tomllib takes minutes for a key of 100,000 parts. No setting has more than two.
_DEEP_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){32}""",
    re.ASCII,
)
_ADVICE = {
    "user": "Correct the file, or name another one in HANDRAIL_CONFIG, then try again.",
    "project": "Correct the file, or remove it, then try again.",
    "managed": "Whoever manages this machine has to correct the file.",
}
_FileLayerKind = Literal["managed", "user", "project"]


class SettingsFile(msgspec.Struct, frozen=True):
    """A settings file and the layer that it belongs to."""

    path: str
    kind: _FileLayerKind


def read_layer(path: str, kind: _FileLayerKind) -> tuple[Layer, str]:
    """The layer and the SHA-256 of the file. SettingsError: everything that is wrong with it."""
    from hashlib import sha256  # noqa: PLC0415  many have no file

    file = SettingsFile(path, kind)
    content = read_bytes(file)
    text = _decode(file, content)
    tables = _parse(file, text)
    rules, rule_problems = _take_rules(tables, kind, text)
    rule_lines = [keys.get("") for keys in find_table_lines(text, "rule", len(rules))]
    server_lines = find_lines_below(text, "mcp.servers")
    servers, server_problems = _take_servers(tables, server_lines)
    values = _flatten(tables)
    if problems := [*describe_refused(find_invalid_values(values), text), *rule_problems, *server_problems]:
        _refuse(file, *problems)
    layer = Layer(
        kind=kind,
        source=f"{kind} file {quote_path(path)}",
        values=values,
        rules=rules,
        servers=servers,
        lines={
            **find_key_lines(text),
            **{f"rule.{rule.id}": line for rule, line in zip(rules, rule_lines, strict=True) if line},
            **{f"mcp.servers.{name}": line for name, line in server_lines.items()},
        },
    )
    return layer, sha256(content).hexdigest()


def _take_rules(tables: dict[str, Any], kind: _FileLayerKind, text: str) -> "tuple[tuple[Rule, ...], list[str]]":
    if "rule" not in tables:
        return (), []
    from handrail.settings.rules import parse_rules  # noqa: PLC0415  few files have rules

    return parse_rules(tables.pop("rule"), kind, text)


def _take_servers(
    tables: dict[str, Any], lines: Mapping[str, int]
) -> "tuple[Mapping[str, ServerTable] | None, list[str]]":
    section: object = tables.get("mcp")
    if not isinstance(section, dict) or "servers" not in section:
        return None, []
    from handrail.settings.mcp_servers import parse_servers  # noqa: PLC0415  few files have servers

    rest: dict[str, Any] = dict(section)  # pyright: ignore[reportUnknownArgumentType]
    written: object = rest.pop("servers")
    tables["mcp"] = rest
    return parse_servers(written, lines)


def _flatten(tables: Mapping[str, Any]) -> dict[str, object]:
    """The values of a document by dotted key. A table that is no section stays a value."""
    values: dict[str, object] = {}
    for name, value in tables.items():
        if name in Settings.__struct_fields__ and name not in DEFAULTS and isinstance(value, dict):
            table = cast("dict[str, object]", value)
            values.update((f"{name}.{_escape_key(leaf)}", inner) for leaf, inner in table.items())
        else:
            values[_escape_key(name)] = value
    return values


def _escape_key(name: str) -> str:
    """A quoted key may hold anything: a dot that is no separator, an escape sequence."""
    plain = name.isascii() and name.replace("-", "_").isidentifier()
    return name if plain else truncate_repr(name)


def _refuse(file: SettingsFile, *problems: str) -> NoReturn:
    """Raise the SettingsError for a file that cannot be used."""
    headline = f"The {file.kind if file.kind != 'user' else 'settings'} file {quote_path(file.path)} cannot be used"
    raise SettingsError(headline, problems, f"Nothing was run. {_ADVICE[file.kind]}")


def read_bytes(file: SettingsFile) -> bytes:
    """The content. SettingsError: it is no regular file, cannot be read, or is too large."""
    # Without O_NONBLOCK, opening a FIFO waits for a writer.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if file.kind == "project":
        flags |= os.O_NOFOLLOW  # a link in a project leads wherever its author likes
    try:
        descriptor = os.open(file.path, flags)
        try:
            return _read_descriptor(file, descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        if flags & os.O_NOFOLLOW and os.path.islink(file.path):
            _refuse(file, "it is a link; a project's settings are read from a regular file only")
        _refuse(file, f"it cannot be read: {_describe_cause(error)}")


def _read_descriptor(file: SettingsFile, descriptor: int) -> bytes:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        _refuse(file, "it is not a regular file")
    with open(descriptor, "rb", closefd=False) as stream:
        content = stream.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        _refuse(file, "it is larger than 1 MiB")
    return content


def _describe_cause(error: OSError | ValueError) -> str:
    """Without the path, which is in the headline."""
    return (error.strerror if isinstance(error, OSError) else None) or truncate(str(error), MAX_SHOWN_CHARACTERS)


def _decode(file: SettingsFile, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        _refuse(file, f"line {line}: byte 0x{content[error.start]:02x} is not UTF-8")


def _parse(file: SettingsFile, text: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415  many have no file

    if deep := _DEEP_KEY.search(text):
        _refuse(file, f"line {text.count(chr(10), 0, deep.start()) + 1}: a name of more than 32 parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        _refuse(file, "its values are nested too deeply")
    except ValueError as error:  # TOMLDecodeError, or an integer with too many digits
        _refuse(file, _locate(str(error), text))


def _locate(message: str, text: str) -> str:
    """The parser's message after line and column, also of the end of the document."""
    location = _LOCATION.match(message)
    if not location:
        return f"not TOML: {truncate(message, MAX_SHOWN_CHARACTERS)}"
    line = location[2] or text.count("\n") + 1
    column = location[3] or len(text) - text.rfind("\n")
    return f"line {line}, column {column}: not TOML: {truncate(location[1], MAX_SHOWN_CHARACTERS)}"
