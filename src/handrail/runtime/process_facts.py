"""What policy needs to know about a call that is about a process session."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.policy.confinement import runnable
from handrail.protocol.decision import Facts, ProcessFact
from handrail.tools.contract import ProcessUse

if TYPE_CHECKING:
    from handrail.process.sessions.sessions import ProcessSessions


def process_facts(use: ProcessUse, sessions: "Callable[[], ProcessSessions]", tier: Callable[[], int]) -> Facts:
    """The facts of one; ToolError PROCESS_NOT_FOUND where there is none of that id."""
    if use.action == "list":
        return Facts(process=ProcessFact(action=use.action))
    found = sessions().find(use.spelled)
    record = found.record()
    # A command that only looks has a sandbox that lets it do nothing else, unless there is none.
    looks = use.action == "write" and runnable(record.command, record.cwd).proven and tier() > 0
    return Facts(process=ProcessFact(action=use.action, id=found.id, command=record.command, looks=looks))
