"""Which MCP servers a session has: those of the settings, and those of a trusted .mcp.json."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from handrail.protocol.permission import Permission
from handrail.protocol.text import escape_unprintable
from handrail.settings.expansion import UnsetError, expand_variables
from handrail.settings.load import LoadedSettings
from handrail.settings.location import resolve_state_folder
from handrail.settings.mcp_json import MCP_FILE, McpJson, load_mcp_json
from handrail.settings.servers import ServerTable
from handrail.settings.units import parse_seconds

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
