"""Checks the state folder: audit chain, journals, change logs."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Literal

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.results import ToolResult
from handrail.store.approvals import check_requests
from handrail.store.audit import FIRST_HASH, decode_record, read_audit_lines, redact_commands
from handrail.store.change_log import ChangeLog
from handrail.store.database import CHANGES, ReadOnlyDatabase
from handrail.store.journal import BrokenEvent
from handrail.store.sessions import count_removed_calls, open_journal
from handrail.store.state_dir import StateFolder, build_damaged_path

# § [store.verify] Checks the audit chain line by line, and against the journals.

_MAX_TOLD_CALLS = 10
"""Missing calls that are named."""


class Verification(msgspec.Struct, frozen=True):
    """What was found; intact when there is no problem."""

    records: int
    head: str
    problems: tuple[str, ...]
    unread: tuple[str, ...] = ()
    """Journals that could not be read: their calls were not checked. That breaks no chain."""

    @property
    def intact(self) -> bool:
        """Whether every record is as it was written, and none is missing as far as journals could be read."""
        return not self.problems


def verify(state: StateFolder) -> Verification:
    """Reads the whole chain. Every call that a journal has a result of must be in it, and say what the journal says:
    a hash shows that a line was changed, but whoever can write the file can also seal it anew."""
    results, unread = collect_finished_calls(state)
    begun_anew = {
        os.path.basename(folder) for folder in state.sessions() if os.path.lexists(build_damaged_path(folder))
    }
    sessions = {session for session, _ in results} - unread.keys() - begun_anew
    removed = count_removed_calls(state)
    head, count, problems = FIRST_HASH, 0, list[str]()
    for number, line in enumerate(read_audit_lines(state.audit), start=1):
        if not line.endswith(b"\n"):
            break  # a crash tore it; the journal knows the call, and it is written anew
        problem, digest = _judge(line, number, head, results, sessions, removed)
        if problem:
            problems.append(f"Record {number} {problem}; {count} before it are sound.")
            break
        head, count = digest, number
    if not problems:
        problems += _missing([key for key, left in results.items() if left])
    return Verification(count, head, tuple(problems), tuple(unread.values()))


Outcome = tuple[object, ...] | None
"""What journal and audit both say about a result; None where the journal cannot be read."""
Results = dict[tuple[str, str], list[Outcome]]
"""By session and call; sessions of several workspaces may share a name, so there may be several."""


def _judge(
    line: bytes, number: int, head: str, results: Results, sessions: set[str], removed: Counter[str]
) -> tuple[str | None, str]:
    """What is wrong with a line, if anything, and its hash. The result it stands for is crossed out."""
    found = decode_record(line)
    if found is None:
        return "was changed or removed", ""
    record, digest = found
    if record.prev != head or record.seq != number:
        return "was changed or removed" if record.seq > number else "was inserted or changed", ""
    known = results.get((record.session_id, record.tool_call_id))
    if not known:  # no journal to ask: it was removed or moved away, or cannot be read
        removed[record.session_id] -= 1
        unknown = record.session_id in sessions and removed[record.session_id] < 0
        return ("is of a call that its journal does not know" if unknown else None), digest
    said = (record.name, record.ok, record.error_code, record.duration_ms, record.files_changed, record.commands_run)
    for outcome in known:
        if outcome is None or outcome == said:
            known.remove(outcome)
            return None, digest
    return "says something else than the journal", digest


def _missing(calls: list[tuple[str, str]]) -> list[str]:
    told = [
        f"The end was cut: call {call} of session {session} has no record." for session, call in calls[:_MAX_TOLD_CALLS]
    ]
    return (
        [*told, f"{len(calls) - _MAX_TOLD_CALLS} more calls have no record."] if len(calls) > _MAX_TOLD_CALLS else told
    )


def collect_finished_calls(state: StateFolder) -> tuple[Results, dict[str, str]]:
    """What the journals have come to; and by their sessions those that cannot be read, each with the reason."""
    found: Results = {}
    unread: dict[str, str] = {}
    for folder in state.sessions():
        session = os.path.basename(folder)
        try:
            with open_journal(folder) as journal:
                for call, result in journal.finished():
                    found.setdefault((session, call), []).append(_outcome(result))
        except StoreError as error:
            unread[session] = f"The calls of session {session} could not be checked: {error}"
    return found, unread


def _outcome(result: ToolResult[Any] | None) -> Outcome:
    if result is None:
        return None
    code = result.error.code if result.error else None
    artifacts = result.artifacts
    commands = redact_commands(artifacts.commands_run)
    return result.name, result.ok, code, result.duration_ms, artifacts.files_changed, commands


# § [store.damage] Looks for damage in what the state folder holds: every page and every row is read, and nothing is
# § changed.


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
