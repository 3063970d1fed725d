"""mcp --config: tells another program's agent of our tools, in the files that it reads."""

import os
import shlex
from argparse import Namespace

import msgspec

from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.host_files import HostFileState, check_writable, find_file, write_file
from handrail.cli.output import print_diff, print_note, print_out, warn
from handrail.cli.place import resolve_workspace
from handrail.edit.diff import build_unified_diff
from handrail.mcp.hosts.config_file import HostFile
from handrail.mcp.hosts.hosts import NAMES, LaunchCommand, McpHost, find_host_name, find_launch_command, list_hosts
from handrail.mcp.hosts.merge import CannotMerge, ConfigSyntaxError
from handrail.protocol.records import check_session_id
from handrail.protocol.text import to_one_line


class ConfigEdit(msgspec.Struct, frozen=True):
    """What becomes of a file; None where that is to be done by hand."""

    file: HostFile
    found: HostFileState
    after: str | None
    why_not: str = ""


def run(options: Namespace) -> int:
    """Shows what would change, and writes it where that was asked for."""
    if options.session:
        check_session_id(options.session)
    command = find_launch_command(os.environ, tuple(_given(options, "mode", "session")))
    host = _host(options, command)
    workspace = os.path.realpath(resolve_workspace(options))
    if not os.path.isdir(workspace):
        raise CommandFailed(f"the workspace {workspace} is no folder. Nothing was written. Name one that is there.")
    plans = [_plan(file, workspace) for file in host.files]
    for plan in plans:
        if plan.after is not None:
            print_diff(build_unified_diff(plan.found.text, plan.after, plan.found.shown.lstrip("/")).text)
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


def _again(options: Namespace, host: McpHost) -> str:
    """What writes exactly what is shown."""
    given = _given(options, "mode", "session", "workspace")
    return shlex.join(["handrail", "mcp", "--config", host.name, *given, "--write"])


def _host(options: Namespace, command: LaunchCommand) -> McpHost:
    name = find_host_name(options.config)
    if name is None:
        raise CommandFailed(f"there is no client {to_one_line(options.config[:80])!r}.{_nearest(options.config)}")
    return next(host for host in list_hosts(command, os.environ) if host.name == name)


def _nearest(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only for a mistake

    near = get_close_matches(name.lower()[:80], NAMES, n=1)
    meant_so = f" Did you mean {near[0]}?" if near else ""
    return (
        f"{meant_so} There are {', '.join(NAMES)}. Any other client is told to start: handrail mcp --workspace FOLDER"
    )


def _plan(file: HostFile, workspace: str) -> ConfigEdit:
    found = find_file(file, workspace)
    try:
        return ConfigEdit(file, found, file.merge(found.text))
    except ConfigSyntaxError as error:
        raise CommandFailed(
            f"{found.shown} cannot be used: {error}. Nothing was written. Correct it, then try again."
        ) from None
    except CannotMerge as error:
        return ConfigEdit(file, found, None, str(error))


def _by_hand(options: Namespace, host: McpHost, plans: list[ConfigEdit]) -> int:
    """What cannot be put in its place is shown, so that somebody can; and then nothing is written."""
    for plan in plans:
        if plan.after is None:
            warn(f"{plan.found.shown} is left alone: {plan.why_not}. What {host.title} needs there:")
            print_out(plan.file.render_snippet())
    warn(f"Nothing was written. Put it there by hand, then: {_again(options, host)}")
    return FAILED


def _promises(host: McpHost, ahead: list[ConfigEdit]) -> list[str]:
    own = [plan.found.path for plan in ahead if plan.file.is_user_file]
    outside = [f"Outside of the workspace, among your own settings: {', '.join(own)}"] if own else []
    return [f"{host.title}: {host.off}", f"Not switched off: {host.left}", *outside]


def _write(host: McpHost, ahead: list[ConfigEdit], remark: str) -> None:
    for plan in ahead:
        check_writable(plan.found)
    _say(*_promises(host, ahead), remark)
    written: list[str] = []
    for plan in ahead:
        try:
            write_file(plan.found, plan.after or "")
        except CommandFailed as stop:
            before = f" Written before that: {', '.join(written)}." if written else ""
            raise CommandFailed(f"{stop}{before}", stop.code) from None
        written.append(plan.found.shown)
    _say(f"Written: {', '.join(written)}. {host.then}")


def _say(*lines: str) -> None:
    for line in filter(None, lines):
        print_note(line)
