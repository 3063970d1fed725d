"""Other MCP servers as a settings file names them: `[mcp.servers.NAME]`."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import chain
from typing import Annotated, Any, cast

import msgspec

from handrail.protocol.reading import convert
from handrail.protocol.text import truncate
from handrail.settings.errors import MAX_SHOWN_CHARACTERS, truncate_repr
from handrail.settings.model import Section, Time, Variable
from handrail.settings.problem import list_first_problems
from handrail.settings.reference import SERVER
from handrail.settings.server_names import NAME_IN_WORDS, is_server_name
from handrail.settings.units import parse_seconds

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
            from handrail.policy.network.listed import Allowlist  # noqa: PLC0415  only where somebody lists one

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
