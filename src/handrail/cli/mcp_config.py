"""mcp --config: tells another program's agent of our tools, in the files that it reads."""

import os
import shlex
from argparse import Namespace

import msgspec

from handrail.cli.exits import FAILED, OK, Stop
from handrail.cli.host_files import Found, check_writable, find_file, write_file
from handrail.cli.output import answer, answer_difference, note, one_line, warn
from handrail.cli.place import workspace_of
from handrail.edit.diff import unified_diff
from handrail.mcp.hosts.command import Command, command_here
from handrail.mcp.hosts.editing.places import Broken
from handrail.mcp.hosts.editing.wanted import Misfit
from handrail.mcp.hosts.host import Host, HostFile, changed, snippet
from handrail.mcp.hosts.known import NAMES, hosts, meant
from handrail.store.folder import session_name


class Plan(msgspec.Struct, frozen=True):
    """What becomes of a file; None where that is to be done by hand."""

    file: HostFile
    found: Found
    after: str | None
    why_not: str = ""


def run(options: Namespace) -> int:
    """Shows what would change, and writes it where that was asked for."""
    if options.session:
        session_name(options.session)
    command = command_here(os.environ, tuple(_given(options, "mode", "session")))
    host = _host(options, command)
    workspace = os.path.realpath(workspace_of(options))
    if not os.path.isdir(workspace):
        raise Stop(f"the workspace {workspace} is no folder. Nothing was written. Name one that is there.")
    plans = [_plan(file, workspace) for file in host.files]
    for plan in plans:
        if plan.after is not None:
            answer_difference(unified_diff(plan.found.text, plan.after, plan.found.shown.lstrip("/")).text)
    if any(plan.after is None for plan in plans):
        return _by_hand(options, host, plans)
    ahead = [plan for plan in plans if plan.after != plan.found.text]
    if not ahead:
        _say(f"{host.title}: already there; nothing is to be changed. {host.left}")
    elif options.write:
        _write(host, ahead, command.remark)
    else:
        _say(*_promises(host, ahead), command.remark)
        _say(f"Nothing was written. To write it: {_again(options, host)}")
    return OK


def _given(options: Namespace, *names: str) -> list[str]:
    """Those of the options that were given, as words."""
    return [word for name in names if (value := getattr(options, name)) for word in (f"--{name}", value)]


def _again(options: Namespace, host: Host) -> str:
    """What writes exactly what is shown."""
    given = _given(options, "mode", "session", "workspace")
    return shlex.join(["handrail", "mcp", "--config", host.name, *given, "--write"])


def _host(options: Namespace, command: Command) -> Host:
    name = meant(options.config)
    if name is None:
        raise Stop(f"there is no client {one_line(options.config[:80])!r}.{_nearest(options.config)}")
    return next(host for host in hosts(command, os.environ) if host.name == name)


def _nearest(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

    near = get_close_matches(name.lower()[:80], NAMES, n=1)
    meant_so = f" Did you mean {near[0]}?" if near else ""
    return (
        f"{meant_so} There are {', '.join(NAMES)}. Any other client is told to start: handrail mcp --workspace FOLDER"
    )


def _plan(file: HostFile, workspace: str) -> Plan:
    found = find_file(file, workspace)
    try:
        return Plan(file, found, changed(file, found.text))
    except Broken as error:
        raise Stop(f"{found.shown} cannot be used: {error}. Nothing was written. Correct it, then try again.") from None
    except Misfit as error:
        return Plan(file, found, None, str(error))


def _by_hand(options: Namespace, host: Host, plans: list[Plan]) -> int:
    """What cannot be put in its place is shown, so that somebody can; and then nothing is written."""
    for plan in plans:
        if plan.after is None:
            warn(f"{plan.found.shown} is left alone: {plan.why_not}. What {host.title} needs there:")
            answer(snippet(plan.file))
    warn(f"Nothing was written. Put it there by hand, then: {_again(options, host)}")
    return FAILED


def _promises(host: Host, ahead: list[Plan]) -> list[str]:
    own = [plan.found.path for plan in ahead if plan.file.of_the_person]
    outside = [f"Outside of the workspace, among your own settings: {', '.join(own)}"] if own else []
    return [f"{host.title}: {host.off}", f"Not switched off: {host.left}", *outside]


def _write(host: Host, ahead: list[Plan], remark: str) -> None:
    for plan in ahead:
        check_writable(plan.found)
    _say(*_promises(host, ahead), remark)
    written: list[str] = []
    for plan in ahead:
        try:
            write_file(plan.found, plan.after or "")
        except Stop as stop:
            before = f" Written before that: {', '.join(written)}." if written else ""
            raise Stop(f"{stop}{before}", stop.code) from None
        written.append(plan.found.shown)
    _say(f"Written: {', '.join(written)}. {host.then}")


def _say(*lines: str) -> None:
    for line in filter(None, lines):
        note(line)
