"""MCP servers from .mcp.json and from a session."""

import os
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import pairwise
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from handrail.protocol.permissions import Permission
from handrail.protocol.text import escape_unprintable
from handrail.protocol.wire import convert
from handrail.settings.errors import SettingsError, truncate_repr
from handrail.settings.mcp_servers import MAX_SERVERS, ServerTable, UnsetError, expand_variables, list_server_problems
from handrail.settings.merge import LoadedSettings
from handrail.settings.paths import exists, resolve_state_folder
from handrail.settings.toml_file import SettingsFile, read_bytes
from handrail.settings.trust import read_server_trust
from handrail.settings.units import parse_seconds

MCP_FILE = ".mcp.json"
_KEYS = ("command", "args", "env", "cwd", "url", "headers")
_OURS = frozenset(ServerTable.__struct_fields__) - frozenset(_KEYS)
_OURSELVES = re.compile(r"(?:.*/)?handrail(?:\[[\w,-]*\])?(?:[=@].*)?", re.DOTALL)
_REMOTE = frozenset({"http", "streamable-http", "streamableHttp"})


class McpJson(msgspec.Struct, frozen=True, kw_only=True):
    """What the file says, and whether it counts."""

    workspace: str
    """Its real path."""
    digest: str
    """SHA-256 of the file's bytes: what trust is given to; empty where they could not be read."""
    servers: Mapping[str, ServerTable] = {}
    unusable: Mapping[str, str] = {}
    """Servers that cannot be used, and why."""
    remarks: tuple[str, ...] = ()
    trusted: bool = False


def read_mcp_json(workspace: str) -> McpJson | None:
    """The file in the root of a workspace, not trusted; None where there is none, or it starts nothing but us. Whatever
    is wrong with it is told, never raised: others wrote it for other programs."""
    root = os.path.realpath(workspace)
    path = os.path.join(root, MCP_FILE)
    if not exists(path):
        return None
    try:
        content = read_bytes(SettingsFile(path, "project"))
        said = _entries(content)
        if said and not (said := {name: entry for name, entry in said.items() if not _is_handrail(entry)}):
            return None
    except SettingsError as error:
        return McpJson(workspace=root, digest="", remarks=(f"{MCP_FILE} cannot be used: {error.problems[0]}",))
    except ValueError as error:
        return McpJson(workspace=root, digest="", remarks=(f"{MCP_FILE} cannot be used: {error}",))
    problems = {name: wrong for name, entry in said.items() if (wrong := _wrong(name, entry))}
    return McpJson(
        workspace=root,
        digest=sha256(content).hexdigest(),
        servers={name: _table(entry) for name, entry in said.items() if name not in problems},
        unusable=problems,
        remarks=tuple(_left_out(said)),
    )


def load_mcp_json(workspace: str, state: str) -> McpJson | None:
    """The same, and whether the state folder says that it is trusted."""
    found = read_mcp_json(workspace)
    if found is None or not found.digest:
        return found
    trusted, remark = read_server_trust(state, found.workspace, found.digest)
    return msgspec.structs.replace(found, trusted=trusted, remarks=(*([remark] if remark else []), *found.remarks))


def _entries(content: bytes) -> dict[str, Any]:
    try:
        document: object = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {_place(content) or error}") from None
    servers: object = cast("dict[str, object]", document).get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ValueError('it has no object "mcpServers"')
    entries = cast("dict[str, Any]", servers)
    if len(entries) > MAX_SERVERS:
        raise ValueError(f"it names {len(entries):,} servers; allowed: at most {MAX_SERVERS}")
    return entries


def _place(content: bytes) -> str | None:
    """Where it is broken, for a person who looks for it; the quicker reader says so in bytes only."""
    import json  # noqa: PLC0415  only for a broken file

    try:
        json.loads(content)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        return None
    return None


def _is_handrail(entry: object) -> bool:
    """Whether it starts handrail itself, as `handrail mcp --config` has it for other agents: nothing that we need."""
    said = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    args: Any = said.get("args")
    words = [said.get("command"), *(cast("list[Any]", args) if isinstance(args, list) else ())]
    return any(isinstance(one, str) and _OURSELVES.fullmatch(one) and then == "mcp" for one, then in pairwise(words))


def _wrong(name: str, entry: object) -> str | None:
    if not isinstance(entry, dict):
        return "it is no object"
    said = cast("dict[str, object]", entry)
    kind = said.get("type", "http" if "url" in said else "stdio")
    if kind == "sse":
        return "its transport, sse, is the one before streamable HTTP, and is not spoken here"
    if kind != "stdio" and kind not in _REMOTE:
        return f"its type is {truncate_repr(kind)}; allowed: stdio or http"
    needed = "command" if kind == "stdio" else "url"
    if needed not in said:
        return f"it has no {needed}"
    told = next(list_server_problems(name, {key: value for key, value in said.items() if key in _KEYS}), None)
    return told.removeprefix(f"mcp.servers.{name}.").removeprefix(f"mcp.servers.{name} ") if told else None


def _table(entry: dict[str, Any]) -> ServerTable:
    return convert({key: value for key, value in entry.items() if key in _KEYS}, ServerTable)


def _left_out(said: Mapping[str, object]) -> Iterator[str]:
    """What the file may not say: how far a server's sandbox is open is for handrail's own settings."""
    for name, entry in said.items():
        ours = _OURS & cast("dict[str, object]", entry).keys() if isinstance(entry, dict) else frozenset[str]()
        if ours:
            told = ", ".join(sorted(ours))
            server = truncate_repr(name)
            yield f"{MCP_FILE}: {told} of the server {server} is ignored: handrail's own settings can say so"


