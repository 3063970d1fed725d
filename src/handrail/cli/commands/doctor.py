"""handrail doctor: checks that everything handrail needs is here.

A check changes nothing. Its texts name no user and no folder of the user's.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from types import SimpleNamespace
from typing import Literal, NamedTuple

from handrail.cli.context import add_unknown_tool_notes, find_project_folder, has_servers
from handrail.cli.exits import FAILED, OK
from handrail.cli.files import HostFileError, find_file
from handrail.cli.format import format_binary_size, replace_home
from handrail.cli.output import can_show, choose_out_paint, print_json, print_painted
from handrail.cli.parser import Command, add_json_option
from handrail.inspection import (
    SandboxDiagnosis,
    ServerStatus,
    check_servers,
    count_crashed_sessions,
    diagnose_sandbox,
    find_search_program,
    has_openat2,
    list_tool_specs,
)
from handrail.mcp.hosts.config_file import HostFile
from handrail.mcp.hosts.hosts import NAMES, McpHost, can_find_program, find_launch_command, list_hosts
from handrail.mcp.hosts.merge import ConfigSyntaxError
from handrail.models.providers import PROVIDERS, is_installed
from handrail.protocol.errors import StoreError, UsageError, build_install_command
from handrail.protocol.results import OVERLAY_TIER
from handrail.protocol.text import format_count, to_one_line
from handrail.protocol.version import VERSION
from handrail.protocol.wire import encode
from handrail.settings import Settings, SettingsError, load, resolve_state_folder, resolve_user_file
from handrail.settings.paths import TOOLS_FOLDER
from handrail.state import StoredState
from handrail.terminal.style import Style, measure_columns, wrap_line

_SIGNS = {"ok": "✓", "warning": "⚠", "error": "✗"}
_STYLES: dict[str, Style] = {"ok": "ok", "warning": "refused", "error": "failed"}
_PLAIN_SIGNS = {"ok": "ok   ", "warning": "warn ", "error": "ERROR"}
_LITTLE_SPACE_BYTES = 200 * 1024 * 1024
_NO_SPACE_BYTES = 10 * 1024 * 1024
_OTHER_STATE_FOLDER = "export HANDRAIL_STATE_DIR=/a/folder/of/yours"


class Finding(NamedTuple):
    """The result of one check. A warning or an error carries the command that fixes it."""

    group: str
    status: Literal["ok", "warning", "error"]
    text: str
    fix: str | None = None


def run(options: SimpleNamespace) -> int:
    findings = [finding for check in _CHECKS for finding in check()]
    failed = any(finding.status == "error" for finding in findings)
    if options.json:
        body = {"schema": "handrail.doctor/1", "ok": not failed, "version": VERSION, "platform": sys.platform}
        print_json(encode({**body, "rows": [finding._asdict() for finding in findings]}))
    else:
        print_painted("".join(_render_findings(findings)))
    return FAILED if failed else OK


def _render_findings(findings: list[Finding]) -> Iterator[str]:
    signs, arrow = (_SIGNS, "→") if can_show("✓⚠✗→") else (_PLAIN_SIGNS, "->")
    paint = choose_out_paint()
    for group, members in groupby(findings, lambda finding: finding.group):
        yield f"{paint(group, 'heading')}\n"
        for finding in members:
            sign = paint(signs[finding.status], _STYLES[finding.status])
            yield wrap_line(f"  {sign} {to_one_line(finding.text)}", measure_columns(sys.stdout), 4)
            if finding.fix:
                yield f"      {arrow} {to_one_line(finding.fix)}\n"
    ok, warnings, problems = ([one for one in findings if one.status == status] for status in _STYLES)
    fix = next((one.fix for one in (*problems, *warnings) if one.fix), None)
    counts = f"{len(ok)} ok, {format_count(len(warnings), 'warning')}, {format_count(len(problems), 'problem')}."
    yield f"\n{counts}{f' Next: {to_one_line(fix)}' if fix else ''}\n"


def _find_project() -> str | None:
    return find_project_folder(SimpleNamespace(workspace=None))


def _check_containment() -> Iterator[Finding]:
    text = "openat2: the kernel keeps file access inside the workspace" if has_openat2() else "component walk"
    yield Finding("containment", "ok", text)


def _check_python() -> Iterator[Finding]:
    major, minor, micro = sys.version_info[:3]
    yield Finding("python", "ok", f"{sys.implementation.name} {major}.{minor}.{micro}")


def _check_search() -> Iterator[Finding]:
    program = find_search_program()
    if program is None:
        install = "apt-get install ripgrep" if sys.platform == "linux" else "brew install ripgrep"
        yield Finding("search", "warning", "ripgrep is missing; the slower Python search is used", install)
        return
    path = replace_home(program.path)
    if program.version is None:
        yield Finding("search", "error", f"ripgrep at {path} does not run", f"{path} --version")
    else:
        yield Finding("search", "ok", f"ripgrep: {program.version} at {path}")


def _check_config() -> Iterator[Finding]:
    try:
        path = resolve_user_file(os.environ)
        folder = _find_project()
        loaded = add_unknown_tool_notes(load(os.environ, {}, folder), folder)
    except SettingsError as error:
        count = len(error.problems)
        yield Finding("config", "error", f"the settings have {format_count(count, 'problem')}", "handrail config")
        return
    try:
        list_tool_specs(loaded.settings, loaded.tool_files)
    except UsageError:
        yield Finding("config", "error", "the settings name tools that do not exist", "handrail tools")
        return
    there = "can be used" if os.path.exists(path) else "does not exist; the defaults apply"
    yield Finding("config", "ok", f"user file {replace_home(path)} {there}")
    fixes = {one.note: "handrail trust" for one in loaded.ignored if one.until_trusted}
    fixes |= {one.note: "unset HANDRAIL_MODE" for one in loaded.ignored if one.kind == "environment"}
    for note in loaded.notes:
        fix = "handrail trust" if note.startswith(TOOLS_FOLDER) else fixes.get(note, "handrail config")
        yield Finding("config", "warning", replace_home(note), fix)


def _check_models() -> Iterator[Finding]:
    """Which providers are installed, and which keys are set. No key is shown."""
    installed = {provider.name for provider in PROVIDERS.values() if is_installed(provider)}
    if not installed:
        install = replace_home(build_install_command("models"))
        yield Finding("models", "ok", f"no library for models is installed; {install} brings it")
    keyed = [provider for provider in PROVIDERS.values() if provider.key(os.environ) is not None]
    for provider in keyed:
        variable = next(name for name in provider.keys if os.environ.get(name, "").strip())
        text = f"{provider.name}: {variable} is set"
        if provider.name in installed:
            yield Finding("models", "ok", text)
        else:
            fix = replace_home(build_install_command(provider.extra))
            yield Finding("models", "warning", f"{text}, but its library is missing", fix)
    if installed and not keyed:
        variables = ", ".join(provider.keys[0] for provider in PROVIDERS.values() if not provider.local)
        yield Finding("models", "ok", f"no key is set ({variables}); local servers need none: ollama:…")


# The state folder


def _check_state() -> Iterator[Finding]:
    try:
        path = resolve_state_folder(os.environ)
    except SettingsError:
        text = "the state folder is unknown: HANDRAIL_STATE_DIR, XDG_STATE_HOME or HOME is not an absolute path"
        yield Finding("state", "error", text, _OTHER_STATE_FOLDER)
        return
    shown = replace_home(path)
    if not os.path.lexists(path):
        parent = os.path.dirname(path)
        while not os.path.lexists(parent):
            parent = os.path.dirname(parent)
        if os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK):
            yield Finding("state", "ok", f"{shown} does not exist yet; the first call creates it")
        else:
            yield Finding("state", "error", f"{shown} cannot be made", _OTHER_STATE_FOLDER)
    elif not os.path.isdir(path):
        yield Finding("state", "error", f"{shown} is not a folder", f"mv {shown} {shown}.old")
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("state", "error", f"{shown} cannot be written", f"chmod u+rwx {shown}")
    else:
        state = StoredState(path)
        yield _check_owner(path, shown)
        yield _check_space(path, shown)
        yield _measure_state(state)
        yield _check_audit(state)
        yield from _find_damage(state)


def _check_owner(path: str, shown: str) -> Finding:
    status = os.stat(path)
    if status.st_uid != os.geteuid():
        return Finding("state", "warning", f"{shown} belongs to another user", f"sudo chown -R $(id -u) {shown}")
    if status.st_mode & 0o077:
        mode = f"{status.st_mode & 0o777:o}"
        return Finding("state", "warning", f"{shown} is open to other users (mode {mode})", f"chmod 700 {shown}")
    return Finding("state", "ok", f"{shown} is private to its owner")


def _check_space(path: str, shown: str) -> Finding:
    system = os.statvfs(path)
    free = system.f_bavail * system.f_frsize
    text = f"{free / 1024**3:.1f} GB free" if free >= 1024**3 else f"{free / 1024**2:.0f} MB free"
    if free >= _LITTLE_SPACE_BYTES:
        return Finding("state", "ok", text)
    return Finding("state", "error" if free < _NO_SPACE_BYTES else "warning", f"only {text}", f"df -h {shown}")


def _measure_state(state: StoredState) -> Finding:
    found, count = state.measure(), len(state.sessions())
    kinds = {"sessions": found.sessions, "undo": found.undo, "stored outputs": found.outputs, "audit": found.audit}
    sizes = ", ".join(f"{kind} {format_binary_size(size)}" for kind, size in kinds.items())
    since = f", the oldest last used on {state.find_oldest_use().astimezone():%Y-%m-%d}" if count else ""
    return Finding("state", "ok", f"{format_count(count, 'session')}{since}; {sizes}")


def _check_audit(state: StoredState) -> Finding:
    try:
        if left := count_crashed_sessions(state):
            text = f"{format_count(left, 'session')} crashed; the audit may lack records"
            return Finding("state", "warning", text, "handrail audit verify")
        found = state.verify()
    except StoreError as error:
        path = replace_home(state.audit)
        return Finding("state", "error", f"audit: {replace_home(error.problem)}", f"mv {path} {path}.damaged")
    if found.intact:
        return Finding("state", "ok", f"audit: {format_count(found.records, 'record')} intact")
    return Finding("state", "error", f"audit: {replace_home(found.problems[0])}", "handrail audit verify")


def _find_damage(state: StoredState) -> Iterator[Finding]:
    """The unreadable databases. The fix moves one away and loses nothing of it."""
    for found in state.find_damage():
        owner = f" of session {os.path.basename(found.folder)}" if found.kind == "journal" else ""
        text = f"{found.kind}{owner}: {replace_home(found.problem)}"
        yield Finding("state", "error", text, f"mv {replace_home(found.path)} {replace_home(found.new_path)}")


# The sandbox


def _check_sandbox() -> Iterator[Finding]:
    folder = _find_project()
    roots = (os.path.realpath(folder),) if folder else ()
    settings, state = Settings(), "/nowhere/handrail"
    with suppress(SettingsError):  # the check of the settings reports it
        settings = load(os.environ, {}, folder).settings
    try:
        state = resolve_state_folder(os.environ)
    except SettingsError:  # the check of the state folder reports it
        roots = ()
    found = diagnose_sandbox(roots, settings, state)
    yield _check_tier(found, settings.sandbox.least)
    for failure in found.report.failures:
        yield _describe_failure(failure.tier, failure.reason, failure.fix or found.fix)
    for path, why in found.refused_toolchains:
        text = f"the toolchain {replace_home(path)} is not shown: {why}"
        yield Finding("sandbox", "warning", text, "handrail config")
    for name, why in found.withheld_variables.items():
        yield Finding(
            "sandbox", "warning", f"the variable {name} is not passed to commands: it {why}", "handrail config"
        )
    for fact in found.kernel_facts:
        yield Finding("sandbox", "ok", fact)
    yield _check_network(found, settings)


def _check_tier(found: SandboxDiagnosis, least: int) -> Finding:
    tier = found.report.tier
    text = f"tier {tier}: commands are confined by {replace_home(found.report.means)}"
    if tier < least:
        few = " that may change files" if tier == 2 else ""
        text = f"{text}; settings ask for tier {least} at least, so no command{few} runs"
        return Finding("sandbox", "error", text, found.fix or "handrail config")
    if tier == 0:
        return Finding("sandbox", "warning", f"{text}; every command needs approval", found.fix or "handrail config")
    return Finding("sandbox", "ok", text)


def _describe_failure(tier: int, reason: str, fix: str | None) -> Finding:
    does_not = "has no overlay here" if tier == OVERLAY_TIER else "does not work"
    text = f"tier {tier} {does_not}: {replace_home(reason)}"
    # A shell does not expand ~ in quotes.
    return Finding("sandbox", "warning", text, replace_home(fix) if fix and "'" not in fix else fix)


def _check_network(found: SandboxDiagnosis, settings: Settings) -> Finding:
    if "net.connect" in settings.tools.deny:
        return Finding("network", "ok", "closed to commands and servers: [tools] deny lists net.connect")
    listed, tier = len(settings.network.allow), found.report.tier
    entries = f"{listed} entr{'y' if listed == 1 else 'ies'}"
    if tier == 0:
        text = "commands can reach every host, because there is no sandbox"
        return Finding("network", "warning", text, found.fix or "handrail config")
    if tier < 2:
        lists = f"; network.allow has {entries}, which open nothing" if listed else ""
        text = f"commands have no network; opening single hosts needs sandbox tier 2{lists}"
        return Finding("network", "warning" if listed else "ok", text, found.fix if listed else None)
    if listed:
        return Finding("network", "ok", f"network.allow opens these hosts to commands that may write: {entries}")
    return Finding("network", "ok", "commands have no network; each approval lists the hosts it opens")


# Other MCP servers


def _check_servers() -> Iterator[Finding]:
    """Starts each server that the settings or a trusted `.mcp.json` name, and ends it."""
    folder = _find_project()
    try:
        loaded = load(os.environ, {}, folder)
    except SettingsError:  # the check of the settings reports it
        return
    if folder is None or not has_servers(loaded, folder):
        return
    from handrail.mcp.client.sources import find_sources  # noqa: PLC0415  few have other servers

    found = find_sources(loaded, folder, os.environ)
    for note in found.notes:
        fix = found.fixes.get(note)
        yield Finding("mcp", "warning", replace_home(note), replace_home(fix or "handrail config"))
    for status in check_servers(found.sources):
        if status.server not in found.unusable:
            yield _describe_server(status)


def _describe_server(status: ServerStatus) -> Finding:
    problems = status.problems
    if status.tools:
        text = f"{status.server}: {format_count(status.tools, 'tool')}"
        shown = replace_home("; ".join((text, *problems)))
        return Finding("mcp", "warning", shown, "handrail tools") if problems else Finding("mcp", "ok", shown)
    if not problems:
        return Finding("mcp", "warning", f"{status.server}: it offers no tools", "handrail config")
    text = f"{status.server}: {'; '.join(problems)}"
    return Finding("mcp", "error", replace_home(text), "handrail config")


# Clients


def _check_clients() -> Iterator[Finding]:
    """Which clients are set up to use handrail here. Their files are only read."""
    folder, count = _find_project(), 0
    for host in list_hosts(find_launch_command(os.environ), os.environ) if folder else ():
        if finding := _check_client(host, os.path.realpath(folder or "")):
            count += 1
            yield finding
    if not count:
        how = f"Add it: handrail mcp --config NAME --write. Names: {', '.join(NAMES)}"
        yield Finding("clients", "ok", f"not set up in any client. {how}")


def _check_client(host: McpHost, workspace: str) -> Finding | None:
    """None for a client that has no entry of handrail."""
    show = f"handrail mcp --config {host.name}"
    fix = f"{show} --write"
    try:
        texts = [_read_host_file(file, workspace) for file in host.files]
    except HostFileError as error:
        return Finding("clients", "warning", f"{host.title}: {replace_home(error.problem)}", show)
    if texts[0] is None or not host.files[0].has_handrail_entry(texts[0]):
        return None
    for program in host.files[0].list_programs(texts[0]):
        if not can_find_program(program, workspace, os.environ):
            # The client may have another PATH, but an absolute path is the same for all.
            is_path = os.path.isabs(program)
            where = "does not exist:" if is_path else "is not on PATH; unless it is on the client's PATH,"
            text = f"{host.title} is to start {replace_home(program)}, which {where} it has none of handrail's tools"
            return Finding("clients", "error" if is_path else "warning", f"{text}. {host.off}", fix)
    if any(text is None or not file.has_other_settings(text) for file, text in zip(host.files, texts, strict=True)):
        return Finding(
            "clients", "warning", f"{host.title} has handrail's tools, but its own tools still bypass handrail", fix
        )
    return Finding("clients", "ok", f"{host.title} has handrail's tools. {host.off}")


def _read_host_file(file: HostFile, workspace: str) -> str | None:
    found = find_file(file.paths, workspace, is_user_file=file.is_user_file)
    try:
        if found.text is not None:
            file.check(found.text)
    except ConfigSyntaxError as error:
        raise HostFileError(f"{found.shown} cannot be used: {error}; correct it") from None
    return found.text


_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _check_containment,
    _check_state,
    _check_search,
    _check_sandbox,
    _check_config,
    _check_servers,
    _check_models,
    _check_clients,
    _check_python,
)


COMMANDS = {
    "doctor": Command(run, add_json_option, ("handrail doctor", "handrail doctor --json"), {FAILED: "a check failed"}),
}
