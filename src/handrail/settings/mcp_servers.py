"""Tables of MCP servers."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import chain, pairwise
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import msgspec

from handrail.policy.secrets import is_random_value, is_secret_name, is_secret_value
from handrail.protocol.text import escape_unprintable, truncate
from handrail.protocol.tool_spec import OWN_SERVER
from handrail.protocol.wire import convert
from handrail.settings.errors import MAX_SHOWN_CHARACTERS, list_first_problems, truncate_repr
from handrail.settings.model import Section, Time, Variable
from handrail.settings.reference import SERVER
from handrail.settings.units import parse_seconds

# § [settings.server_names] What a server may be called: its name is part of what its tools are called.

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,47}(?<!_)")
NAME_IN_WORDS = (
    "letters, digits, - and single _, at most 48, beginning with a letter or digit, not ending with _; and not"
    " handrail, as whose own its tools would be shown"
)


def is_server_name(name: str) -> bool:
    """Whether a server may be called so. Without `__` its tools' names can be taken apart again; and those of one that
    is called as we are would be shown to people as ours."""
    return _NAME.fullmatch(name) is not None and name.casefold() != OWN_SERVER


# § [settings.servers] Other MCP servers as a settings file names them: `[mcp.servers.NAME]`.

MAX_SERVERS = 64
_SECRET = frozenset({"env", "headers", "args", "url", "command"})
"""What may hold a secret: what is wrong with it is told, what it says is not."""
_MAX_CALL_SECONDS = 3_600.0
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=8_192, pattern=r"\A[^\0]*\Z")]
Value = Annotated[str, msgspec.Meta(max_length=65_536, pattern=r"\A[^\0]*\Z")]
Header = Annotated[str, msgspec.Meta(pattern=r"\A[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}\Z")]
HeaderValue = Annotated[str, msgspec.Meta(max_length=8_192, pattern=r"\A[^\0\r\n]*\Z")]


class ServerTable(Section, frozen=True, kw_only=True):
    """One server as it is written; without `command` and `url` it adds to the one of that name in .mcp.json."""

    command: Text | None = None
    args: tuple[Value, ...] = ()
    env: Mapping[Variable, Value] = {}
    cwd: Text | None = None
    url: Text | None = None
    headers: Mapping[Header, HeaderValue] = {}
    network: tuple[str, ...] = ()
    writable: bool = False
    read_only: tuple[Text, ...] = ()
    hints: bool = False
    timeout: Time = "60s"
    enabled: bool = True

    def __post_init__(self) -> None:
        """ValueError for a host that lists nothing, or a time that is too long."""
        if not 0.1 <= parse_seconds(self.timeout) <= _MAX_CALL_SECONDS:
            raise ValueError(f"{self.timeout!r} is not between 100 ms and 1 h")
        if self.network:
            from handrail.policy.network.allowlist import Allowlist  # noqa: PLC0415  only where somebody lists one

            Allowlist.from_entries(self.network)

    @property
    def is_extension(self) -> bool:
        """Whether it says nothing of what is started, only what the one in .mcp.json may do."""
        return self.command is None and self.url is None


def parse_servers(tables: object, lines: Mapping[str, int]) -> tuple[dict[str, ServerTable], list[str]]:
    """The servers by name, and everything that is wrong with them in words; servers only where nothing is. `lines`:
    where each stands."""
    if not isinstance(tables, dict):
        return {}, [f"mcp.servers is {truncate_repr(tables)}; allowed: tables, each written [mcp.servers.NAME]"]
    written = cast("dict[str, object]", tables)
    if len(written) > MAX_SERVERS:
        return {}, [f"there are {len(written):,} servers; allowed: at most {MAX_SERVERS}"]
    found = (
        (_at(lines.get(name)) + wrong for wrong in list_server_problems(name, table)) for name, table in written.items()
    )
    if problems := list_first_problems(chain.from_iterable(found)):
        return {}, problems
    return {name: convert(table, ServerTable) for name, table in written.items()}, []


def list_server_problems(name: str, table: object) -> Iterator[str]:
    """What is wrong with one server, each in a sentence that shows no value which may be a secret."""
    if not is_server_name(name):
        yield f"a server is called {truncate_repr(name)}; allowed: {NAME_IN_WORDS}"
    elif not isinstance(table, dict):
        yield f"mcp.servers.{name} is no table; write [mcp.servers.{name}]"
    else:
        values = cast("dict[str, Any]", table)
        yield from (sentence for key, value in values.items() if (sentence := _wrong(name, key, value)))
        yield from _wrong_together(name, values)


def _wrong_together(name: str, table: Mapping[str, object]) -> Iterator[str]:
    if "command" in table and "url" in table:
        yield f"mcp.servers.{name} has a command and a url; a server is started or reached, not both"
    owner = {"args": "command", "env": "command", "cwd": "command", "headers": "url"}
    for key, needed in owner.items():
        if key in table and needed not in table:
            yield f"mcp.servers.{name}.{key} is for a server with a {needed}, and this one has none"
    if "url" in table:
        for key in ("network", "writable"):
            if key in table:
                yield f"mcp.servers.{name}.{key} is for a server that is started here; a url runs elsewhere"


def _wrong(name: str, key: str, value: object) -> str | None:
    if key not in SERVER:
        near = get_close_matches(truncate(key, MAX_SHOWN_CHARACTERS), list(SERVER), n=1)
        told = f"did you mean {near[0]}?" if near else f"there are {', '.join(SERVER)}"
        spelled = truncate(key, MAX_SHOWN_CHARACTERS) if key.isascii() and key.isidentifier() else truncate_repr(key)
        return f"mcp.servers.{name}.{spelled} is not a setting; {told}"
    try:
        convert({key: value}, ServerTable)
    except (msgspec.ValidationError, ValueError):
        said = "cannot be used" if key in _SECRET else f"is {truncate_repr(value)}"
        return f"mcp.servers.{name}.{key} {said}; allowed: {SERVER[key].allowed}"
    return None


def _at(line: int | None) -> str:
    return f"line {line}: " if line else ""


# § [settings.server_words] What a server is, in a few words that hold no secret.


_HIDDEN = "…"
_MAX_COMMAND_CHARS = 500
_OF_A_SHELL = re.compile(r"[;&|<>(){}$`\n]")
_TOKEN = re.compile(r"""(?:(?:bearer|basic)\s+)?[^\s;&|<>(){}$`'"\\]+""", re.IGNORECASE)


def describe_server(table: "ServerTable") -> str:
    """`runs npx -y a-server, with GITHUB_TOKEN; reaches api.github.com`."""
    if table.url is not None:
        first = f"connects to {to_origin(table.url)}"
    elif table.command is not None:
        first = f"runs {_command_words((table.command, *table.args))}"
    else:
        first = "adds to the one of .mcp.json"
    names = (*table.env, *table.headers)
    told = [
        *([f"with {', '.join(names)}"] if names else []),
        *([f"reaches {', '.join(table.network)}"] if table.network else []),
        *(["changes the workspace"] if table.writable else []),
        *([f"asks less for {', '.join(table.read_only)}"] if table.read_only else []),
        *(["is believed about which tools only look"] if table.hints else []),
        *([] if table.enabled else ["switched off"]),
    ]
    return escape_unprintable("; ".join((first, *told)))


def to_origin(url: str) -> str:
    """The server of an address: the rest of it may hold a token."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else _HIDDEN
    except ValueError:
        return _HIDDEN


def _command_words(words: tuple[str, ...]) -> str:
    """What is run, word by word as a shell would take it; what is too long says how much of it is not shown."""
    line = escape_unprintable(" ".join(_shown_words(words)))
    if len(line) <= _MAX_COMMAND_CHARS:
        return line
    return f"{line[:_MAX_COMMAND_CHARS]}… ({len(line) - _MAX_COMMAND_CHARS:,} characters more)"


def _shown_words(words: tuple[str, ...]) -> Iterator[str]:
    """The words of a command; what looks like a secret, or stands behind an option that is called so, is left out."""
    yield shlex.quote(words[0])  # which is never a secret
    for before, word in pairwise(words):
        option, sign, _ = word.partition("=")
        after = before.startswith("-") and "=" not in before and is_secret_name(before)
        parts = _TOKEN.sub(lambda token: _HIDDEN if _is_secret(token[0]) else token[0], word)
        if _OF_A_SHELL.search(word) or (" " in word and parts not in {word, _HIDDEN}):
            yield shlex.quote(parts)  # more than a value: no program may pass for a key, which is left out
        elif sign and is_secret_name(option):
            yield f"{option}={_HIDDEN}"
        else:
            yield _HIDDEN if after or _is_secret(word) else shlex.quote(word)


def _is_secret(word: str) -> bool:
    return is_secret_value(word) or is_random_value(word)


# § [settings.expansion] `${NAME}` and `${NAME:-else}` in what a server is started with.

_PLACE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class UnsetError(Exception):
    """A variable that is asked for, has no value, and nothing stands for it."""


def expand_variables(text: str, environ: Mapping[str, str]) -> str:
    """The text with the variables of the environment in it. What they hold is not looked through again."""

    def value(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        if otherwise is not None:
            return environ.get(name) or otherwise
        if name not in environ:
            raise UnsetError(name)
        return environ[name]

    return _PLACE.sub(value, text)


def list_variables(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of the variables that texts ask for, each once."""
    return tuple(dict.fromkeys(found[1] for text in texts for found in _PLACE.finditer(text)))
