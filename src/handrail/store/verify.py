"""Checks of a state folder that change nothing: its audit chain, journals and change logs."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Literal

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.results import ToolResult
from handrail.store.audit import FIRST_HASH, decode_record, read_audit_lines, redact_commands
from handrail.store.change_log import ChangeLog
from handrail.store.database import CHANGES, ReadOnlyDatabase
from handrail.store.inbox import check_requests
from handrail.store.journal import BrokenEvent
from handrail.store.sessions import count_removed_calls, open_journal
from handrail.store.state_dir import StateFolder, build_damaged_path

_MAX_NAMED_CALLS = 10
_Outcome = tuple[object, ...] | None
"""The facts that journal and audit both have about a result. None if the journal cannot be read."""
_Outcomes = dict[tuple[str, str], list[_Outcome]]
"""By session and call. Sessions of several workspaces may share a name, so there may be several."""


class Verification(msgspec.Struct, frozen=True):
    records: int
    head: str
    problems: tuple[str, ...]
    unread: tuple[str, ...] = ()
    """Journals that could not be read. Their calls were not checked, which breaks no chain."""

    @property
    def intact(self) -> bool:
        """Whether no record was changed, and none is missing as far as journals could be read."""
        return not self.problems


class Damage(msgspec.Struct, frozen=True):
    """A database that cannot be read, or not completely."""

    kind: Literal["journal", "change log"]
    folder: str
    """Of the session, or of the change log."""
    problem: str


def verify(state: StateFolder) -> Verification:
    """Reads the whole chain, and compares it with the journals.

    Every finished call of a journal must be in the chain with the same result. A hash only shows that a line was
    changed: an attacker who can write the file can also seal it anew.
    """
    outcomes, unread = _collect_outcomes(state)
    restarted = {os.path.basename(folder) for folder in state.sessions() if os.path.lexists(build_damaged_path(folder))}
    sessions = {session for session, _ in outcomes} - unread.keys() - restarted
    removed = count_removed_calls(state)
    head, count, problems = FIRST_HASH, 0, list[str]()
    for number, line in enumerate(read_audit_lines(state.audit), start=1):
        if not line.endswith(b"\n"):
            break  # a crash tore it; the journal knows the call, and the record is written again
        problem, digest = _check_line(line, number, head, outcomes, sessions, removed)
        if problem:
            problems.append(f"Record {number} {problem}; {count} before it are sound.")
            break
        head, count = digest, number
    if not problems:
        problems += _describe_missing([key for key, left in outcomes.items() if left])
    return Verification(count, head, tuple(problems), tuple(unread.values()))


def _check_line(
    line: bytes, number: int, head: str, outcomes: _Outcomes, sessions: set[str], removed: Counter[str]
) -> tuple[str | None, str]:
    """The problem of a line, if there is one, and its hash. Its outcome is crossed out."""
    decoded = decode_record(line)
    if decoded is None:
        return "was changed or removed", ""
    record, digest = decoded
    if record.prev != head or record.seq != number:
        return "was changed or removed" if record.seq > number else "was inserted or changed", ""
    recorded = outcomes.get((record.session_id, record.tool_call_id))
    if not recorded:  # its journal was removed or moved away, or cannot be read
        removed[record.session_id] -= 1
        is_unknown = record.session_id in sessions and removed[record.session_id] < 0
        return ("is of a call that its journal does not know" if is_unknown else None), digest
    facts = (record.name, record.ok, record.error_code, record.duration_ms, record.files_changed, record.commands_run)
    for outcome in recorded:
        if outcome is None or outcome == facts:
            recorded.remove(outcome)
            return None, digest
    return "says something else than the journal", digest


def _describe_missing(calls: list[tuple[str, str]]) -> list[str]:
    named = calls[:_MAX_NAMED_CALLS]
    problems = [f"The end was cut: call {call} of session {session} has no record." for session, call in named]
    if len(calls) > _MAX_NAMED_CALLS:
        problems.append(f"{len(calls) - _MAX_NAMED_CALLS} more calls have no record.")
    return problems


def _collect_outcomes(state: StateFolder) -> tuple[_Outcomes, dict[str, str]]:
    """The outcomes of all finished calls, and by session why a journal cannot be read."""
    outcomes: _Outcomes = {}
    unread: dict[str, str] = {}
    for folder in state.sessions():
        session = os.path.basename(folder)
        try:
            with open_journal(folder) as journal:
                for call, result in journal.finished():
                    outcomes.setdefault((session, call), []).append(_read_outcome(result))
        except StoreError as error:
            unread[session] = f"The calls of session {session} could not be checked: {error}"
    return outcomes, unread


def _read_outcome(result: ToolResult[Any] | None) -> _Outcome:
    if result is None:
        return None
    code = result.error.code if result.error else None
    artifacts = result.artifacts
    commands = redact_commands(artifacts.commands_run)
    return result.name, result.ok, code, result.duration_ms, artifacts.files_changed, commands


def find_damage(state: StateFolder) -> Iterator[Damage]:
    """Reads every page and row. Yields the damaged journals and change logs."""
    for folder in state.sessions():
        if (problem := _check_journal(folder)) is not None:
            yield Damage("journal", folder, problem)
    for folder in state.change_logs():
        try:
            with closing(ChangeLog(ReadOnlyDatabase(os.path.join(folder, "changes.db"), CHANGES))) as log:
                log.check()
        except StoreError as error:
            yield Damage("change log", folder, str(error))


def _check_journal(folder: str) -> str | None:
    try:
        with open_journal(folder) as journal:
            journal.database.check()
            check_requests(journal.database)
            broken = [event.seq for event in journal.events() if isinstance(event, BrokenEvent)]
    except StoreError as error:
        return str(error)
    more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
    return f"event {broken[0]}{more} cannot be read" if broken else None
