"""The difference of a call to what was approved in its workspace before."""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from handrail.policy.parse import UNNAMED, expand_inner_commands, name_program, parse_fact
from handrail.policy.programs.spec import to_base_name
from handrail.protocol.decisions import CommandFact, Facts
from handrail.protocol.errors import StoreError
from handrail.protocol.novelty import Novelty
from handrail.protocol.permissions import PermissionRequest
from handrail.runtime.pending_call import PendingCall
from handrail.runtime.session import Session
from handrail.store.inbox import Inbox
from handrail.store.state_dir import StateFolder

_LEAST = 10
"""Earlier approvals, or change sets, that make a difference worth a line."""
_MAX_APPROVALS, _MAX_SESSIONS, _MAX_CHANGES = 100, 4, 200
"""How far the look goes back: a person waits for the prompt."""
_NOT_IN_WORD = re.compile(r"[\s;&|()<>{}'\"`$=,]+")


def add_novelty(session: Session, asking: Sequence[PendingCall]) -> None:
    """Adds to the requests of calls how they differ from earlier ones. Reads the history once."""
    with suppress(StoreError, OSError):  # a request counts without it too
        inbox = Inbox(StateFolder.find(session.folder), session.workspace.main.path)
        asks_command = any(pending.facts.command is not None for pending in asking)
        earlier = inbox.list_approved_commands(_MAX_APPROVALS, _MAX_SESSIONS) if asks_command else []
        for pending in asking:
            if (approval := pending.approval) is not None:
                commands = _compare_commands(pending.facts.command, earlier)
                novelty = _compare_changes(session, pending.facts, approval.request, commands)
                if novelty.deletes or novelty.hosts or novelty.programs or novelty.folders:
                    pending.approval = replace(approval, request=replace(approval.request, unusual=novelty))


# Hosts, programs


def _compare_commands(command: CommandFact | None, earlier: Sequence[tuple[str, tuple[str, ...]]]) -> Novelty:
    if command is None or len(earlier) < _LEAST:
        return Novelty()
    # Each word counts as a program that ran: parsing all earlier commands would take too long.
    words = {to_base_name(word) for text, _ in earlier for word in _NOT_IN_WORD.split(text) if word}
    opened = {host for _, hosts in earlier for host in hosts}
    return Novelty(
        approvals=len(earlier),
        hosts=tuple(host for host in command.hosts if host not in opened),
        programs=tuple(name for name in _list_programs(command) if name not in words),
    )


def _list_programs(command: CommandFact) -> tuple[str, ...]:
    """The programs that a command starts and that may change something, without their sub-commands."""
    parsed = parse_fact(command)
    steps = [step for step in parsed.steps if step.classification.effect != "proven"]
    words = [one.words for step in steps for one in (step, *step.inner)]
    if parsed.unparsed is not None:
        words = [one.words for one in expand_inner_commands(command.seen or ())]
    names = (name_program(one).partition(" ")[0] for one in words if one)
    return tuple(dict.fromkeys(name for name in names if name != UNNAMED))


# Deletions, folders


def _compare_changes(session: Session, facts: Facts, request: PermissionRequest, found: Novelty) -> Novelty:
    history, tried = session.recorder.history, request.preview.tried if request.preview is not None else None
    writes = [fact for fact in facts.paths if fact.access != "read"] if facts.command is None else []
    deletes = any(fact.access == "delete" for fact in writes) or (tried is not None and tried.deleted > 0)
    paths = [fact.real for fact in writes if fact.real is not None]
    folders = _list_folders((*paths, *(change.path for change in (tried.changes if tried is not None else ()))))
    if history.is_empty or not (deletes or folders):
        return found
    log = history.log
    if (count := log.count_last(_MAX_CHANGES)) < _LEAST:
        return found
    return replace(
        found,
        changes=count,
        deletes=deletes and not log.has_deletion(_MAX_CHANGES),
        folders=tuple(folder for folder in folders if not log.has_touched(os.fsencode(folder))),
    )


def _list_folders(paths: Iterable[str]) -> tuple[str, ...]:
    """The first folder of each path in the workspace, and the whole folder of one in another root."""
    parts = (path.rpartition("/") if path.startswith("/") else path.partition("/") for path in paths)
    return tuple(dict.fromkeys(f"{folder}/" for folder, slash, _ in parts if slash))
