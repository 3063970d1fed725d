"""The history of a workspace: its change log with the contents that undo needs."""

import contextlib
import os
import threading
import time
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from handrail.kernel.files import wait_for_lock
from handrail.protocol.errors import StoreError, ToolError
from handrail.store.blobs import Blobs, copy_blobs
from handrail.store.database import CHANGES, Database, Durability, copy_database
from handrail.store.state_dir import AT_WORK
from handrail.workspace.resolve import closing_descriptor

if TYPE_CHECKING:
    from handrail.changes.stored_previews import PreviewStore
    from handrail.store.change_log import ChangeLog
    from handrail.store.shared_store import SharedStore


_DATABASE, _BLOBS = "changes.db", "blobs"
_SWEPT = "swept"
_TRIALS = "trials"
_SETTLING_SECONDS = 10.0
_DAY = 86_400
_PREVIEWS = (1 << 30, 4 << 30)
_YOUNG_SECONDS = 3_600
"""Age up to which a content is kept although no change names it yet."""


class History:
    """The files of a history. They are opened when they are first needed."""

    def __init__(
        self,
        folder: str,
        durability: Durability = "crash",
        *,
        days: int = 30,
        previews: tuple[int, int] = _PREVIEWS,
        store: "SharedStore | None" = None,
    ) -> None:
        """`days`: how long changes can be undone. `previews`: limits of one preview, and of all that wait, in bytes.
        `store`: the database of a fleet, if the files here are only a cache of it."""
        self.folder = folder
        self._previews = previews
        self._durability: Durability = durability
        self._days = days
        self._log: ChangeLog | None = None
        self._marker = ""
        """The file that says that this process makes changes."""
        self._lock = threading.Lock()
        self.durable = durability == "power"
        """Whether finished changes must survive a power loss."""
        self._store = store
        blobs = os.path.join(folder, _BLOBS)
        self.blobs = Blobs(blobs, durability) if store is None else store.open_blobs(blobs)

    @cached_property
    def previews(self) -> "PreviewStore":
        """Previews that wait for an answer."""
        from handrail.changes.stored_previews import PreviewStore  # noqa: PLC0415  few calls have a preview

        return PreviewStore(os.path.join(self.folder, _TRIALS), durable=self.durable, store=self._store)

    def preview_allowance(self) -> tuple[int, str]:
        """The size that the next preview may have, and the setting that limits it."""
        one, together = self._previews
        left = max(0, together - self.previews.size())
        return (left, "limits.waiting") if left < one else (one, "limits.preview")

    @property
    def log(self) -> "ChangeLog":
        with self._lock:
            if self._log is None:
                from handrail.store.change_log import ChangeLog  # noqa: PLC0415  slow to load, and reads do not need it

                path, store = os.path.join(self.folder, _DATABASE), self._store
                if store is None:
                    self._log = ChangeLog(Database(path, self._durability, CHANGES))
                else:
                    self._log = store.open_log(path)
            return self._log

    @property
    def is_empty(self) -> bool:
        """Whether there was never a change."""
        if self._store is not None:
            return self.log.count_last(1) == 0
        return self._log is None and not os.path.lexists(os.path.join(self.folder, _DATABASE))

    @contextlib.contextmanager
    def settling(self) -> Generator[None]:
        """Lets one process at a time settle changes after a crash. CONFLICT if another process takes too long."""
        path = os.path.join(self.folder, "settling")
        with closing_descriptor(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as descriptor:
            if not wait_for_lock(descriptor, _SETTLING_SECONDS):
                message = "Another process is cleaning up after a crash. Nothing was done. Try again."
                raise ToolError("CONFLICT", message)
            yield

    def mark_work(self, session: str, runner: str) -> None:
        """Marks that a runner makes changes, until the history is closed."""
        if not self._marker:
            marker = os.path.join(self.folder, f"{runner}{AT_WORK}")
            with closing_descriptor(os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)) as descriptor:
                os.write(descriptor, session.encode())
            self._marker = marker

    def others_at_work(self) -> dict[str, str]:
        """The other runners that make changes, or were killed meanwhile, each with its session."""
        sessions: dict[str, str] = {}
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if name.endswith(AT_WORK) and path != self._marker:
                with contextlib.suppress(OSError), open(path, encoding="utf-8") as marker:
                    sessions[name.removesuffix(AT_WORK)] = marker.read()
        return sessions

    def forget_work(self, runner: str) -> None:
        """Removes the mark of a runner, if none of its changes is left to settle."""
        if not any(entry.runner == runner for entry in self.log.list_begun()):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, f"{runner}{AT_WORK}"))

    def close(self) -> None:
        """Packs the contents, sweeps old ones once a day, and closes all files."""
        if self._marker:
            with contextlib.suppress(StoreError):
                self.forget_work(os.path.basename(self._marker).removesuffix(AT_WORK))
        if self._log is None and self.is_empty and not self._has_leftovers():
            return
        self.blobs.pack()
        with contextlib.suppress(OSError, StoreError):  # the next close sweeps
            is_known = self._store is None and (self._log is not None or self.is_empty)
            if is_known and abs(time.time() - self._read_swept()) > _DAY:
                self._sweep()
        self.blobs.close()
        if "previews" in vars(self):
            self.previews.close()
        with self._lock:
            log, self._log = self._log, None
        if log is not None:
            log.close()

    def _has_leftovers(self) -> bool:
        """Whether there are previews or contents without a change."""
        folders = (os.path.join(self.folder, name) for name in (_TRIALS, _BLOBS, "blobs-packed"))
        return any(os.path.isdir(folder) and os.listdir(folder) for folder in folders)

    def _read_swept(self) -> float:
        try:
            return os.stat(os.path.join(self.folder, _SWEPT)).st_mtime
        except FileNotFoundError:
            return 0.0

    def _sweep(self) -> None:
        """Removes old previews and contents.

        A sweep counts at most two days since the last one, so that a clock that jumps ahead once removes nothing.
        """
        now, swept = time.time(), self._read_swept()
        counted = min(now, swept + 2 * _DAY) if swept else now
        self.previews.sweep(counted - self._days * _DAY)
        used = self.previews.contents()
        if not self.is_empty:
            self.log.forget_before(datetime.fromtimestamp(counted, UTC) - timedelta(days=self._days))
            used |= self.log.contents()
        self.blobs.sweep(used, _YOUNG_SECONDS)
        os.close(os.open(os.path.join(self.folder, _SWEPT), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))


def copy_history(home: str, target: str) -> None:
    """Copies the history of a workspace, given by its state folder, for a copy of the workspace.

    Paths in it are relative, so they hold for the copy too. The history may be in use.
    """
    source = os.path.join(home, ".changes")
    if not os.path.exists(os.path.join(source, _DATABASE)):
        return
    copy_database(os.path.join(source, _DATABASE), os.path.join(target, _DATABASE))
    copy_blobs(os.path.join(source, _BLOBS), os.path.join(target, _BLOBS))
