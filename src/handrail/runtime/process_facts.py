"""What policy needs to know about a call that is about a process session."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.policy.parse import parse_command
from handrail.process.sessions.known import read_record
from handrail.process.sessions.layers import read_note
from handrail.process.sessions.session import build_ended_error
from handrail.protocol.decisions import Facts, ProcessFact
from handrail.tools.contract import ProcessUse

if TYPE_CHECKING:
    from handrail.process.sessions.sessions import ProcessSessions


def collect_process_facts(use: ProcessUse, sessions: "Callable[[], ProcessSessions]", tier: Callable[[], int]) -> Facts:
    """The facts of one; ToolError PROCESS_NOT_FOUND where there is none of that id, and PROCESS_ENDED where there is
    nobody left to write to, so that no person is asked in vain."""
    if use.action == "list":
        return Facts(process=ProcessFact(action=use.action))
    found = sessions().find(use.spelled)
    record = found.record()
    if use.action == "write" and record.state != "running":
        raise build_ended_error(found.id)
    # A command that only looks has a sandbox that lets it do nothing else, unless there is none.
    looks = use.action == "write" and parse_command(record.command, record.cwd).is_read_only and tier() > 0
    layered = use.action == "write" and read_note(found.folder) is not None
    connected = use.action == "write" and not looks and (tier() == 0 or _has_proxy(found.folder))
    fact = ProcessFact(
        action=use.action, id=found.id, command=record.command, looks=looks, layered=layered, connected=connected
    )
    return Facts(process=fact)


def _has_proxy(folder: str) -> bool:
    known = read_record(folder)
    return known is not None and known.proxy is not None
