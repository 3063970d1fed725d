"""What a person's yes is for: the files that a call is about, as they are when the question is put."""

from handrail.protocol.decisions import CommandFact
from handrail.protocol.errors import ToolError
from handrail.protocol.permissions import FileBinding
from handrail.runtime.session import PendingCall, Session
from handrail.workspace.facts import build_command_fact

_MAX_HASHED_BYTES = 64 * 1024 * 1024
"""Bytes of a file that a command only names: no script is larger, and hashing takes time."""
_MAX_NAMED_PATHS = 1_000


def bind_files(session: Session, pending: PendingCall) -> tuple[FileBinding, ...]:
    """The files that the call would change, and those that decide what it does."""
    facts, workspace = pending.facts.paths, session.workspace
    # What is read counts too where something is written: that may be made of it.
    changes = any(fact.access != "read" for fact in facts)
    found = {
        fact.path: FileBinding(path=fact.path, real=fact.real, hash=workspace.hash_of(fact.path))
        for fact in facts
        if changes and fact.real is not None
    }
    if pending.facts.command is not None:
        found = {basis.path: basis for basis in _named(session, pending.facts.command)} | found
    return tuple(found.values())


def _named(session: Session, command: CommandFact) -> list[FileBinding]:
    """The files whose names are in a command: the scripts that it runs, and what it gives to programs."""
    from handrail.policy.parse import parse_command  # noqa: PLC0415  tables that only commands need

    found: list[FileBinding] = []
    for path in parse_command(command.text, command.cwd).word_paths(command.seen)[:_MAX_NAMED_PATHS]:
        try:
            fact = build_command_fact(session.workspace, path, "read")
        except ToolError:
            continue  # no path can be like this
        if fact.kind == "file" and fact.real is not None and (fact.size or 0) <= _MAX_HASHED_BYTES:
            found.append(FileBinding(path=path, real=fact.real, hash=session.workspace.hash_of(path)))
    return found
