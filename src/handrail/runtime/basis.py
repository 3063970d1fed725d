"""What a person's yes is for: the files that a call is about, as they are when the question is put."""

from handrail.protocol.decision import CommandFact
from handrail.protocol.error import ToolError
from handrail.protocol.permission import Basis
from handrail.runtime.session import Flight, Session

_LARGEST = 64 * 1024 * 1024
"""Bytes of a file that a command only names: no script is larger, and hashing takes time."""
_MOST_NAMED = 1_000


def basis_of(session: Session, flight: Flight) -> tuple[Basis, ...]:
    """The files that the call would change, and those that decide what it does."""
    facts, workspace = flight.facts.paths, session.workspace
    # What is read counts too where something is written: that may be made of it.
    changes = any(fact.access != "read" for fact in facts)
    found = {
        fact.path: Basis(path=fact.path, real=fact.real, hash=workspace.hash_of(fact.path))
        for fact in facts
        if changes and fact.real is not None
    }
    if flight.facts.command is not None:
        found = {basis.path: basis for basis in _named(session, flight.facts.command)} | found
    return tuple(found.values())


def _named(session: Session, command: CommandFact) -> list[Basis]:
    """The files whose names are in a command: the scripts that it runs, and what it gives to programs."""
    from handrail.policy.script import named  # noqa: PLC0415  tables that only commands need

    found: list[Basis] = []
    for path in named(command.text, command.cwd, command.seen)[:_MOST_NAMED]:
        try:
            fact = session.workspace.look(path, "read")
        except ToolError:
            continue  # no path can be like this
        if fact.kind == "file" and fact.real is not None and (fact.size or 0) <= _LARGEST:
            found.append(Basis(path=path, real=fact.real, hash=session.workspace.hash_of(path)))
    return found
