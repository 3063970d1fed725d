"""What a write that was cut off may have left in the workspace."""

import contextlib

from handrail.protocol.decision import Facts
from handrail.protocol.error import ToolError
from handrail.runtime.session import Session
from handrail.tools.saving import temporary_name
from handrail.workspace.replace import remove_unfinished


def remove_temporary(session: Session, call_id: str, facts: Facts) -> None:
    """Removes the unfinished file of a call: its name is known."""
    for fact in facts.paths:
        if fact.access != "read" and fact.real is not None:
            with contextlib.suppress(ToolError, OSError):
                landing, _ = session.workspace.land(fact.real)
                with landing:
                    remove_unfinished(landing.folder, temporary_name(session.id, call_id))
