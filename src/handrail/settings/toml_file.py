"""A settings file in TOML: its values, rules, servers, line numbers."""

import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, cast

import msgspec

from handrail.policy.config import Rule, RuleLayer
from handrail.protocol.decisions import Verdict
from handrail.protocol.digest import sha256
from handrail.protocol.text import truncate
from handrail.protocol.wire import convert
from handrail.settings.declaration import Field, Section, list_fields
from handrail.settings.errors import (
    MAX_SHOWN_CHARACTERS,
    SettingsError,
    describe_refused,
    find_invalid_values,
    format_line,
    is_convertible,
    list_first_problems,
    quote_key,
    quote_path,
    suggest_key,
    truncate_repr,
)
from handrail.settings.merge import Layer
from handrail.settings.model import DEFAULTS, Settings

if TYPE_CHECKING:
    from handrail.settings.mcp_servers import ServerTable

_MAX_FILE_BYTES = 1024 * 1024
_LOCATION = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)\Z", re.DOTALL)
# tomllib takes minutes for a key of 100,000 parts. No setting has more than two.
_DEEP_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[A-Za-z0-9_-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){32}""",
    re.ASCII,
)
_NAME = r"([A-Za-z0-9_.-]++)"
_HEADER = re.compile(rf"[ \t]*+\[\[?[ \t]*+{_NAME}[ \t]*+\]")
_ASSIGNMENT = re.compile(rf"[ \t]*+{_NAME}[ \t]*+=")
_ADVICE = {
    "user": "Correct the file, or set HANDRAIL_CONFIG to another one.",
    "project": "Correct or remove the file.",
    "managed": "The administrator of this machine has to correct the file.",
}
_FileLayerKind = Literal["managed", "user", "project"]


class SettingsFile(msgspec.Struct, frozen=True):
    """A settings file and the layer that it belongs to."""

    path: str
    kind: _FileLayerKind


def read_layer(path: str, kind: _FileLayerKind) -> tuple[Layer, str]:
    """The layer and the SHA-256 of the file. SettingsError: everything that is wrong with it."""
    file = SettingsFile(path, kind)
    content = read_bytes(file)
    text = _decode(file, content)
    tables = _parse(file, text)
    lines = _find_key_lines(text)
    rules, rule_problems = parse_rules(tables.pop("rule", []), kind, text)
    rule_lines = [keys.get("") for keys in find_table_lines(text, "rule", len(rules))]
    server_lines = _find_server_lines(text)
    servers, server_problems = _take_servers(tables, server_lines)
    values = _flatten(tables)
    if problems := [*describe_refused(find_invalid_values(values), lines), *rule_problems, *server_problems]:
        _refuse(file, *problems)
    layer = Layer(
        kind=kind,
        source=f"{kind} file {quote_path(path)}",
        values=values,
        rules=rules,
        servers=servers,
        lines={
            **lines,
            **{f"rule.{rule.id}": line for rule, line in zip(rules, rule_lines, strict=True) if line},
            **{f"mcp.servers.{name}": line for name, line in server_lines.items()},
        },
    )
    return layer, sha256(content).hexdigest()


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
    headline = f"The {file.kind if file.kind != 'user' else 'settings'} file {quote_path(file.path)} cannot be used"
    raise SettingsError(
        headline, problems, f"Nothing was run. {_ADVICE[file.kind]}", f"${{EDITOR:-vi}} {quote_path(file.path)}"
    )


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
            _refuse(file, "it is a link; project settings must be a regular file")
        reason = error.strerror if isinstance(error, OSError) else None  # without the path, which is in the headline
        _refuse(file, f"it cannot be read: {reason or truncate(str(error), MAX_SHOWN_CHARACTERS)}")


def _read_descriptor(file: SettingsFile, descriptor: int) -> bytes:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        _refuse(file, "it is not a regular file")
    with open(descriptor, "rb", closefd=False) as stream:
        content = stream.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        _refuse(file, "it is larger than 1 MiB")
    return content


def _decode(file: SettingsFile, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        _refuse(file, f"line {line}: byte 0x{content[error.start]:02x} is not UTF-8")


def _parse(file: SettingsFile, text: str) -> dict[str, Any]:
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


_MAX_RULES = 200  # each is compared with every other one at load
_VERDICTS: dict[str, Verdict] = {"allow": "allow", "ask": "confirm", "deny": "deny"}
_LocatedTables = list[tuple[dict[str, Any], dict[str, int]]]
"""Each table with the lines of its keys."""

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Pattern = Annotated[_Text | None, Field(allowed="one non-empty string; a second pattern needs a second rule")]
_Examples = Annotated[tuple[_Text, ...], Field(allowed="a list of strings")]


class RuleTable(Section, frozen=True, kw_only=True):
    """A rule in a file. It has exactly one of allow, ask and deny."""

    # Without a dot: ids of built-in rules have one, so the two cannot be confused.
    id: Annotated[
        str,
        msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z"),
        Field("The name of the rule in decisions."),
        Field(allowed="letters, digits, - and _, at most 64, beginning with a letter or digit"),
    ]
    allow: Annotated[
        _Pattern, Field("Commands by their first words, or paths by a pattern, that run without approval.")
    ] = None
    ask: Annotated[_Pattern, Field("Commands or paths that need approval in every mode.")] = None
    deny: Annotated[_Pattern, Field("Commands or paths that are denied.")] = None
    tool: Annotated[
        _Text,
        Field("The tool that the rule is about, or * for every tool but exec; without it, exec."),
        Field(allowed="the name of a tool"),
    ] = "exec"
    because: Annotated[str, Field("The reason that the decision shows.", allowed="a text")] = ""
    match: Annotated[_Examples, Field("Commands or paths that the rule must be about; checked at load.")] = ()
    no_match: Annotated[_Examples, Field("Commands or paths that it must not be about; checked at load.")] = ()
    any_args: Annotated[bool, Field("Whether an allowed command may have any arguments.")] = False


RULE = list_fields(RuleTable)


def parse_rules(tables: object, layer: RuleLayer, text: str) -> tuple[tuple[Rule, ...], list[str]]:
    """The rules, or all their problems in words. `text` is the file, for line numbers."""
    if not _are_tables(tables):
        return (), [f"rule is {truncate_repr(tables)}; allowed: tables, each written [[rule]]"]
    written = cast("list[dict[str, Any]]", tables)
    if len(written) > _MAX_RULES:
        return (), [f"there are {len(written):,} rules; allowed: at most {_MAX_RULES}"]
    located = list(zip(written, find_table_lines(text, "rule", len(written)), strict=True))
    if problems := list_first_problems(chain(_list_problems(located), _list_repeated_ids(located))):
        return (), problems
    return tuple(_build_rule(table, layer, lines.get("")) for table, lines in located), []


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in cast("list[object]", value))


def _build_rule(table: Mapping[str, Any], layer: RuleLayer, line: int | None) -> Rule:
    written = convert(table, RuleTable)
    (verdict,) = _list_verdicts(table)
    return Rule(
        id=written.id,
        verdict=_VERDICTS[verdict],
        pattern=table[verdict],
        tool=written.tool,
        because=written.because,
        match=written.match,
        no_match=written.no_match,
        any_args=written.any_args,
        layer=layer,
        source=f"{layer}:{line}" if line else layer,
    )


def _list_problems(located: _LocatedTables) -> Iterator[str]:
    for number, (table, lines) in enumerate(located, start=1):
        place = format_line(lines.get("")) or f"rule {number}: "
        for key, value in table.items():
            if problem := _find_problem(key, value):
                yield (format_line(lines.get(key)) or place) + problem
        if "id" not in table:
            yield f"{place}the rule has no id"
        if len(verdicts := _list_verdicts(table)) != 1:
            yield f"{place}the rule says {' and '.join(verdicts) or 'nothing'}; allowed: one of allow, ask, deny"


def _find_problem(key: str, value: object) -> str | None:
    if key not in RULE:
        return f"{quote_key(key)} is not a key of a rule; {suggest_key(key, RULE)}"
    if is_convertible({"id": "a", key: value}, RuleTable):
        return None
    return f"{key} is {truncate_repr(value)}; allowed: {RULE[key].allowed}"


def _list_repeated_ids(located: _LocatedTables) -> Iterator[str]:
    first: dict[str, int] = {}
    for number, (table, lines) in enumerate(located, start=1):
        name: object = table.get("id")
        if isinstance(name, str) and first.setdefault(name, number) != number:
            place = format_line(lines.get("id")) or f"rule {number}: "
            yield f"{place}another rule has the id {truncate_repr(name)}"


def _list_verdicts(table: Mapping[str, object]) -> list[str]:
    return [verdict for verdict in _VERDICTS if verdict in table]


def _find_key_lines(text: str) -> dict[str, int]:
    """The line of each dotted key in a TOML text, if it is certain. tomllib does not tell."""
    lines: dict[str, int] = {}
    for number, name in _list_places(text):
        # A problem is reported by section or by setting, so two parts are enough.
        section, *rest = name.split(".", 2)
        lines.setdefault(section, number)
        if rest:
            lines.setdefault(f"{section}.{rest[0]}", number)
    return lines


def find_table_lines(text: str, array: str, count: int) -> list[dict[str, int]]:
    """For each of the `count` tables `[[array]]`, the line of each of its keys. `""` has that of the table."""
    tables: list[dict[str, int]] = []
    for number, name in _list_places(text):
        first, _, rest = name.partition(".")
        if name == array:
            tables.append({"": number})
        elif first == array and tables:
            tables[-1].setdefault(rest.partition(".")[0], number)
    if len(tables) == count:
        return tables
    line = _find_key_lines(text).get(array)  # written as a list, or not all in the usual form
    return [{"": line} if line else {} for _ in range(count)]


def _find_server_lines(text: str) -> dict[str, int]:
    """The first line of each server."""
    lines: dict[str, int] = {}
    for number, name in _list_places(text):
        if name.startswith("mcp.servers."):
            lines.setdefault(name.split(".")[2], number)
    return lines


def _list_places(text: str) -> list[tuple[int, str]]:
    """The line and the dotted name of every header and every assignment."""
    if '"""' in text or "'''" in text:  # a line inside such a string can look like a key
        return []
    places: list[tuple[int, str]] = []
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            places.append((number, header[1]))
            table = f"{header[1]}."
        elif assignment := _ASSIGNMENT.match(line):
            places.append((number, table + assignment[1]))
    return places
