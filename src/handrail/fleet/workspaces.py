"""The workspace of a run: a folder that all workers share, or a clone of a repository.

A clone belongs to one worker. The next worker clones the same commit again, and repeats the changes of the change log.
The result is one commit over the cloned one, on a branch of the session.
"""

import os
import subprocess
from collections.abc import Mapping
from contextlib import closing, suppress
from urllib.parse import urlsplit, urlunsplit

from handrail.changes.apply import apply_steps
from handrail.changes.history import History
from handrail.changes.model import ApplyOptions
from handrail.fleet.options import GitWorkspace
from handrail.fleet.sessions import Claim, FleetSessions
from handrail.protocol.changes import State
from handrail.protocol.errors import StoreError, ToolError, UsageError
from handrail.protocol.text import render_value
from handrail.store.change_log import Step
from handrail.store.postgres import StaleWorkerError
from handrail.store.shared_store import SharedStore
from handrail.store.state_dir import StateFolder
from handrail.workspace.workspace import Workspace

_GIT = b".git/"
_GIT_SECONDS = 600
_OWN = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.bare=false", "-c", "gc.auto=0")
_NO_SETTINGS = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
"""So that no filter of a file in the workspace runs a program."""
_AUTHOR = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "handrail"), ("EMAIL", "handrail@localhost"))
}


class FolderWorkspace:
    """A shared folder. Its files are as the last worker left them."""

    private_root: str | None = None

    def __init__(self, path: str) -> None:
        if not os.path.isdir(path):
            raise UsageError(f"this worker has no folder {render_value(path)}")
        self.path = path
        self.log = f"folder:{os.path.realpath(path)}"
        """The name of its change log."""

    def restore(self, store: SharedStore, state: StateFolder) -> None:
        """Brings the files to the state in which the last worker left them."""

    def save(self) -> str | None:
        """Hands the result back. Returns its branch, if there is one."""
        return None


class CloneWorkspace(FolderWorkspace):
    """A clone of the commit that the session began with. git's own folder for the result is outside of the clone,
    because the agent can write settings in the clone that run programs."""

    def __init__(self, sessions: FleetSessions, claim: Claim, wanted: GitWorkspace, folder: str) -> None:
        self._sessions, self._claim, self._wanted = sessions, claim, wanted
        self._repository = os.path.join(folder, "repository.git")
        self._index = os.path.join(folder, "index")
        self.path = path = os.path.join(folder, "workspace")
        _run_git("clone", "--quiet", "--bare", "--", wanted.url, self._repository)
        self._base = claim.base or self._run(
            "rev-parse", "--verify", "--end-of-options", f"{wanted.revision}^{{commit}}"
        )
        if claim.base is None:
            sessions.save_base(claim, self._base)
        _run_git("clone", "--quiet", "--no-checkout", "--no-hardlinks", "--", self._repository, path)
        _run_git("-C", path, "checkout", "--quiet", "--detach", self._base)
        _run_git("-C", path, "remote", "set-url", "origin", _remove_password(wanted.url))
        super().__init__(path)
        self.log = claim.session
        self.private_root = path

    def restore(self, store: SharedStore, state: StateFolder) -> None:
        root = os.path.realpath(self.path)
        history = History(state.changes(root), "none", store=store)
        try:
            with closing(history), Workspace(self.path) as workspace:
                done = [entry for entry in history.log.latest() if entry.state == "done"]
                for entry in reversed(done):
                    temporary = f".handrail-repeat-{entry.number}"
                    steps = [step for step in entry.body.steps if not step.path.startswith(b"/")]
                    self._repeat(workspace, history, steps, temporary)
        except (ToolError, StoreError) as error:
            raise UsageError(f"the changes of the session cannot be repeated in a new clone: {error}") from error

    def save(self) -> str | None:
        if not self._sessions.is_current(self._claim):
            raise StaleWorkerError("another worker has taken over this session")
        self._run("read-tree", self._base)
        self._run("add", "--all", "--", ".")
        tree = self._run("write-tree")
        if tree == self._run("rev-parse", f"{self._base}^{{tree}}"):
            return None
        branch = self._wanted.branch or f"handrail/{self._claim.session}"
        message = f"Work of handrail session {self._claim.session}"
        commit = self._run("commit-tree", tree, "-p", self._base, "-m", message)
        target = f"+{commit}:refs/heads/{branch}"
        _run_git(f"--git-dir={self._repository}", "push", "--quiet", "--", self._wanted.url, target)
        return branch

    def _repeat(self, workspace: Workspace, history: History, steps: list[Step], temporary: str) -> None:
        """Makes the changes of one set again. The files of git differ between clones, so they are overwritten."""
        ours = [step for step in steps if not step.path.startswith(_GIT)]
        apply_steps(workspace, history, ours, temporary=temporary, options=ApplyOptions(allow_copies=True))
        for step in steps:
            if step.path.startswith(_GIT):
                self._overwrite(os.path.join(os.fsencode(self.path), step.path), step.after, history)

    def _overwrite(self, path: bytes, after: State | None, history: History) -> None:
        inside = os.path.join(os.path.realpath(os.fsencode(self.path)), _GIT)
        if not os.path.join(os.path.realpath(os.path.dirname(path)), b"").startswith(inside):
            return
        if after is None or after.kind == "folder":
            with suppress(OSError):
                os.makedirs(path) if after is not None else os.unlink(path)
        elif after.kind == "file":
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with suppress(FileNotFoundError):
                os.unlink(path)
            with open(path, "xb") as file:
                file.writelines(history.blobs.chunks(after.hash))
            os.chmod(path, 0o644 if after.mode is None else after.mode)

    def _run(self, *words: str) -> str:
        own = {"GIT_DIR": self._repository, "GIT_WORK_TREE": self.path, "GIT_INDEX_FILE": self._index}
        folder = self.path if os.path.isdir(self.path) else self._repository
        return _run_git(*_OWN, *words, variables={**own, **_NO_SETTINGS, **_AUTHOR}, folder=folder)


def open_workspace(sessions: FleetSessions, claim: Claim, folder: str) -> FolderWorkspace:
    """Prepares the workspace of a session within the folder of its run. UsageError if it cannot be used."""
    wanted = claim.options.workspace
    if isinstance(wanted, GitWorkspace):
        return CloneWorkspace(sessions, claim, wanted, folder)
    return FolderWorkspace(wanted.path)


def _run_git(*words: str, variables: Mapping[str, str] | None = None, folder: str | None = None) -> str:
    """The output of git. UsageError if it fails."""
    command = ("git", "-c", "protocol.ext.allow=never", *words)
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **(variables or {})}
    try:
        result = subprocess.run(  # noqa: S603  git of the system, with words that are no options
            command, capture_output=True, env=environment, cwd=folder, timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git cannot be run: {error}") from error
    if result.returncode != 0:
        reason = result.stderr.decode(errors="replace").strip().replace("\n", "; ")
        raise UsageError(f"git {next(word for word in words if word[0] != '-')} failed: {reason[-500:]}")
    return result.stdout.decode(errors="replace").strip()


def _remove_password(url: str) -> str:
    """The URL without a user's name and password, which the agent need not know."""
    parts = urlsplit(url)
    if not parts.netloc or "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
