"""Looks for damage in what the state folder holds: every page and every row is read, and nothing is changed."""

import os
from collections.abc import Iterator
from contextlib import closing
from typing import Literal

import msgspec

from handrail.protocol.error import StoreError
from handrail.store.archive import open_journal
from handrail.store.change_log import ChangeLog
from handrail.store.folder import StateFolder
from handrail.store.journal import BrokenEvent
from handrail.store.migrations import CHANGES
from handrail.store.read_only import ReadOnlyDatabase
from handrail.store.requests import check_requests


class Damage(msgspec.Struct, frozen=True):
    """A file that cannot be read, or not all of it."""

    kind: Literal["journal", "change log"]
    folder: str
    """Of the session, or of the change log."""
    problem: str


def find_damage(state: StateFolder) -> Iterator[Damage]:
    """Every damaged journal and change log."""
    for folder in state.sessions():
        if (problem := _problem_of_journal(folder)) is not None:
            yield Damage("journal", folder, problem)
    for folder in state.change_logs():
        try:
            with closing(ChangeLog(ReadOnlyDatabase(os.path.join(folder, "changes.db"), CHANGES))) as log:
                log.check()
        except StoreError as error:
            yield Damage("change log", folder, str(error))


def _problem_of_journal(folder: str) -> str | None:
    try:
        with open_journal(folder) as journal:
            journal.database.check()
            check_requests(journal.database)
            broken = [event.seq for event in journal.events() if isinstance(event, BrokenEvent)]
    except StoreError as error:
        return str(error)
    more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
    return f"event {broken[0]}{more} cannot be read" if broken else None
