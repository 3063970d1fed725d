"""handrail trust: lets the present files of a project loosen settings, start servers or bring tools."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from types import SimpleNamespace

from handrail.cli.context import open_state_folder, resolve_workspace
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.format import format_time, print_wrapped
from handrail.cli.output import print_json, print_note, print_out, render_table, warn
from handrail.cli.parser import Command, add_place_options
from handrail.protocol.text import format_count, to_one_line
from handrail.protocol.wire import encode
from handrail.settings import PROJECT_FILE, LoadedSettings, Project, load
from handrail.settings.mcp_json import McpJson, read_mcp_json
from handrail.settings.mcp_servers import ServerTable, describe_server, list_variables
from handrail.settings.merge import IgnoredSetting
from handrail.settings.paths import MCP_FILE, TOOLS_FOLDER
from handrail.settings.project_tools import ProjectTools, read_project_tools
from handrail.terminal.keyboard import KeyPress, KeyReader, KeyTiming, enter_raw_mode
from handrail.terminal.permission_prompt import is_person_present

_SCHEMA = "handrail.trust/1"


def run(options: SimpleNamespace) -> int:
    """Trusts a project and shows what that loosens, or lists or revokes trust."""
    if options.list:
        return _list_projects(options)
    workspace = resolve_workspace(options)
    return _revoke(options, os.path.realpath(workspace)) if options.revoke else _give(options, workspace)


def _give(options: SimpleNamespace, workspace: str) -> int:
    real = os.path.realpath(workspace)
    untrusted = load(os.environ, {}, workspace, trusted=False)
    trusted = load(os.environ, {}, workspace, trusted=True)  # an error of the trusted file is an error now
    project, brought, tools = untrusted.project, read_mcp_json(workspace), read_project_tools(workspace)
    if project is None and brought is None and tools is None:
        if options.json:
            print_json(encode({"schema": _SCHEMA, "workspace": real, "trusted": False}))
        else:
            print_out(f"Nothing to trust: {workspace} has no {PROJECT_FILE}, no {MCP_FILE} and no {TOOLS_FOLDER}.\n")
        return OK
    if (project and project.digest) != (trusted.project and trusted.project.digest):
        raise CommandFailed(f"{PROJECT_FILE} changed while it was read. Nothing was trusted.", then="handrail trust")
    if brought is not None and not brought.digest:
        raise CommandFailed(f"{brought.remarks[0]}. Nothing was trusted.", then="handrail config")
    if tools is not None and not tools.digest:
        raise CommandFailed(f"{tools.remark}. Nothing was trusted.", then=f"ls -l {TOOLS_FOLDER}")
    if not options.json:
        lines = _list_project(project, untrusted, trusted) if project else []
        lines += map(to_one_line, _list_servers(brought)) if brought else ()
        lines += map(to_one_line, _list_tools(tools)) if tools else ()
        print_wrapped("".join(f"{line}\n" for line in lines), 4)
    if not options.yes and not _ask_person():
        print_out("Nothing was trusted.\n")
        return FAILED
    digests = [part.digest if part else "" for part in (project, brought, tools)]
    open_state_folder().give_trust(real, *digests)
    if options.json:
        print_json(encode(_build_trust_data(real, untrusted, trusted, brought) | _build_tools_data(tools)))
    else:
        is_one = sum(map(bool, digests)) == 1 and (tools is None or len(tools.files) == 1)
        what = "the file" if is_one else "one of these files"
        print_note(f"Trusted until {what} changes. To revoke it: handrail trust --revoke")
    return OK


def _ask_person() -> bool:
    """Waits for a key at the terminal. Only `y` trusts, and only if it was pressed after the question."""
    if not is_person_present():
        raise CommandFailed("no terminal to ask at. Nothing was trusted.", then="handrail trust --yes")
    descriptor = sys.stdin.fileno()
    keys = KeyReader(descriptor, KeyTiming())
    with enter_raw_mode(descriptor, lambda: None, lambda: None):
        keys.wait_until_quiet(lambda: None)
        warn("Trust these lines? y: yes, any other key: no.")
        keys.drop_early()
        while (key := keys.next()) is None:
            pass
    return key == KeyPress("text", "y")


def _revoke(options: SimpleNamespace, workspace: str) -> int:
    revoked = open_state_folder().revoke_trust(workspace)
    if options.json:
        print_json(encode({"schema": _SCHEMA, "workspace": workspace, "revoked": revoked}))
    elif revoked:
        ignored = f"the lines of {PROJECT_FILE} that loosen settings, {MCP_FILE} and {TOOLS_FOLDER} are ignored"
        print_out(f"{workspace} is no longer trusted: {ignored}.\n")
    else:
        print_out(f"{workspace} was not trusted; nothing changed.\n")
    return OK


def _list_projects(options: SimpleNamespace) -> int:
    given = open_state_folder().list_trusted_projects()
    if options.json:
        projects = [{"workspace": path, "digest": trust.digest, "time": trust.time} for path, trust in given.items()]
        print_json(encode({"schema": _SCHEMA, "projects": projects}))
    elif given:
        rows = [(path, trust.digest[:16], format_time(trust.time)) for path, trust in sorted(given.items())]
        print_out(render_table([("workspace", "sha-256", "since"), *rows]))
    else:
        print_out("No project is trusted.\n")
    return OK


def _build_trust_data(
    workspace: str, untrusted: LoadedSettings, trusted: LoadedSettings, brought: McpJson | None
) -> dict[str, object]:
    data: dict[str, object] = {
        "schema": _SCHEMA,
        "workspace": workspace,
        "digest": untrusted.project.digest if untrusted.project else "",
        "trusted": True,
        "loosens": [{"line": one.line, "said": one.value} for one in untrusted.ignored if one.until_trusted],
        "ignored": [one.note for one in trusted.ignored if one.kind == "project"],
    }
    if brought is not None:
        named = {name: describe_server(table) for name, table in brought.servers.items()}
        data["servers"] = {"digest": brought.digest, "named": named, "unusable": brought.unusable}
    return data


def _list_project(project: Project, untrusted: LoadedSettings, trusted: LoadedSettings) -> list[str]:
    """The lines of the settings file that count from now on, and those that still do not."""
    lines = [_render_loosened(one, trusted) for one in untrusted.ignored if one.until_trusted]
    head = f"{PROJECT_FILE} loosens {'these settings:' if lines else 'no setting.'}"
    still = [to_one_line(one.note) for one in trusted.ignored if one.kind in {"project", "managed"}]
    return [head, *lines, *still, _render_digest(project.digest)]


def _render_loosened(ignored: IgnoredSetting, trusted: LoadedSettings) -> str:
    """A line of the file, and the source that decides instead."""
    place = f"line {ignored.line}: " if ignored.line else ""
    source = trusted.sources.get(ignored.key, "project file")
    instead = "" if source.startswith("project file") else f" (but the {source} decides here)"
    return f"  {place}{to_one_line(ignored.value)}{instead}"


def _list_servers(brought: McpJson) -> list[str]:
    """The servers of `.mcp.json`, with the variables of the user that they get."""
    lines = [f"{MCP_FILE} starts these servers, in a sandbox, when a session needs them:"]
    for name, table in brought.servers.items():
        lines += _describe_server_lines(name, table, brought.workspace)
    lines += [f"  {name}: cannot be used: {why}" for name, why in brought.unusable.items()]
    return [*lines, *brought.remarks, _render_digest(brought.digest)]


def _list_tools(tools: ProjectTools) -> list[str]:
    """The tool files. No tool is named, since only running a file shows its tools."""
    lines = [f"{TOOLS_FOLDER} has code that handrail runs with your rights, outside the sandbox. Read it first:"]
    for file in tools.files:
        count = len(file.source.splitlines())
        named = f"{os.path.relpath(file.path, tools.workspace)}: {format_count(count, 'line')}"
        lines.append(f"  {named}, {len(file.source):,} bytes (SHA-256 {file.digest[:16]}…)")
    return lines


def _build_tools_data(tools: ProjectTools | None) -> dict[str, object]:
    if tools is None:
        return {}
    files = {os.path.relpath(file.path, tools.workspace): file.digest for file in tools.files}
    return {"tools": {"digest": tools.digest, "files": files}}


def _render_digest(digest: str) -> str:
    return f"  (SHA-256 {digest[:16]}…)"


def _describe_server_lines(name: str, table: ServerTable, workspace: str) -> Iterator[str]:
    texts = (table.command or "", *table.args, *table.env.values(), table.url or "", *table.headers.values())
    variables = list_variables((*texts, table.cwd or ""))
    yield f"  {name}: {describe_server(table)}" + (f"; gets your {', '.join(variables)}" if variables else "")
    for file in _list_workspace_files(table, workspace) if variables or table.env else ():
        yield f"    {file} is in the workspace, so an agent that changes it changes the server."


def _list_workspace_files(table: ServerTable, workspace: str) -> Iterator[str]:
    """The files of the workspace that a command names. Trust covers the command, not these files."""
    words = table.args if "/" not in (table.command or "") else (table.command or "", *table.args)
    for word in words:
        path = os.path.realpath(os.path.join(workspace, table.cwd or ".", word))
        if os.path.commonpath((workspace, path)) == workspace and os.path.isfile(path):
            yield os.path.relpath(path, workspace)


def _add_arguments(parser: ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--yes", action="store_true", help="trust without a question, for scripts")
    form.add_argument("--revoke", action="store_true", help="no longer trust this project")
    form.add_argument("--list", action="store_true", help="the projects that are trusted")
    add_place_options(parser)


COMMANDS = {
    "trust": Command(run, _add_arguments, ("handrail trust", "handrail trust --list")),
}
