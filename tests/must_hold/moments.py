"""Numbers the moments of a process at which a kill could matter: before and after each transaction of each database,
before and after each line of the audit, and before each step that changes a file or starts a program. At one of them
the process kills itself; the files are then exactly as a kill -9 from outside would have left them there."""

import json
import os
import re
import signal
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from threading import Lock, current_thread
from typing import Any

from handrail.store.audit import AuditChain

_EVENT_COLUMNS = 5
_WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE|REPLACE)\b(?:\s+OR\s+\w+)?(?:\s+INTO|\s+FROM)?\s+(\w+)", re.IGNORECASE)
_STEPS = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.truncate", "subprocess.Popen"}
"""What Python tells of before it does it; changes by other means lie between two transactions all the same."""

_SWEEPER = "handrail-layers"
"""Removes what nobody needs any more, at its own pace: its steps would give all others another number every time."""


class Moments:
    """Counts them; kills the process at the one of a number."""

    def __init__(self, last: int | None) -> None:
        self._last = last
        self._lock = Lock()
        self.names: list[str] = []
        self.inside = "between"
        """The call that has begun and has no result; `between` where there is none."""

    def reach(self, name: str) -> None:
        """One of them is here."""
        with self._lock:
            self.names.append(f"{self.inside}: {name}")
            if len(self.names) == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
                signal.pause()  # nothing more is done, by no thread that waits for the lock either

    def watch(self) -> None:
        """From here on every moment of this process counts."""
        connection = type("Connection", (_Connection,), {"moments": self})
        sqlite3.connect = partial(sqlite3.connect, factory=connection)
        append = AuditChain.append

        def sealed(chain: AuditChain, record: Any) -> None:
            self.around("audit", lambda: append(chain, record))

        AuditChain.append = sealed
        sys.addaudithook(self._hear)

    def around(self, name: str, work: Callable[[], Any]) -> Any:
        """A step with a moment on each side."""
        self.reach(f"before {name}")
        done = work()
        self.reach(f"after {name}")
        return done

    def _hear(self, event: str, _: tuple[Any, ...]) -> None:
        if event in _STEPS and current_thread().name != _SWEEPER:
            self.reach(f"before {event}")


class _Cursor(sqlite3.Cursor):
    """Tells of transactions: those with BEGIN and COMMIT, and statements that are one of their own."""

    connection: "_Connection"

    def execute(self, statement: str, values: Any = ()) -> "_Cursor":  # type: ignore[override]
        connection = self.connection
        connection.note(statement, values)
        alone = _WRITES.match(statement) and not connection.in_transaction
        if alone or statement == "COMMIT":
            connection.commit_with(lambda: super(_Cursor, self).execute(statement, values))
        else:
            super().execute(statement, values)
        return self


class _Connection(sqlite3.Connection):
    moments: Moments

    def __init__(self, path: str, *args: Any, **options: Any) -> None:
        super().__init__(path, *args, **options)
        self._name = os.path.basename(path).removesuffix(".db")
        self._told: list[str] = []
        self._events: list[tuple[str, bytes]] = []

    def cursor(self, factory: type[sqlite3.Cursor] = _Cursor) -> sqlite3.Cursor:
        return super().cursor(factory)

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:  # type: ignore[override]
        return self.cursor().execute(statement, values)

    def note(self, statement: str, values: Any) -> None:
        if statement.startswith("BEGIN"):
            self._told.clear()
            self._events.clear()
        elif found := _WRITES.match(statement):
            verb, table = found.groups()
            if table == "event" and verb.upper() == "INSERT":
                rows = [*values[:_EVENT_COLUMNS], *values[_EVENT_COLUMNS + 1 :]]  # the first has what was decided too
                self._told += rows[1::_EVENT_COLUMNS]
                self._events += zip(rows[1::_EVENT_COLUMNS], rows[4::_EVENT_COLUMNS], strict=True)
            else:
                self._told.append(f"{verb.lower()} {table}")

    def commit_with(self, commit: Callable[[], Any]) -> None:
        """A transaction, with a moment on each side."""
        told, self._told = list(dict.fromkeys(self._told)), []
        events, self._events = self._events, []
        story = f"{self._name}: {', '.join(told)}"
        self.moments.reach(f"before {story}")
        commit()
        for kind, data in events:
            if kind == "tool_call.running":
                self.moments.inside = json.loads(data)["tool_call_name"]
            elif kind in {"tool_call.end", "tool_call.error"}:
                self.moments.inside = "between"
        self.moments.reach(f"after {story}")
