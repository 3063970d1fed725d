"""The audit: its last records, the check of its chain."""

import os
from contextlib import suppress

from handrail.inspection import restore_audit
from handrail.protocol.errors import StoreError
from handrail.server.context import Request
from handrail.server.wire import AuditCheck, AuditPage

_LOOKED_THROUGH = 10_000


def list_records(request: Request) -> AuditPage:
    """The audit has the calls of all folders of this user. Only an admin sees those of others than the served ones."""
    options, limit = request.server.options, request.query["limit"]
    if request.caller.role == "admin":
        return AuditPage(records=tuple(options.state.list_audit_records(limit)))
    folders = (folder for workspace in options.workspaces for folder in options.state.sessions(workspace))
    served = frozenset(map(os.path.basename, folders))
    found = [
        one for one in options.state.list_audit_records(_LOOKED_THROUGH) if one is None or one.session_id in served
    ]
    return AuditPage(records=tuple(found[-limit:]))


def verify(request: Request) -> AuditCheck:
    """Restores the records that a crash left out, then checks every record."""
    state = request.server.options.state
    with suppress(StoreError):  # for example a full disk: the present records are checked all the same
        restore_audit(state)
    found = state.verify_twice()
    return AuditCheck(
        intact=not found.problems and not found.unread,
        records=found.records,
        head=found.head,
        problems=found.problems,
        unread=found.unread,
    )
