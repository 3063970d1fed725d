"""The checks of doctor. Each looks and changes nothing; its words name no user and no folder of theirs."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from handrail.cli.client_checks import clients
from handrail.cli.model_checks import models
from handrail.cli.preferences import project_folder, with_unknown_tools
from handrail.cli.rows import Row, spelled_size, without_home
from handrail.cli.sandbox_checks import sandbox
from handrail.cli.server_checks import servers
from handrail.kernel import openat2
from handrail.protocol.error import StoreError, UsageError
from handrail.runtime.offering import offered
from handrail.runtime.restoring import unsettled
from handrail.settings import SettingsError, load, state_folder, user_file
from handrail.store.audit import archives
from handrail.store.damage import find_damage
from handrail.store.folder import StateFolder, moved_away
from handrail.store.retention import bytes_in, last_use
from handrail.store.verify import verify
from handrail.workspace.search.binary import program_version, ripgrep_program

_LITTLE_SPACE = 200 * 1024 * 1024
_NO_SPACE = 10 * 1024 * 1024


def containment() -> Iterator[Row]:
    """How paths are kept inside the workspace."""
    how = "openat2: the kernel resolves every path beneath its root" if openat2.works() else "component walk"
    yield Row("containment", "ok", how)


def state() -> Iterator[Row]:
    """The state folder, and the audit in it."""
    try:
        path = state_folder(os.environ)
    except SettingsError:
        text = "the state folder is not known: HANDRAIL_STATE_DIR, XDG_STATE_HOME or HOME is no absolute path"
        yield Row("state", "error", text, "export HANDRAIL_STATE_DIR=/a/folder/of/yours")
        return
    shown = without_home(path)
    if not os.path.lexists(path):
        yield _to_be_made(path, shown)
    elif not os.path.isdir(path):
        yield Row("state", "error", f"{shown} is in the way: it is not a folder", f"mv {shown} {shown}.old")
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield Row("state", "error", f"{shown} cannot be written", f"chmod u+rwx {shown}")
    else:
        yield from _existing(path, shown)


def search() -> Iterator[Row]:
    """What searches: ripgrep, which one and which version."""
    program = ripgrep_program(())
    if program is None:
        install = "apt-get install ripgrep" if sys.platform == "linux" else "brew install ripgrep"
        yield Row("search", "warning", "there is no ripgrep; Python searches instead, slower", install)
        return
    shown, version = without_home(program), program_version(program)
    if version is None:
        yield Row("search", "error", f"ripgrep at {shown} does not run", f"{shown} --version")
    else:
        yield Row("search", "ok", f"ripgrep: {version} at {shown}")


def config() -> Iterator[Row]:
    """Whether the settings can be used."""
    try:
        path = user_file(os.environ)
        loaded = with_unknown_tools(load(os.environ, {}, project_folder(Namespace(workspace=None))))
    except SettingsError as error:
        count = len(error.problems)
        yield Row("config", "error", f"the settings have {count} problem{'s' * (count > 1)}", "handrail config")
        return
    try:
        offered(loaded.settings)
    except UsageError:
        yield Row("config", "error", "the settings name tools that cannot be had", "handrail tools")
        return
    there = "can be used" if os.path.exists(path) else "does not exist; the defaults hold"
    yield Row("config", "ok", f"user file {without_home(path)} {there}")
    for text in loaded.notes:
        yield Row("config", "warning", without_home(text), _settled_by(text))


def python() -> Iterator[Row]:
    """The interpreter."""
    major, minor, micro = sys.version_info[:3]
    yield Row("python", "ok", f"{sys.implementation.name} {major}.{minor}.{micro}")


CHECKS: tuple[Callable[[], Iterator[Row]], ...] = (
    *(containment, state, search, sandbox, config, servers, models, clients, python),
)


def _settled_by(remark: str) -> str:
    if remark.startswith("HANDRAIL_MODE="):
        return "unset HANDRAIL_MODE"
    return "handrail trust" if "handrail trust" in remark else "handrail config"


def _to_be_made(path: str, shown: str) -> Row:
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    if os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK):
        return Row("state", "ok", f"{shown} does not exist yet; the first call makes it")
    return Row("state", "error", f"{shown} cannot be made", "export HANDRAIL_STATE_DIR=/a/folder/of/yours")


def _existing(path: str, shown: str) -> Iterator[Row]:
    status = os.stat(path)
    if status.st_uid != os.geteuid():
        yield Row("state", "warning", f"{shown} belongs to another user", f"sudo chown -R $(id -u) {shown}")
    elif status.st_mode & 0o077:
        mode = f"{status.st_mode & 0o777:o}"
        yield Row("state", "warning", f"{shown} is open to other users (mode {mode})", f"chmod 700 {shown}")
    else:
        yield Row("state", "ok", f"{shown} is there, for its owner only")
    yield _space(path, shown)
    yield _contents(StateFolder(path))
    yield _audit(StateFolder(path))
    yield from _damage(StateFolder(path))


def _space(path: str, shown: str) -> Row:
    system = os.statvfs(path)
    free = system.f_bavail * system.f_frsize
    text = f"{free / 1024**3:.1f} GB free" if free >= 1024**3 else f"{free / 1024**2:.0f} MB free"
    if free >= _LITTLE_SPACE:
        return Row("state", "ok", text)
    return Row("state", "error" if free < _NO_SPACE else "warning", f"only {text}", f"df -h {shown}")


def _contents(folder: StateFolder) -> Row:
    """What takes the room."""
    sessions = folder.sessions()
    undo = sum(bytes_in(os.path.join(home, ".changes")) for home in folder.homes())
    kinds = {"sessions": sum(map(bytes_in, sessions)), "undo": undo}
    kinds |= {"stored outputs": bytes_in(os.path.join(folder.path, "blobs"))}
    kinds |= {"audit": sum(map(bytes_in, (folder.audit, *archives(folder.audit))))}
    sizes = ", ".join(f"{kind} {spelled_size(count)}" for kind, count in kinds.items())
    oldest = datetime.fromtimestamp(min(map(last_use, sessions), default=0), UTC).astimezone()
    since = f", the oldest last used on {oldest:%Y-%m-%d}" if sessions else ""
    return Row("state", "ok", f"{len(sessions):,} session{'s' * (len(sessions) != 1)}{since}; {sizes}")


def _damage(folder: StateFolder) -> Iterator[Row]:
    """What cannot be read. Moved away it stops nothing, and nothing of it is lost."""
    for found in find_damage(folder):
        name = "journal.db" if found.kind == "journal" else "changes.db"
        whose = f" of session {os.path.basename(found.folder)}" if found.kind == "journal" else ""
        path = without_home(os.path.join(found.folder, name))
        text = f"{found.kind}{whose}: {without_home(found.problem).partition('. ')[0]}"
        yield Row("state", "error", text, f"mv {path} {without_home(moved_away(found.folder, name))}")


def _audit(folder: StateFolder) -> Row:
    try:
        if left := len(unsettled(folder)):
            text = f"{left} session{'s' * (left > 1)} ended in a crash; the audit may lack records"
            return Row("state", "warning", text, "handrail audit verify")
        found = verify(folder)
    except StoreError as error:
        text = without_home(str(error)).partition(". ")[0]
        return Row(
            "state", "error", f"audit: {text}", f"mv {without_home(folder.audit)} {without_home(folder.audit)}.damaged"
        )
    if found.intact:
        return Row("state", "ok", f"audit: {found.records:,} record{'s' * (found.records != 1)} intact")
    return Row("state", "error", f"audit: {without_home(found.problems[0])}", "handrail audit verify")
