"""Tables of MCP servers in a settings file: `[mcp.servers.NAME]`."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import msgspec

from handrail.policy.secrets import is_random_value, is_secret_name, is_secret_value
from handrail.protocol.text import escape_unprintable
from handrail.protocol.tool_spec import OWN_SERVER
from handrail.protocol.wire import convert
from handrail.settings.declaration import Field, Section, declare_time, list_fields
from handrail.settings.errors import (
    format_line,
    is_convertible,
    list_first_problems,
    quote_key,
    suggest_key,
    truncate_repr,
)
from handrail.settings.model import Variable
from handrail.settings.units import Time

MAX_SERVERS = 64
_MAX_COMMAND_CHARS = 500
_HIDDEN = "…"
_SECRET_KEYS = frozenset({"env", "headers", "args", "url", "command"})
"""Messages about these never show the value, which may hold a secret."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,47}(?<!_)")
_ALLOWED_NAMES = (
    "at most 48 letters, digits, - and single _, first a letter or digit, last not _. The name handrail is reserved"
)
_OWNERS = {"args": "command", "env": "command", "cwd": "command", "headers": "url"}
"""Keys that only make sense beside another one."""
_SHELL_SYNTAX = re.compile(r"[;&|<>(){}$`\n]")
_TOKEN = re.compile(r"""(?:(?:bearer|basic)\s+)?[^\s;&|<>(){}$`'"\\]+""", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=8_192, pattern=r"\A[^\0]*\Z")]
Value = Annotated[str, msgspec.Meta(max_length=65_536, pattern=r"\A[^\0]*\Z")]
_Header = Annotated[str, msgspec.Meta(pattern=r"\A[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}\Z")]
_HeaderValue = Annotated[str, msgspec.Meta(max_length=8_192, pattern=r"\A[^\0\r\n]*\Z")]


class ServerTable(Section, frozen=True, kw_only=True):
    """One server. Without `command` and `url` the table extends the server of that name in .mcp.json."""

    command: Annotated[
        Text | None,
        Field("The program of the server; handrail starts it in a sandbox."),
        Field(allowed="a non-empty string"),
    ] = None
    args: Annotated[tuple[Value, ...], Field("Its arguments.", allowed="a list of strings")] = ()
    env: Annotated[
        Mapping[Variable, Value],
        Field("Variables of the server besides those of commands; ${NAME} and ${NAME:-else} insert your own."),
        Field(allowed="a table of names of variables and texts"),
    ] = {}
    cwd: Annotated[
        Text | None,
        Field(
            "The folder that the server starts in: the workspace, or a folder in it.",
            allowed="a folder in the workspace",
        ),
    ] = None
    url: Annotated[
        Text | None,
        Field("The address of a remote server.", allowed="an https address, or http on this machine"),
    ] = None
    headers: Annotated[
        Mapping[_Header, _HeaderValue],
        Field(
            "The headers of every request to the server.", allowed="a table of names of headers and texts of one line"
        ),
    ] = {}
    network: Annotated[
        tuple[str, ...],
        Field("Hosts that a local server may reach; all others are blocked."),
        Field(allowed='a list such as "api.github.com:443" or "*.example.org"; the default ports are 80 and 443'),
    ] = ()
    writable: Annotated[bool, Field("Whether the server may change the workspace.")] = False
    read_only: Annotated[
        tuple[Text, ...],
        Field("Tools of the server that you declare read-only; the server's own claim does not count."),
        Field(allowed="a list of tool names of the server; get_* stands for several"),
    ] = ()
    hints: Annotated[bool, Field("Whether to trust the server's own claim that a tool is read-only.")] = False
    timeout: Annotated[Time, declare_time("The time limit of a call.", "100 ms", "1 h", '"60s"')] = "60s"
    enabled: Annotated[bool, Field("Whether the server is used.")] = True

    def __post_init__(self) -> None:
        """ValueError: an entry of `network` names no host, or `timeout` is out of its range."""
        Section.__post_init__(self)
        if self.network:
            from handrail.policy.network.allowlist import Allowlist  # noqa: PLC0415  few list hosts

            Allowlist.from_entries(self.network)

    @property
    def is_extension(self) -> bool:
        """Whether it only says what the server of .mcp.json may do."""
        return self.command is None and self.url is None


SERVER = list_fields(ServerTable)


def is_server_name(name: str) -> bool:
    """Whether a server may have this name. Tools of a server called handrail would pass for ours."""
    return _NAME.fullmatch(name) is not None and name.casefold() != OWN_SERVER


