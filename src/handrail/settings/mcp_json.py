"""The MCP servers of a session, from the settings or from `.mcp.json`, which other agents read too."""

import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import msgspec

from handrail.policy.secrets import is_secret_name, is_secret_value
from handrail.protocol.digest import sha256
from handrail.protocol.permissions import Permission
from handrail.protocol.text import escape_unprintable
from handrail.protocol.wire import convert
from handrail.settings.errors import SettingsError, truncate_repr
from handrail.settings.mcp_servers import (
    MAX_SERVERS,
    ServerTable,
    UnsetError,
    expand_variables,
    find_name_problem,
    is_secret,
    list_table_problems,
)
from handrail.settings.merge import LoadedSettings
from handrail.settings.paths import MCP_FILE, exists, resolve_state_folder
from handrail.settings.toml_file import SettingsFile, read_bytes
from handrail.settings.trust import read_file_trust
from handrail.settings.units import parse_seconds

_SHARED_KEYS = ("command", "args", "env", "cwd", "url", "headers")
_OWN_KEYS = frozenset(ServerTable.__struct_fields__) - frozenset(_SHARED_KEYS)
_OWN_PROGRAM = re.compile(r"(?:.*/)?handrail(?:\[[\w,-]*\])?(?:[=@].*)?", re.DOTALL)
_HTTP_TYPES = frozenset({"http", "streamable-http", "streamableHttp"})
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class McpJson(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the file, and whether it is trusted."""

    workspace: str
    """Its real path."""
    digest: str
    """The SHA-256 of the file. Trust is given to exactly this content. Empty: the file is unusable."""
    servers: Mapping[str, ServerTable] = {}
    unusable: Mapping[str, str] = {}
    """The reasons why servers cannot be used, by name."""
    remarks: tuple[str, ...] = ()
    trusted: bool = False


def read_mcp_json(workspace: str) -> McpJson | None:
    """The file in the root of a workspace, as not trusted. None: it is missing, or it starts only handrail.

    Problems become remarks, never errors: the file is written for other programs.
    """
    root = os.path.realpath(workspace)
    path = os.path.join(root, MCP_FILE)
    if not exists(path):
        return None
    try:
        content = read_bytes(SettingsFile(path, "project"))
        written = _parse_entries(content)
        entries = {name: entry for name, entry in written.items() if not _is_handrail(entry)}
        if written and not entries:
            return None
    except (SettingsError, ValueError) as error:
        reason = error.problems[0] if isinstance(error, SettingsError) else error
        return McpJson(workspace=root, digest="", remarks=(f"{MCP_FILE} cannot be used: {reason}",))
    problems = {name: problem for name, entry in entries.items() if (problem := _find_problem(name, entry))}
    return McpJson(
        workspace=root,
        digest=sha256(content).hexdigest(),
        servers={
            name: convert(_pick_shared_keys(entry), ServerTable)
            for name, entry in entries.items()
            if name not in problems
        },
        unusable=problems,
        remarks=tuple(_list_ignored_keys(entries)),
    )


def load_mcp_json(workspace: str, state: str) -> McpJson | None:
    """The file, with trust as the state folder records it."""
    file = read_mcp_json(workspace)
    if file is None or not file.digest:
        return file
    trusted, remark = read_file_trust(state, file.workspace, MCP_FILE, file.digest)
    return msgspec.structs.replace(file, trusted=trusted, remarks=(*([remark] if remark else []), *file.remarks))


def _parse_entries(content: bytes) -> dict[str, Any]:
    try:
        document: object = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {_locate_error(content) or error}") from None
    servers: object = cast("dict[str, object]", document).get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ValueError('it has no object "mcpServers"')
    entries = cast("dict[str, Any]", servers)
    if len(entries) > MAX_SERVERS:
        raise ValueError(f"it names {len(entries):,} servers; allowed: at most {MAX_SERVERS}")
    return entries


def _locate_error(content: bytes) -> str | None:
    """Line and column of the error. msgspec counts bytes."""
    import json  # noqa: PLC0415  only for a broken file

    try:
        json.loads(content)
    except json.JSONDecodeError as error:
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        pass
    return None


def _is_handrail(entry: object) -> bool:
    """Whether it starts handrail itself, as `handrail mcp --config` writes it for other agents."""
    table = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    args: Any = table.get("args")
    words = [table.get("command"), *(cast("list[Any]", args) if isinstance(args, list) else ())]
    return any(
        after == "mcp" and isinstance(word, str) and _OWN_PROGRAM.fullmatch(word) for word, after in pairwise(words)
    )


def _find_problem(name: str, entry: object) -> str | None:
    if not isinstance(entry, dict):
        return "it is not an object"
    table = cast("dict[str, object]", entry)
    kind = table.get("type", "http" if "url" in table else "stdio")
    if kind == "sse":
        return "its transport, sse, is the older SSE transport, which is not supported here"
    if kind != "stdio" and kind not in _HTTP_TYPES:
        return f"its type is {truncate_repr(kind)}; allowed: stdio or http"
    needed = "command" if kind == "stdio" else "url"
    if needed not in table:
        return f"it has no {needed}"
    if problem := find_name_problem(name):
        return problem
    key, problem = next(list_table_problems(_pick_shared_keys(table)), ("", ""))
    return f"{key} {problem}".strip() or None


def _pick_shared_keys(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key in _SHARED_KEYS}


def _list_ignored_keys(entries: Mapping[str, object]) -> Iterator[str]:
    """Only handrail's own settings may open the sandbox of a server."""
    for name, entry in entries.items():
        if isinstance(entry, dict) and (own := _OWN_KEYS & cast("dict[str, object]", entry).keys()):
            keys, server = ", ".join(sorted(own)), truncate_repr(name)
            yield f"{MCP_FILE}: {keys} of the server {server} is ignored: set it in handrail's own settings"


class ConfiguredServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server, ready to be started or reached. Its variables and headers may be secrets and are never shown."""

    name: str
    table: ServerTable
    """As it was written, to describe it."""
    words: tuple[str, ...] = ()
    """The command line. Empty: the server is reached at `url`."""
    variables: tuple[tuple[str, str], ...] = ()
    cwd: str = "."
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    network: tuple[str, ...] = ()
    writable: bool = False
    seconds: float = 60.0

    @property
    def reach(self) -> tuple[Permission, ...]:
        """The permissions that it has. A server that runs here sees the workspace."""
        if not self.words:
            return ("net.connect",)
        changes: tuple[Permission, ...] = ("fs.write", "fs.delete", "git.write") if self.writable else ()
        return ("fs.read", *changes, *(("net.connect",) if self.network else ()))

    def list_secrets(self) -> Iterator[tuple[str, str]]:
        """The secrets that the server gets, each with the name by which it gets it."""
        for name, value in (*self.variables, *self.headers):
            if is_secret_name(name) or is_secret(value):
                yield name, value
        for option, word in pairwise(self.words):
            name, sign, value = word.partition("=")
            if sign and is_secret_name(name):
                yield name.lstrip("-"), value
            elif option.startswith("-") and "=" not in option and is_secret_name(option):
                yield option.lstrip("-"), word
            elif is_secret_value(word):  # a word that only looks random may be a folder, which many results name
                yield "argument", word
        parts = urlsplit(self.url)
        yield from (("url", segment) for segment in parts.path.split("/") if is_secret(segment))
        for name, value in parse_qsl(parts.query):
            if is_secret_name(name) or is_secret(value):
                yield name, value


class ConfiguredServers(msgspec.Struct, frozen=True, kw_only=True):
    """All servers of a session."""

    usable: tuple[ConfiguredServer, ...] = ()
    unusable: Mapping[str, str] = {}
    """The reasons why servers cannot be used, by name."""
    notes: tuple[str, ...] = ()
    fixes: Mapping[str, str] = {}
    """The commands that help, by the reason or the note."""


def resolve_servers(loaded: LoadedSettings, workspace: str, environ: Mapping[str, str]) -> ConfiguredServers:
    """The servers of a session in this workspace. A server that cannot be used does not stop the others."""
    brought = None if loaded.servers_fixed else load_mcp_json(workspace, resolve_state_folder(environ))
    tables, unusable = _join_tables(loaded.servers, brought)
    usable: list[ConfiguredServer] = []
    fixes: dict[str, str] = {}
    for name, table in tables.items():
        try:
            server = _expand_server(name, table, environ)
        except UnsetError as error:
            fix = f"export {error}=…"
            unusable[name] = f"the variable {error}, which it asks for, is not set; {fix}"
            fixes[unusable[name]] = fix
        except ValueError as error:
            unusable[name] = str(error)
        else:
            # None of its tools would be offered, and starting it opens the network.
            if "net.connect" in server.reach and "net.connect" in loaded.settings.tools.deny:
                unusable[name] = "it needs net.connect, which [tools] deny denies"
            else:
                usable.append(server)
    notes = brought.remarks if brought else ()
    if brought and not brought.trusted and (note := _describe_untrusted(brought)):
        notes, fixes[note] = (*notes, note), "handrail trust"
    return ConfiguredServers(usable=tuple(usable), unusable=unusable, notes=notes, fixes=fixes)


def _join_tables(
    settings: Mapping[str, ServerTable], brought: McpJson | None
) -> tuple[dict[str, ServerTable], dict[str, str]]:
    """The servers of the settings override or extend those of a trusted file."""
    tables = dict(brought.servers) if brought and brought.trusted else {}
    unusable = dict(brought.unusable) if brought and brought.trusted else {}
    for name, table in settings.items():
        if not table.is_extension:
            tables[name] = table
            unusable.pop(name, None)
        elif name in tables:
            tables[name] = merge_server_tables(tables[name], table)
    return {name: table for name, table in tables.items() if table.enabled}, unusable


def merge_server_tables(brought: ServerTable, ours: ServerTable) -> ServerTable:
    """The table of .mcp.json, extended by that of the settings."""
    return msgspec.structs.replace(ours, **{key: getattr(brought, key) for key in _SHARED_KEYS})


def _expand_server(name: str, table: ServerTable, environ: Mapping[str, str]) -> ConfiguredServer:
    def expand(text: str) -> str:
        return expand_variables(text, environ)

    url = expand(table.url) if table.url is not None else ""
    if url:
        _check_url(url)
    return ConfiguredServer(
        name=name,
        table=table,
        words=(expand(table.command), *map(expand, table.args)) if table.command is not None else (),
        variables=tuple((key, expand(text)) for key, text in table.env.items()),
        cwd=_check_cwd(expand(table.cwd)) if table.cwd is not None else ".",
        url=url,
        headers=tuple((key, _check_header(key, expand(text))) for key, text in table.headers.items()),
        network=table.network,
        writable=table.writable,
        seconds=parse_seconds(table.timeout),
    )


def _check_url(url: str) -> None:
    """ValueError: others could read the requests on the way. The message does not show the address."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("its url is not an address") from None
    if parts.username or parts.password:
        raise ValueError("its url has a name or a password in it; put them into headers")
    if parts.scheme == "https" and host:
        return
    if parts.scheme != "http" or host not in _LOCAL_HOSTS:
        raise ValueError("its url must be https, or http of this machine (localhost, 127.0.0.1, [::1])")


def _check_cwd(cwd: str) -> str:
    plain = os.path.normpath(cwd)
    if os.path.isabs(plain) or plain == ".." or plain.startswith("../"):
        raise ValueError("its cwd is not in the workspace; write it relative to the workspace")
    return plain


def _check_header(name: str, text: str) -> str:
    if not text.isprintable() or not text.isascii():
        raise ValueError(f"the header {name} is not one line of plain characters")
    return text


def _describe_untrusted(brought: McpJson) -> str:
    waiting = [escape_unprintable(name) for name in (*brought.servers, *brought.unusable)]
    count = "a server" if len(waiting) == 1 else f"{len(waiting)} servers"
    names = ", ".join(waiting[:5]) + (", …" if len(waiting) > 5 else "")
    note = f"{MCP_FILE} brings {count} ({names}), not used until you trust this project: handrail trust"
    return note if waiting else ""
