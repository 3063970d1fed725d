"""The history of a workspace: its change log and the contents that were kept to go back, opened when first needed."""

import contextlib
import os
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from handrail.protocol.error import StoreError
from handrail.store.blobs import Blobs
from handrail.store.database import Database, Durability
from handrail.store.migrations import CHANGES

if TYPE_CHECKING:
    from handrail.store.change_log import ChangeLog

_SWEPT = "swept"
_DAY = 86_400
_YOUNG = 3_600
"""Seconds in which a content that no change names may yet get its change."""


class History:
    """Where the change sets of a workspace are kept."""

    def __init__(self, folder: str, durability: Durability = "crash", *, days: int = 30) -> None:
        self._folder = folder
        self._durability: Durability = durability
        self._days = days
        self._log: ChangeLog | None = None
        self._lock = threading.Lock()
        self.durable = durability == "power"
        """Whether what is reported as done must survive a loss of power."""
        self.blobs = Blobs(os.path.join(folder, "blobs"), durable=self.durable)

    @property
    def log(self) -> "ChangeLog":
        """The change log."""
        with self._lock:
            if self._log is None:
                from handrail.store.change_log import ChangeLog  # noqa: PLC0415  who only reads does not pay for it

                self._log = ChangeLog(Database(os.path.join(self._folder, "changes.db"), self._durability, CHANGES))
            return self._log

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever changed here."""
        return self._log is None and not os.path.exists(os.path.join(self._folder, "changes.db"))

    def close(self) -> None:
        """Packs what was kept and closes the log."""
        with self._lock:
            log, self._log = self._log, None
        if log is None:
            return
        self.blobs.pack()
        with contextlib.suppress(OSError, StoreError):  # the next one will
            if self._is_due():
                self._sweep(log)
        log.close()

    def _is_due(self) -> bool:
        try:
            swept = os.stat(os.path.join(self._folder, _SWEPT)).st_mtime
        except FileNotFoundError:
            swept = 0.0
        return datetime.now(UTC).timestamp() - swept > _DAY

    def _sweep(self, log: "ChangeLog") -> None:
        """Lets go of what was kept for longer than it has to be."""
        now = datetime.now(UTC)
        log.forget_before(now - timedelta(days=self._days))
        used = log.contents()
        for digest, path, status in self.blobs.every():
            if digest not in used and now.timestamp() - status.st_mtime > _YOUNG:
                os.unlink(path)
        os.close(os.open(os.path.join(self._folder, _SWEPT), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