def parse_servers(tables: object, lines: Mapping[str, int]) -> tuple[dict[str, ServerTable], list[str]]:
    """The servers by name, or everything that is wrong with them in words. `lines` has the line of each server."""
    if not isinstance(tables, dict):
        return {}, [f"mcp.servers is {truncate_repr(tables)}; allowed: tables, each written [mcp.servers.NAME]"]
    written = cast("dict[str, object]", tables)
    if len(written) > MAX_SERVERS:
        return {}, [f"there are {len(written):,} servers; allowed: at most {MAX_SERVERS}"]
    found = (
        format_line(lines.get(name)) + problem
        for name, table in written.items()
        for problem in list_server_problems(name, table)
    )
    if problems := list_first_problems(found):
        return {}, problems
    return {name: convert(table, ServerTable) for name, table in written.items()}, []


def list_server_problems(name: str, table: object) -> Iterator[str]:
    """Sentences about the faults of a server. They show no value that may be a secret."""
    if problem := find_name_problem(name):
        yield problem
    elif not isinstance(table, dict):
        yield f"mcp.servers.{name} is not a table; write [mcp.servers.{name}]"
    else:
        for key, problem in list_table_problems(cast("dict[str, Any]", table)):
            yield f"mcp.servers.{name}{f'.{key}' if key else ''} {problem}"


def find_name_problem(name: str) -> str | None:
    return None if is_server_name(name) else f"a server is named {truncate_repr(name)}; allowed: {_ALLOWED_NAMES}"


def list_table_problems(table: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The keys that are wrong, each with the rest of the sentence. The key is empty for the table as a whole."""
    for key, value in table.items():
        if key not in SERVER:
            yield quote_key(key), f"is not a setting; {suggest_key(key, SERVER)}"
        elif not is_convertible({key: value}, ServerTable):
            shown = "cannot be used" if key in _SECRET_KEYS else f"is {truncate_repr(value)}"
            yield key, f"{shown}; allowed: {SERVER[key].allowed}"
    if "command" in table and "url" in table:
        yield "", "has a command and a url; a server has only one of them"
    for key, needed in _OWNERS.items():
        if key in table and needed not in table:
            yield key, f"is for a server with a {needed}, and this one has none"
    for key in ("network", "writable"):
        if "url" in table and key in table:
            yield key, "is for a server that is started here; a url runs elsewhere"


def describe_server(table: ServerTable) -> str:
    """A server in a few words without secrets: `runs npx -y a-server; with GITHUB_TOKEN; reaches api.github.com`."""
    if table.url is not None:
        first = f"connects to {_get_origin(table.url)}"
    elif table.command is not None:
        first = f"runs {_render_command((table.command, *table.args))}"
    else:
        first = "adds to the server of .mcp.json"
    names = (*table.env, *table.headers)
    details = [
        *([f"with {', '.join(names)}"] if names else []),
        *([f"reaches {', '.join(table.network)}"] if table.network else []),
        *(["changes the workspace"] if table.writable else []),
        *([f"asks less for {', '.join(table.read_only)}"] if table.read_only else []),
        *(["is trusted about which tools are read-only"] if table.hints else []),
        *([] if table.enabled else ["disabled"]),
    ]
    return escape_unprintable("; ".join((first, *details)))


class UnsetError(Exception):
    """A variable has no value and no default."""


def expand_variables(text: str, environ: Mapping[str, str]) -> str:
    """The text with `${NAME}` and `${NAME:-else}` replaced. Values are not expanded again."""

    def get_value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if default is not None:
            return environ.get(name) or default
        if name not in environ:
            raise UnsetError(name)
        return environ[name]

    return _VARIABLE.sub(get_value, text)


def list_variables(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the variables in texts, each once."""
    return tuple(dict.fromkeys(match[1] for text in texts for match in _VARIABLE.finditer(text)))


def _get_origin(url: str) -> str:
    """The scheme and host of an address. The rest may hold a token."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else _HIDDEN
    except ValueError:
        return _HIDDEN


def _render_command(words: tuple[str, ...]) -> str:
    """A command as a shell would take it, truncated."""
    line = escape_unprintable(" ".join(_render_words(words)))
    if len(line) <= _MAX_COMMAND_CHARS:
        return line
    return f"{line[:_MAX_COMMAND_CHARS]}… ({len(line) - _MAX_COMMAND_CHARS:,} characters more)"


def _render_words(words: tuple[str, ...]) -> Iterator[str]:
    """The words of a command. Values that look like secrets, or follow an option for one, are hidden."""
    yield shlex.quote(words[0])  # the program is no secret
    for before, word in pairwise(words):
        option, sign, _ = word.partition("=")
        after = before.startswith("-") and "=" not in before and is_secret_name(before)
        parts = _TOKEN.sub(lambda token: _HIDDEN if is_secret(token[0]) else token[0], word)
        if _SHELL_SYNTAX.search(word) or (" " in word and parts not in {word, _HIDDEN}):
            yield shlex.quote(parts)  # more than a value: a program must not be hidden as a secret
        elif sign and is_secret_name(option):
            yield f"{option}={_HIDDEN}"
        else:
            yield _HIDDEN if after or is_secret(word) else shlex.quote(word)


def is_secret(word: str) -> bool:
    return is_secret_value(word) or is_random_value(word)
