"""trust: lets a project's settings loosen, as they are now."""

import os
from argparse import Namespace

from handrail.cli.context import open_state_folder, resolve_workspace
from handrail.cli.exits import OK, CommandFailed
from handrail.cli.format import format_time
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode
from handrail.settings import PROJECT_FILE, LoadedSettings, Project, load
from handrail.settings.mcp_json import McpJson, read_mcp_json
from handrail.settings.merge import IgnoredSetting
from handrail.settings.paths import MCP_FILE
from handrail.store.grants import give_trust, list_trusted_projects, revoke_trust


def run(options: Namespace) -> int:
    """Shows what the project's file loosens and records trust in it; or lists, or takes back."""
    if options.list:
        return _list(options)
    workspace = resolve_workspace(options)
    if options.revoke:
        return _revoke(options, os.path.realpath(workspace))
    return _give(options, workspace)


def _give(options: Namespace, workspace: str) -> int:
    untrusted = load(os.environ, {}, workspace, trusted=False)
    trusted = load(os.environ, {}, workspace, trusted=True)  # what is wrong with it once it counts is wrong now
    project, brought = untrusted.project, read_mcp_json(workspace)
    if project is None and brought is None:
        _say_nothing_there(options, workspace)
        return OK
    if (project and project.digest) != (trusted.project and trusted.project.digest):
        raise CommandFailed(f"{PROJECT_FILE} changed while it was read. Nothing was trusted; try again.")
    if brought is not None and not brought.digest:
        raise CommandFailed(f"{brought.remarks[0]}. Nothing was trusted; correct or remove the file.")
    digests = (project.digest if project else "", brought.digest if brought else "")
    give_trust(open_state_folder(), os.path.realpath(workspace), *digests)
    if options.json:
        data = _as_data(os.path.realpath(workspace), project, untrusted, trusted)
        print_json(encode({"schema": "handrail.trust/1", **data, **_servers_as_data(brought)}))
    else:
        print_out(_as_text(project, untrusted, trusted) if project else "")
        print_out(_servers_as_text(brought) if brought else "")
        what = "either file" if project and brought else "the file"
        print_note(f"Any change of {what} ends this. To take it back: handrail trust --revoke")
    return OK


def _as_data(
    workspace: str, project: Project | None, untrusted: LoadedSettings, trusted: LoadedSettings
) -> dict[str, object]:
    return {
        "workspace": workspace,
        "digest": project.digest if project else "",
        "trusted": True,
        "loosens": [{"line": ignored.line, "said": ignored.value} for ignored in _loosening(untrusted)],
        "ignored": [ignored.note for ignored in trusted.ignored if ignored.kind == "project"],
    }


def _servers_as_data(brought: McpJson | None) -> dict[str, object]:
    if brought is None:
        return {}
    from handrail.settings.mcp_servers import describe_server  # noqa: PLC0415  few bring any

    said = {name: describe_server(one) for name, one in brought.servers.items()}
    return {"servers": {"digest": brought.digest, "named": said, "unusable": brought.unusable}}


def _servers_as_text(brought: McpJson) -> str:
    from handrail.cli.brought_servers import render_servers  # noqa: PLC0415  few bring any

    return render_servers(brought)


def _as_text(project: Project, untrusted: LoadedSettings, trusted: LoadedSettings) -> str:
    lines = [_line(ignored.line, ignored.value) + _outdone(ignored, trusted) for ignored in _loosening(untrusted)]
    if lines:
        head = f"Now in force, from {project.path}:"
    else:
        head = f"{project.path} loosens nothing; what it says was in force already."
    still = [to_one_line(ignored.note) for ignored in trusted.ignored if ignored.kind in {"project", "managed"}]
    ending = f"Trusted as it is now (SHA-256 {project.digest[:16]}…)."
    return "".join(f"{line}\n" for line in (head, *lines, *still, ending))


def _loosening(untrusted: LoadedSettings) -> list[IgnoredSetting]:
    return [ignored for ignored in untrusted.ignored if ignored.until_trusted]


def _line(number: int | None, said: str) -> str:
    return f"  line {number}: {to_one_line(said)}" if number else f"  {to_one_line(said)}"


def _outdone(ignored: IgnoredSetting, trusted: LoadedSettings) -> str:
    """Who decides instead, where a nearer layer or the managed file does."""
    source = trusted.sources.get(ignored.value.partition(" = ")[0], "project file")
    return "" if source.startswith("project file") else f" (but the {source} decides here)"


def _say_nothing_there(options: Namespace, workspace: str) -> None:
    if options.json:
        print_json(encode({"schema": "handrail.trust/1", "workspace": os.path.realpath(workspace), "trusted": False}))
    else:
        print_out(f"There is no {PROJECT_FILE} and no {MCP_FILE} in {workspace}; there is nothing to trust.\n")


def _revoke(options: Namespace, workspace: str) -> int:
    revoked = revoke_trust(open_state_folder(), workspace)
    if options.json:
        print_json(encode({"schema": "handrail.trust/1", "workspace": workspace, "revoked": revoked}))
    elif revoked:
        print_out(f"{workspace} is no longer trusted: what its {PROJECT_FILE} loosens is ignored, {MCP_FILE} too.\n")
    else:
        print_out(f"{workspace} was not trusted; nothing changed.\n")
    return OK


def _list(options: Namespace) -> int:
    given = list_trusted_projects(open_state_folder())
    if options.json:
        projects = [{"workspace": path, "digest": trust.digest, "time": trust.time} for path, trust in given.items()]
        print_json(encode({"schema": "handrail.trust/1", "projects": projects}))
    elif given:
        rows = [(path, trust.digest[:16], format_time(trust.time)) for path, trust in sorted(given.items())]
        print_out(render_table([("workspace", "sha-256", "since"), *rows]))
    else:
        print_out("No project is trusted.\n")
    return OK
