"""handrail mcp --config: adds handrail to the settings files of a client."""

import os
import shlex
from types import SimpleNamespace

import msgspec

from handrail.cli.context import resolve_workspace
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.files import HostFileState, check_writable, find_file, write_file
from handrail.cli.output import print_diff, print_error, print_note, print_out
from handrail.edit.diff import build_unified_diff
from handrail.mcp.hosts.config_file import HostFile
from handrail.mcp.hosts.hosts import NAMES, McpHost, find_host_name, find_launch_command, list_hosts
from handrail.mcp.hosts.merge import CannotMerge, ConfigSyntaxError
from handrail.protocol.records import check_session_id
from handrail.protocol.text import find_similar, to_one_line


class ConfigEdit(msgspec.Struct, frozen=True):
    """A planned edit of a settings file."""

    file: HostFile
    found: HostFileState
    after: str | None
    """The new text. None if only a person can edit the file."""
    why_not: str = ""


def configure_client(options: SimpleNamespace) -> int:
    """Shows the edits as diffs. With --write, writes them."""
    if options.session:
        check_session_id(options.session)
    command = find_launch_command(os.environ, tuple(_list_given(options, "mode", "session")))
    host = next(one for one in list_hosts(command, os.environ) if one.name == _resolve_host_name(options.config))
    workspace = os.path.realpath(resolve_workspace(options))
    if not os.path.isdir(workspace):
        raise CommandFailed(f"the workspace {workspace} is not a folder. Nothing was written.")
    edits = [_plan_edit(file, workspace) for file in host.files]
    for edit in edits:
        if edit.after is not None:
            print_diff(build_unified_diff(edit.found.text, edit.after, edit.found.shown.lstrip("/")).text)
    given = _list_given(options, "mode", "session", "workspace")
    write = shlex.join(["handrail", "mcp", "--config", host.name, *given, "--write"])
    if any(edit.after is None for edit in edits):
        return _print_snippets(host, edits, write)
    pending = [edit for edit in edits if edit.after != edit.found.text]
    if not pending:
        print_note(f"{host.title}: already set up. {host.left}")
    elif options.write:
        _write_edits(host, pending, command.remark)
    else:
        _print_effects(host, pending, command.remark)
        print_note(f"Nothing was written. To write it: {write}")
    return OK


def _list_given(options: SimpleNamespace, *names: str) -> list[str]:
    """The words of the options that were given."""
    return [word for name in names if (value := getattr(options, name)) for word in (f"--{name}", value)]


def _resolve_host_name(spelled: str) -> str:
    if name := find_host_name(spelled):
        return name
    near = find_similar(spelled.lower(), NAMES)
    suggestion = f" Did you mean {near}?" if near else ""
    raise CommandFailed(
        f"there is no client {to_one_line(spelled[:80])!r}.{suggestion} Known clients: {', '.join(NAMES)}."
        " Other clients run: handrail mcp --workspace FOLDER"
    )


def _plan_edit(file: HostFile, workspace: str) -> ConfigEdit:
    found = find_file(file.paths, workspace, is_user_file=file.is_user_file)
    try:
        return ConfigEdit(file, found, file.merge(found.text))
    except ConfigSyntaxError as error:
        problem = f"{found.shown} cannot be used: {error}. Nothing was written."
        raise CommandFailed(problem, then=f"${{EDITOR:-vi}} {shlex.quote(found.path)}") from None
    except CannotMerge as error:
        return ConfigEdit(file, found, None, str(error))


def _print_snippets(host: McpHost, edits: list[ConfigEdit], write: str) -> int:
    """Prints what a person has to add by hand."""
    for edit in edits:
        if edit.after is None:
            print_error(f"{edit.found.shown} was not changed: {edit.why_not}. Add this for {host.title}:")
            print_out(edit.file.render_snippet())
    print_error("nothing was written.", write)
    return FAILED


def _print_effects(host: McpHost, pending: list[ConfigEdit], remark: str) -> None:
    print_note(f"{host.title}, with these settings: {host.off}")
    print_note(f"Not disabled: {host.left}")
    if own := [edit.found.path for edit in pending if edit.file.is_user_file]:
        print_note(f"In your own settings, outside the workspace: {', '.join(own)}")
    if remark:
        print_note(remark)


def _write_edits(host: McpHost, pending: list[ConfigEdit], remark: str) -> None:
    for edit in pending:
        check_writable(edit.found)
    _print_effects(host, pending, remark)
    written: list[str] = []
    for edit in pending:
        try:
            write_file(edit.found, edit.after or "")
        except CommandFailed as stop:
            before = f" Written before that: {', '.join(written)}." if written else ""
            raise CommandFailed(f"{stop}{before}", stop.code, then=stop.then) from None
        written.append(edit.found.shown)
    print_note(f"Written: {', '.join(written)}. {host.then}")
