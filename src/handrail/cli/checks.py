"""The checks of doctor. Each looks and changes nothing; its words name no user and no folder of theirs."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator

from handrail.cli.client_checks import check_clients
from handrail.cli.context import add_unknown_tool_notes, find_project_folder
from handrail.cli.format import Finding, format_binary_size, replace_home
from handrail.cli.model_checks import check_models
from handrail.cli.sandbox_checks import check_sandbox
from handrail.cli.server_checks import check_servers
from handrail.kernel import files
from handrail.protocol.errors import StoreError, UsageError
from handrail.runtime.recovery import list_unsettled_sessions
from handrail.runtime.registry import build_tool_set
from handrail.settings import SettingsError, load, resolve_state_folder, resolve_user_file
from handrail.state import StoredState
from handrail.workspace.search.ripgrep import find_ripgrep, read_program_version

_LITTLE_SPACE_BYTES = 200 * 1024 * 1024
_NO_SPACE_BYTES = 10 * 1024 * 1024


def check_containment() -> Iterator[Finding]:
    """How paths are kept inside the workspace."""
    how = "openat2: the kernel resolves every path beneath its root" if files.has_openat2() else "component walk"
    yield Finding("containment", "ok", how)


def check_state() -> Iterator[Finding]:
    """The state folder, and the audit in it."""
    try:
        path = resolve_state_folder(os.environ)
    except SettingsError:
        text = "the state folder is not known: HANDRAIL_STATE_DIR, XDG_STATE_HOME or HOME is no absolute path"
        yield Finding("state", "error", text, "export HANDRAIL_STATE_DIR=/a/folder/of/yours")
        return
    shown = replace_home(path)
    if not os.path.lexists(path):
        yield _to_be_made(path, shown)
    elif not os.path.isdir(path):
        yield Finding("state", "error", f"{shown} is in the way: it is not a folder", f"mv {shown} {shown}.old")
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("state", "error", f"{shown} cannot be written", f"chmod u+rwx {shown}")
    else:
        yield from _existing(path, shown)


def check_search() -> Iterator[Finding]:
    """What searches: ripgrep, which one and which version."""
    program = find_ripgrep(())
    if program is None:
        install = "apt-get install ripgrep" if sys.platform == "linux" else "brew install ripgrep"
        yield Finding("search", "warning", "there is no ripgrep; Python searches instead, slower", install)
        return
    shown, version = replace_home(program), read_program_version(program)
    if version is None:
        yield Finding("search", "error", f"ripgrep at {shown} does not run", f"{shown} --version")
    else:
        yield Finding("search", "ok", f"ripgrep: {version} at {shown}")


def check_config() -> Iterator[Finding]:
    """Whether the settings can be used."""
    try:
        path = resolve_user_file(os.environ)
        loaded = add_unknown_tool_notes(load(os.environ, {}, find_project_folder(Namespace(workspace=None))))
    except SettingsError as error:
        count = len(error.problems)
        yield Finding("config", "error", f"the settings have {count} problem{'s' * (count > 1)}", "handrail config")
        return
    try:
        build_tool_set(loaded.settings)
    except UsageError:
        yield Finding("config", "error", "the settings name tools that cannot be had", "handrail tools")
        return
    there = "can be used" if os.path.exists(path) else "does not exist; the defaults hold"
    yield Finding("config", "ok", f"user file {replace_home(path)} {there}")
    for text in loaded.notes:
        yield Finding("config", "warning", replace_home(text), _settled_by(text))


def check_python() -> Iterator[Finding]:
    """The interpreter."""
    major, minor, micro = sys.version_info[:3]
    yield Finding("python", "ok", f"{sys.implementation.name} {major}.{minor}.{micro}")


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    *(
        check_containment,
        check_state,
        check_search,
        check_sandbox,
        check_config,
        check_servers,
        check_models,
        check_clients,
        check_python,
    ),
)


def _settled_by(remark: str) -> str:
    if remark.startswith("HANDRAIL_MODE="):
        return "unset HANDRAIL_MODE"
    return "handrail trust" if "handrail trust" in remark else "handrail config"


def _to_be_made(path: str, shown: str) -> Finding:
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    if os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK):
        return Finding("state", "ok", f"{shown} does not exist yet; the first call makes it")
    return Finding("state", "error", f"{shown} cannot be made", "export HANDRAIL_STATE_DIR=/a/folder/of/yours")


def _existing(path: str, shown: str) -> Iterator[Finding]:
    status = os.stat(path)
    if status.st_uid != os.geteuid():
        yield Finding("state", "warning", f"{shown} belongs to another user", f"sudo chown -R $(id -u) {shown}")
    elif status.st_mode & 0o077:
        mode = f"{status.st_mode & 0o777:o}"
        yield Finding("state", "warning", f"{shown} is open to other users (mode {mode})", f"chmod 700 {shown}")
    else:
        yield Finding("state", "ok", f"{shown} is there, for its owner only")
    yield _space(path, shown)
    state = StoredState(path)
    yield _contents(state)
    yield _audit(state)
    yield from _damage(state)


def _space(path: str, shown: str) -> Finding:
    system = os.statvfs(path)
    free = system.f_bavail * system.f_frsize
    text = f"{free / 1024**3:.1f} GB free" if free >= 1024**3 else f"{free / 1024**2:.0f} MB free"
    if free >= _LITTLE_SPACE_BYTES:
        return Finding("state", "ok", text)
    return Finding("state", "error" if free < _NO_SPACE_BYTES else "warning", f"only {text}", f"df -h {shown}")


def _contents(state: StoredState) -> Finding:
    """What takes the room."""
    found, count = state.measure(), len(state.sessions())
    kinds = {"sessions": found.sessions, "undo": found.undo, "stored outputs": found.outputs, "audit": found.audit}
    sizes = ", ".join(f"{kind} {format_binary_size(size)}" for kind, size in kinds.items())
    since = f", the oldest last used on {state.find_oldest_use().astimezone():%Y-%m-%d}" if count else ""
    return Finding("state", "ok", f"{count:,} session{'s' * (count != 1)}{since}; {sizes}")


def _damage(state: StoredState) -> Iterator[Finding]:
    """What cannot be read. Moved away it stops nothing, and nothing of it is lost."""
    for found in state.find_damage():
        whose = f" of session {os.path.basename(found.folder)}" if found.kind == "journal" else ""
        text = f"{found.kind}{whose}: {replace_home(found.problem)}"
        yield Finding("state", "error", text, f"mv {replace_home(found.path)} {replace_home(found.new_path)}")


def _audit(state: StoredState) -> Finding:
    try:
        if left := len(list_unsettled_sessions(state)):
            text = f"{left} session{'s' * (left > 1)} ended in a crash; the audit may lack records"
            return Finding("state", "warning", text, "handrail audit verify")
        found = state.verify()
    except StoreError as error:
        path = replace_home(state.audit)
        return Finding("state", "error", f"audit: {replace_home(error.problem)}", f"mv {path} {path}.damaged")
    if found.intact:
        return Finding("state", "ok", f"audit: {found.records:,} record{'s' * (found.records != 1)} intact")
    return Finding("state", "error", f"audit: {replace_home(found.problems[0])}", "handrail audit verify")
