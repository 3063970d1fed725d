"""The servers that a workspace brings in `.mcp.json`, the file that other agents read too."""

import os
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import pairwise
from typing import Any, cast

import msgspec

from handrail.protocol.reading import convert
from handrail.settings.document import File, read_bytes
from handrail.settings.errors import SettingsError, truncate_repr
from handrail.settings.location import is_there
from handrail.settings.servers import MAX_SERVERS, ServerTable, list_server_problems
from handrail.settings.trust import read_server_trust

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
    if not is_there(path):
        return None
    try:
        content = read_bytes(File(path, "project"))
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
