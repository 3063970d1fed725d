"""The receipt of a session: prompts, calls, approvals, changes, with the hashes of its audit records."""

from datetime import datetime
from typing import Literal

import msgspec

from handrail.protocol.changes import ChangeSet
from handrail.protocol.decisions import Mode, Verdict
from handrail.protocol.permissions import AnswerKind
from handrail.protocol.records import AuditRecord, SessionState
from handrail.protocol.results import SandboxUsed
from handrail.protocol.wire import Json, Time, Wire

RECEIPT_SCHEMA = "handrail.receipt/1"
Approver = Literal["person", "grant", "preview", "policy", "expiry"]
"""`policy`: the mode or a rule. `preview`: the preview changed nothing, or only caches. `expiry`: nobody answered."""


class ChainedRecord(AuditRecord, frozen=True, kw_only=True):
    """A record with its place in the hash chain."""

    seq: int
    prev: str
    """The hash of the record before."""


class SealedRecord(Wire, frozen=True):
    """A record of the audit chain."""

    seq: int
    hash: str


class ReceiptPrompt(Wire, frozen=True):
    time: Time
    text: str


class ReceiptAnswer(Wire, frozen=True):
    """The answer to a permission request."""

    kind: AnswerKind
    time: Time
    reason: str | None = None


class ReceiptCall(Wire, frozen=True, kw_only=True):
    """A call without its result's content."""

    id: str
    time: Time
    name: str
    server: str | None = None
    """Another server, whose effects handrail does not know."""
    args: Json = None
    """As the audit has them: texts are replaced by their lengths. Null: the call has no audit record."""
    command: str | None = None
    edited: bool = False
    """Whether a person edited the command."""
    mode: Mode | None = None
    decision: Verdict
    rule: str
    by: Approver | None = None
    """Who let it run or refused it. Null: nobody yet."""
    answer: ReceiptAnswer | None = None
    finished: bool = False
    ok: bool = False
    error_code: str | None = None
    programs: tuple[str, ...] = ()
    """The programs that ran."""
    sandbox: SandboxUsed | None = None
    change: ChangeSet | None = None
    undone_by: int | None = None
    """The later change that undid its change."""
    record: SealedRecord | None = None


class ReceiptHost(Wire, frozen=True):
    """The connections to a host that went through handrail's proxy."""

    host: str
    reached: int = 0
    blocked: int = 0


class ReceiptAudit(Wire, frozen=True):
    """The audit chain when the receipt was made."""

    first: str
    """The hash of its first record, which tells chains apart."""
    head: SealedRecord


class Receipt(Wire, frozen=True, kw_only=True, omit_defaults=False):
    schema: Literal["handrail.receipt/1"] = RECEIPT_SCHEMA
    version: str
    """Of handrail."""
    made: datetime
    workspace: str
    """The name of its folder, without the path."""
    session_id: str
    state: SessionState
    events: int
    """Later events of the session are not in the receipt."""
    prompts: tuple[ReceiptPrompt, ...]
    calls: tuple[ReceiptCall, ...]
    hosts: tuple[ReceiptHost, ...]
    audit: ReceiptAudit | None
    """Null: the audit has no record."""


class ReceiptCheck(msgspec.Struct, frozen=True):
    """The result of checking a signed receipt."""

    problems: tuple[str, ...]
    receipt: Receipt | None = None
    """None if its text or its signature was changed."""
    fingerprint: str | None = None
    """Of the key that signed it."""
    chain_checked: bool = False
    """Whether the audit chain is in this state folder."""
