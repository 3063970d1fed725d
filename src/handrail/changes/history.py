"""The history of a workspace: change log, contents, previews."""

import contextlib
import errno
import fcntl
import os
import threading
import time
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from handrail.protocol.errors import StoreError, ToolError
from handrail.store.blobs import Blobs, copy_blobs
from handrail.store.database import CHANGES, Database, Durability, copy_database
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import FileSnapshot
from handrail.workspace.resolve import READ_FILE, ResolvedParent

if TYPE_CHECKING:
    from handrail.changes.stored_previews import PreviewStore
    from handrail.store.change_log import ChangeLog


# § [changes.history] The history of a workspace: its change log and the contents that were kept to go back, opened
# § when first needed.

_SWEPT = "swept"
_TRIALS = "trials"
_AT_WORK = ".at-work"
_SETTLING_SECONDS = 10.0
_DAY = 86_400
_PREVIEWS = (1 << 30, 4 << 30)
_YOUNG_SECONDS = 3_600
"""Seconds in which a content that no change names may yet get its change."""


class History:
    """Where the change sets of a workspace are kept."""

    def __init__(
        self,
        folder: str,
        durability: Durability = "crash",
        *,
        days: int = 30,
        previews: tuple[int, int] = _PREVIEWS,
    ) -> None:
        """`previews`: bytes that one preview may take, and all that wait for an answer."""
        self.folder = folder
        self._previews = previews
        self._durability: Durability = durability
        self._days = days
        self._log: ChangeLog | None = None
        self._sign = ""
        """The file that says that this process is at work."""
        self._lock = threading.Lock()
        self.durable = durability == "power"
        """Whether what is reported as done must survive a loss of power."""
        self.blobs = Blobs(os.path.join(folder, "blobs"), durability)

    @cached_property
    def previews(self) -> "PreviewStore":
        """Commands that were tried, and wait for an answer, with their contents."""
        from handrail.changes.stored_previews import PreviewStore  # noqa: PLC0415  few commands are tried

        return PreviewStore(os.path.join(self.folder, _TRIALS), durable=self.durable)

    def preview_allowance(self) -> tuple[int, str]:
        """How many bytes one more preview may take, and the setting that says so."""
        one, together = self._previews
        left = max(0, together - self.previews.size())
        return (left, "limits.waiting") if left < one else (one, "limits.preview")

    @property
    def log(self) -> "ChangeLog":
        """The change log."""
        with self._lock:
            if self._log is None:
                from handrail.store.change_log import ChangeLog  # noqa: PLC0415  who only reads does not pay for it

                self._log = ChangeLog(Database(os.path.join(self.folder, "changes.db"), self._durability, CHANGES))
            return self._log

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever changed here."""
        return self._log is None and not os.path.lexists(os.path.join(self.folder, "changes.db"))

    @contextlib.contextmanager
    def settling(self) -> Generator[None]:
        """Lets one process at a time settle what a crash left; CONFLICT when another one does not come to an end."""
        path = os.path.join(self.folder, "settling")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            until = time.monotonic() + _SETTLING_SECONDS
            while not _locked(descriptor):
                if time.monotonic() > until:
                    message = "Another process is settling what a crash left. Nothing was done. Try again."
                    raise ToolError("CONFLICT", message)
                time.sleep(0.005)
            yield
        finally:
            os.close(descriptor)

    def keep(self, before: FileSnapshot, landing: ResolvedParent) -> None:
        """Keeps what a file holds before it is changed; ToolError when that cannot be."""
        try:
            if before.data is not None:
                self.blobs.keep(before.hash, before.data, pack=True)
                return
            descriptor = os.open(landing.name, READ_FILE, dir_fd=landing.folder)
            try:
                self.blobs.keep_file(before.hash, descriptor)
            finally:
                os.close(descriptor)
        except StoreError as error:
            raise build_backup_error(landing.name, error) from None

    def mark_work(self, session: str, runner: str) -> None:
        """Leaves a sign that a runner changes something; it goes when the history is closed."""
        if not self._sign:
            sign = os.path.join(self.folder, f"{runner}{_AT_WORK}")
            descriptor = os.open(sign, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, session.encode())
            finally:
                os.close(descriptor)
            self._sign = sign

    def others_at_work(self) -> dict[str, str]:
        """The runners that change something here, or were killed while they did, each with its session."""
        found: dict[str, str] = {}
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if name.endswith(_AT_WORK) and path != self._sign:
                with contextlib.suppress(OSError), open(path, encoding="utf-8") as sign:
                    found[name.removesuffix(_AT_WORK)] = sign.read()
        return found

    def forget_work(self, runner: str) -> None:
        """Removes the sign of a runner, once nothing that it began is left to settle."""
        if not any(entry.runner == runner for entry in self.log.list_begun()):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, f"{runner}{_AT_WORK}"))

    def close(self) -> None:
        """Packs what was kept and closes the log."""
        if self._sign:
            with contextlib.suppress(StoreError):
                self.forget_work(os.path.basename(self._sign).removesuffix(_AT_WORK))
        if self._log is None and self.is_empty and not self._has_leftovers():
            return
        self.blobs.pack()
        with contextlib.suppress(OSError, StoreError):  # the next one will
            if (self._log is not None or self.is_empty) and self._is_due():
                self._sweep()
        self.blobs.close()
        if "previews" in vars(self):
            self.previews.close()
        with self._lock:
            log, self._log = self._log, None
        if log is not None:
            log.close()

    def _has_leftovers(self) -> bool:
        """Whether previews or contents are there although nothing was ever changed."""
        folders = (os.path.join(self.folder, name) for name in (_TRIALS, "blobs", "blobs-packed"))
        return any(os.path.isdir(folder) and os.listdir(folder) for folder in folders)

    def _is_due(self) -> bool:
        return abs(time.time() - self._swept()) > _DAY

    def _swept(self) -> float:
        try:
            return os.stat(os.path.join(self.folder, _SWEPT)).st_mtime
        except FileNotFoundError:
            return 0.0

    def _sweep(self) -> None:
        """Lets go of what was kept for longer than it has to be. A clock that jumps ahead once takes nothing away: no
        sweep counts more than two days since the last one."""
        now, swept = time.time(), self._swept()
        counted = min(now, swept + 2 * _DAY) if swept else now
        self.previews.sweep(counted - self._days * _DAY)
        used = self.previews.contents()
        if not self.is_empty:
            self.log.forget_before(datetime.fromtimestamp(counted, UTC) - timedelta(days=self._days))
            used |= self.log.contents()
        self.blobs.sweep(used, _YOUNG_SECONDS)
        os.close(os.open(os.path.join(self.folder, _SWEPT), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))


def build_backup_error(name: str, error: StoreError) -> ToolError:
    """Why nothing is changed: what is there now could not be kept for undo."""
    cause = error.__cause__
    if not isinstance(cause, OSError):
        return ToolError(
            "CONFLICT", f"{clip_path(name)} changed while it was being kept for undo. Nothing was changed."
        )
    full = cause.errno in {errno.ENOSPC, errno.EDQUOT}
    message = f"{clip_path(name)} could not be kept for undo ({cause.strerror}). Nothing was changed."
    return ToolError("NO_SPACE" if full else "IO_ERROR", message)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# § [changes.copied_history] Copies the history of a workspace, for a copy of the workspace.

_DATABASE, _BLOBS = "changes.db", "blobs"


def copy_history(home: str, target: str) -> None:
    """Copies the change log out of the folder of a workspace, and the contents that it takes to go back. Paths in it
    are relative, so they count for the copy too. The log may be in use; it is only looked at."""
    source = os.path.join(home, ".changes")
    if not os.path.exists(os.path.join(source, _DATABASE)):
        return
    copy_database(os.path.join(source, _DATABASE), os.path.join(target, _DATABASE))
    copy_blobs(os.path.join(source, _BLOBS), os.path.join(target, _BLOBS))
