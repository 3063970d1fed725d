"""trust: lets a project's settings loosen, as they are now."""

import os
from argparse import Namespace

from handrail.cli.event_row import when
from handrail.cli.exits import OK, Stop
from handrail.cli.output import answer, answer_json, note, one_line, table
from handrail.cli.place import workspace_of
from handrail.cli.sessions import state_of_here
from handrail.protocol.wire import encode
from handrail.settings import PROJECT_FILE, Loaded, Project, load
from handrail.settings.ignored import Ignored
from handrail.settings.mcp_json import MCP_FILE, Brought, read_mcp_json
from handrail.store.trust import give_trust, take_trust_back, trusted_projects


def run(options: Namespace) -> int:
    """Shows what the project's file loosens and records trust in it; or lists, or takes back."""
    if options.list:
        return _list(options)
    workspace = workspace_of(options)
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
        raise Stop(f"{PROJECT_FILE} changed while it was read. Nothing was trusted; try again.")
    if brought is not None and not brought.digest:
        raise Stop(f"{brought.remarks[0]}. Nothing was trusted; correct or remove the file.")
    digests = (project.digest if project else "", brought.digest if brought else "")
    give_trust(state_of_here(), os.path.realpath(workspace), *digests)
    if options.json:
        data = _as_data(os.path.realpath(workspace), project, untrusted, trusted)
        answer_json(encode({"schema": "handrail.trust/1", **data, **_servers_as_data(brought)}))
    else:
        answer(_as_text(project, untrusted, trusted) if project else "")
        answer(_servers_as_text(brought) if brought else "")
        what = "either file" if project and brought else "the file"
        note(f"Any change of {what} ends this. To take it back: handrail trust --revoke")
    return OK


def _as_data(workspace: str, project: Project | None, untrusted: Loaded, trusted: Loaded) -> dict[str, object]:
    return {
        "workspace": workspace,
        "digest": project.digest if project else "",
        "trusted": True,
        "loosens": [{"line": ignored.line, "said": ignored.said} for ignored in _loosening(untrusted)],
        "ignored": [ignored.note for ignored in trusted.ignored if ignored.kind == "project"],
    }


def _servers_as_data(brought: Brought | None) -> dict[str, object]:
    if brought is None:
        return {}
    from handrail.settings.server_words import server_words  # noqa: PLC0415  few bring any

    said = {name: server_words(one) for name, one in brought.servers.items()}
    return {"servers": {"digest": brought.digest, "named": said, "unusable": brought.unusable}}


def _servers_as_text(brought: Brought) -> str:
    from handrail.cli.brought_servers import servers_as_text  # noqa: PLC0415  few bring any

    return servers_as_text(brought)


def _as_text(project: Project, untrusted: Loaded, trusted: Loaded) -> str:
    lines = [_line(ignored.line, ignored.said) + _outdone(ignored, trusted) for ignored in _loosening(untrusted)]
    if lines:
        head = f"Now in force, from {project.path}:"
    else:
        head = f"{project.path} loosens nothing; what it says was in force already."
    still = [one_line(ignored.note) for ignored in trusted.ignored if ignored.kind in {"project", "managed"}]
    ending = f"Trusted as it is now (SHA-256 {project.digest[:16]}…)."
    return "".join(f"{line}\n" for line in (head, *lines, *still, ending))


def _loosening(untrusted: Loaded) -> list[Ignored]:
    return [ignored for ignored in untrusted.ignored if ignored.until_trusted]


def _line(number: int | None, said: str) -> str:
    return f"  line {number}: {one_line(said)}" if number else f"  {one_line(said)}"


def _outdone(ignored: Ignored, trusted: Loaded) -> str:
    """Who decides instead, where a nearer layer or the managed file does."""
    source = trusted.sources.get(ignored.said.partition(" = ")[0], "project file")
    return "" if source.startswith("project file") else f" (but the {source} decides here)"


def _say_nothing_there(options: Namespace, workspace: str) -> None:
    if options.json:
        answer_json(encode({"schema": "handrail.trust/1", "workspace": os.path.realpath(workspace), "trusted": False}))
    else:
        answer(f"There is no {PROJECT_FILE} and no {MCP_FILE} in {workspace}; there is nothing to trust.\n")


def _revoke(options: Namespace, workspace: str) -> int:
    revoked = take_trust_back(state_of_here(), workspace)
    if options.json:
        answer_json(encode({"schema": "handrail.trust/1", "workspace": workspace, "revoked": revoked}))
    elif revoked:
        answer(f"{workspace} is no longer trusted: what its {PROJECT_FILE} loosens is ignored, {MCP_FILE} too.\n")
    else:
        answer(f"{workspace} was not trusted; nothing changed.\n")
    return OK


def _list(options: Namespace) -> int:
    given = trusted_projects(state_of_here())
    if options.json:
        projects = [{"workspace": path, "digest": trust.digest, "time": trust.time} for path, trust in given.items()]
        answer_json(encode({"schema": "handrail.trust/1", "projects": projects}))
    elif given:
        rows = [(path, trust.digest[:16], when(trust.time)) for path, trust in sorted(given.items())]
        answer(table([("workspace", "sha-256", "since"), *rows]))
    else:
        answer("No project is trusted.\n")
    return OK
