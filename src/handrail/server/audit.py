"""The audit: its last records, the check of its chain."""

from contextlib import suppress

from handrail.inspection import restore_audit
from handrail.protocol.errors import StoreError
from handrail.server.context import Request
from handrail.server.wire import AuditCheck, AuditPage


def list_records(request: Request) -> AuditPage:
    return AuditPage(records=tuple(request.server.options.state.list_audit_records(request.query["limit"])))


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