_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class ConfiguredServer(msgspec.Struct, frozen=True, kw_only=True):
    """One server, ready to be started or reached. Its variables and headers may be secrets: nobody shows them."""

    name: str
    table: ServerTable
    """As it was written, for words about it."""
    words: tuple[str, ...] = ()
    """What is started; empty for one that is reached."""
    variables: tuple[tuple[str, str], ...] = ()
    cwd: str = "."
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    network: tuple[str, ...] = ()
    writable: bool = False
    seconds: float = 60.0

    @property
    def reach(self) -> tuple[Permission, ...]:
        """What is open to it. One that is started here sees the workspace."""
        if not self.words:
            return ("net.connect",)
        changes: tuple[Permission, ...] = ("fs.write", "fs.delete", "git.write") if self.writable else ()
        return ("fs.read", *changes, *(("net.connect",) if self.network else ()))


class ConfiguredServers(msgspec.Struct, frozen=True, kw_only=True):
    """All of them."""

    usable: tuple[ConfiguredServer, ...] = ()
    unusable: Mapping[str, str] = {}
    """Those that cannot be, by name, and why."""
    notes: tuple[str, ...] = ()
    """What a person should be told."""


def resolve_servers(
    loaded: LoadedSettings, workspace: str, environ: Mapping[str, str], state: str | None = None
) -> ConfiguredServers:
    """What a session in this workspace has. A server that cannot be used keeps no other from it."""
    brought = None if loaded.servers_fixed else load_mcp_json(workspace, state or resolve_state_folder(environ))
    tables, unusable = _joined(loaded.servers, brought)
    usable: list[ConfiguredServer] = []
    for name, table in tables.items():
        try:
            server = _server(name, table, environ)
        except UnsetError as error:
            unusable[name] = f"the variable {error}, which it asks for, is not set; export {error}=…"
        except ValueError as error:
            unusable[name] = str(error)
        else:
            # None of its tools would be offered, and to start it opens the network.
            if "net.connect" in server.reach and "net.connect" in loaded.settings.tools.deny:
                unusable[name] = "it needs net.connect, which [tools] deny lists"
            else:
                usable.append(server)
    return ConfiguredServers(usable=tuple(usable), unusable=unusable, notes=_notes(brought))


def _joined(
    settings: Mapping[str, ServerTable], brought: McpJson | None
) -> tuple[dict[str, ServerTable], dict[str, str]]:
    """The settings' own go first; where they only add, they add to what the trusted file says."""
    found = dict(brought.servers) if brought and brought.trusted else {}
    unusable = dict(brought.unusable) if brought and brought.trusted else {}
    for name, table in settings.items():
        if not table.is_extension:
            found[name] = table
            unusable.pop(name, None)
        elif name in found:
            found[name] = merge_server_tables(found[name], table)
    return {name: table for name, table in found.items() if table.enabled}, unusable


def merge_server_tables(brought: ServerTable, ours: ServerTable) -> ServerTable:
    """What .mcp.json says of a server, with what the settings add to it."""
    return msgspec.structs.replace(
        brought,
        network=ours.network,
        writable=ours.writable,
        read_only=ours.read_only,
        hints=ours.hints,
        timeout=ours.timeout,
        enabled=ours.enabled,
    )


def _server(name: str, table: ServerTable, environ: Mapping[str, str]) -> ConfiguredServer:
    def value(text: str) -> str:
        return expand_variables(text, environ)

    url = value(table.url) if table.url is not None else ""
    if url:
        _check(url)
    return ConfiguredServer(
        name=name,
        table=table,
        words=(value(table.command), *map(value, table.args)) if table.command is not None else (),
        variables=tuple((one, value(text)) for one, text in table.env.items()),
        cwd=_in_workspace(value(table.cwd)) if table.cwd is not None else ".",
        url=url,
        headers=tuple((one, _one_line(one, value(text))) for one, text in table.headers.items()),
        network=table.network,
        writable=table.writable,
        seconds=parse_seconds(table.timeout),
    )


def _check(url: str) -> None:
    """ValueError for an address where what is sent could be read on the way. The address itself is not told."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("its url is no address") from None
    if parts.username or parts.password:
        raise ValueError("its url has a name or a password in it; put them into headers")
    if parts.scheme == "https" and host:
        return
    if parts.scheme != "http" or host not in _LOCAL:
        raise ValueError("its url is neither https nor http of this machine (localhost, 127.0.0.1, [::1])")


def _in_workspace(cwd: str) -> str:
    plain = os.path.normpath(cwd)
    if os.path.isabs(plain) or plain == ".." or plain.startswith("../"):
        raise ValueError("its cwd is not in the workspace; write it relative to the workspace")
    return plain


def _one_line(name: str, text: str) -> str:
    if not text.isprintable() or not text.isascii():
        raise ValueError(f"the header {name} is not one line of plain characters")
    return text


def _notes(brought: McpJson | None) -> tuple[str, ...]:
    if brought is None:
        return ()
    waiting = [escape_unprintable(name) for name in (*brought.servers, *brought.unusable)]
    if brought.trusted or not waiting:
        return brought.remarks
    count = "a server" if len(waiting) == 1 else f"{len(waiting)} servers"
    names = ", ".join(waiting[:5]) + (", …" if len(waiting) > 5 else "")
    note = f"{MCP_FILE} brings {count} ({names}), not used until you trust this project: handrail trust"
    return (*brought.remarks, note)
