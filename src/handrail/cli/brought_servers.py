"""What the servers of .mcp.json are, for the person who is to trust them."""

import os
from collections.abc import Iterator

from handrail.protocol.text import to_one_line
from handrail.settings.mcp_json import McpJson
from handrail.settings.mcp_servers import ServerTable, describe_server, list_variables
from handrail.settings.paths import MCP_FILE


def render_servers(brought: McpJson) -> str:
    """What the file brings, with the variables of the person's own that its servers are handed."""
    lines = [f"Servers from {MCP_FILE}, started in a sandbox when a session needs them:"]
    for name, said in brought.servers.items():
        lines += _about(name, said, brought.workspace)
    lines += [f"  {name}: cannot be used: {why}" for name, why in brought.unusable.items()]
    lines += brought.remarks
    lines.append(f"Trusted as it is now (SHA-256 {brought.digest[:16]}…).")
    return "".join(f"{to_one_line(line)}\n" for line in lines)


def _about(name: str, said: ServerTable, workspace: str) -> Iterator[str]:
    texts = (said.command or "", *said.args, *said.env.values(), said.url or "", *said.headers.values())
    asked = list_variables((*texts, said.cwd or ""))
    yield f"  {name}: {describe_server(said)}" + (f"; is told your {', '.join(asked)}" if asked else "")
    for file in _files_of(said, workspace) if asked or said.env else ():
        yield f"    {file} is in the workspace: whoever changes it, an agent too, changes what is started with that."


def _files_of(said: ServerTable, workspace: str) -> Iterator[str]:
    """The files of the workspace that a command names. Trust is in what names them, not in them."""
    words = said.args if "/" not in (said.command or "") else (said.command or "", *said.args)
    for word in words:
        path = os.path.realpath(os.path.join(workspace, said.cwd or ".", word))
        if os.path.commonpath((workspace, path)) == workspace and os.path.isfile(path):
            yield os.path.relpath(path, workspace)
