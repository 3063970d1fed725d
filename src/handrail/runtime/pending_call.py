"""A tool call on its way to its result."""

import errno
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.policy.config import PolicyConfig
from handrail.protocol.calls import ToolCall
from handrail.protocol.changes import ChangeSet
from handrail.protocol.decisions import Decision, Facts
from handrail.protocol.errors import CODES, EXHAUSTED, RETRYABLE, ErrorInfo, StoreError, ToolError, list_frames
from handrail.protocol.events import KIND_NAMES, ToolCallPermissionGranted, ToolCallStart
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.permissions import Answer, FileBinding, PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import escape_surrogates, sanitize_json
from handrail.runtime.locks import Release
from handrail.runtime.registry import ToolSet
from handrail.runtime.session import Session
from handrail.store.journal import CallContext, CallEntry, PendingEvent, SessionJournal
from handrail.store.state_dir import write_report
from handrail.tools.tool import Context, Output, Tool
from handrail.workspace.roots import Root

_MAX_MESSAGE_CHARS = 10_000


def _refuse_run(_context: Context, _arguments: Any) -> Output:
    raise ToolError("UNKNOWN_TOOL", "The call has no tool.")


NO_TOOL = Tool(
    ToolSpec(name="", title="", description="", version="", arguments=Arguments, data=Arguments), _refuse_run
)
"""The tool of a call until its own is found."""
_NO_FACTS = Facts()
_UNDECIDED = Decision(decision="deny", rule="call.refused", reason="the call was invalid before the policy decided")


class Approval(Struct, frozen=True):
    """The permission request about a call, with its answer."""

    request: PermissionRequest
    answer: Answer | None = None
    bound_files: tuple[FileBinding, ...] = ()
    """The files that the answer is valid for, as the earlier calls of the batch left them."""
    unmet_previews: frozenset[str] = frozenset()
    """Previews of earlier calls of the batch that its own builds on and that are not committed yet."""


def build_approval(request: PermissionRequest, answer: Answer) -> Approval:
    return Approval(request, answer, request.bound_files, frozenset(request.base_previews))


class PendingCall(Struct, eq=False):
    """One call on its way. Each stage fills its own group of fields."""

    call: ToolCall
    budget: int
    """Characters that the content of the result may have."""
    batch_id: str = ""
    """The id of the first call of the batch."""
    id_is_ours: bool = False
    """Whether handrail made the id, so that no other call can have it in the journal."""
    started: int = field(default_factory=time.perf_counter_ns)
    args: Any = None
    """The arguments as the journal can store them."""
    args_are_json: bool = True

    # decide
    tool: Tool = NO_TOOL
    arguments: Any = None
    facts: Facts = _NO_FACTS
    rules: PolicyConfig | None = None
    decision: Decision = _UNDECIDED
    policy_ns: int = 0
    """How long the decision took."""
    outcome_decision: Decision | None = None
    """The decision about what the call changed, unless that was simply allowed."""

    # approve
    approval: Approval | None = None
    """None: no approval was requested."""
    simulated: Any = None
    """What the call would leave for later commands of its batch, once that was simulated."""

    # execute
    roots: tuple[Root, ...] = ()
    """Folders that a person opened for this call only."""
    releases: list[Release] = []
    """Free what the call holds. Each may be called again, so that an interrupt leaves nothing locked."""
    parallel_stop: threading.Event | None = None
    """Stops the calls that run in parallel with this one."""
    ran_ahead: bool = False
    """Whether the call ran in parallel before its turn in the batch."""
    output: Output | None = None
    change_set: ChangeSet | None = None
    """What the call had changed when it was interrupted, or what it changed in another process."""

    # result
    error: ErrorInfo | None = None
    warnings: tuple[str, ...] = ()
    result: ToolResult[Any] | None = None

    # journal
    journal_state: str | None = None
    """parked, started or finished. None: the journal does not know the call."""
    pending_events: list[PendingEvent] = []
    """Events that are stored with the next state of the call."""

    def __post_init__(self) -> None:
        self.batch_id = self.batch_id or self.call.tool_call_id
        self.args, self.args_are_json = sanitize_json(self.call.args)

    def replace_call(self, call: ToolCall) -> None:
        self.call = call
        self.args, self.args_are_json = sanitize_json(call.args)

    def fail(self, error: ToolError) -> None:
        """Ends the call with an error. The first error counts. A custom tool may have put anything into it."""
        if self.error is None:
            code = error.code if error.code in CODES else "INTERNAL"
            message = escape_surrogates(str(error.message)[:_MAX_MESSAGE_CHARS])
            details = sanitize_json(error.details)[0]
            self.error = ErrorInfo(code=code, message=message, details=details, retryable=code in RETRYABLE)
            self.warnings = tuple(escape_surrogates(str(one)[:_MAX_MESSAGE_CHARS]) for one in error.warnings)

    def warn(self, code: str, text: str) -> None:
        fields = {"code": code, "text": text, "tool_call_id": self.call.tool_call_id}
        self.pending_events.append((WarningEvent, fields))

    @property
    def request(self) -> PermissionRequest | None:
        return self.approval.request if self.approval is not None else None

    @property
    def answer(self) -> Answer | None:
        return self.approval.answer if self.approval is not None else None

    @property
    def preview_id(self) -> str | None:
        return self.approval.request.preview_id if self.approval is not None else None

    @property
    def needs_approval(self) -> bool:
        return self.decision.decision == "confirm" and self.error is None

    @property
    def call_context(self) -> CallContext:
        """The part of the decision that the journal stores."""
        rules = self.rules
        if rules is None:
            return CallContext(self.batch_id, self.facts, self.decision, judged=self.outcome_decision)
        return CallContext(
            self.batch_id, self.facts, self.decision, rules.mode, rules.unattended, self.outcome_decision
        )

    @property
    def final_decision(self) -> Decision:
        return self.outcome_decision or self.decision

    @property
    def name(self) -> str:
        """The tool's own name if it is known, else the called name, shortened."""
        return self.tool.spec.name or self.call.name[:80]

    @property
    def version(self) -> str:
        return self.tool.spec.version or self.call.version or "0"


def load_call(journal: SessionJournal, offer: ToolSet, entry: CallEntry, budget: int) -> PendingCall:
    """Loads a call from the journal as it was decided. One that cannot be read has failed."""
    event = journal.event(entry.start_seq)
    is_readable = isinstance(event, ToolCallStart)
    call = build_call(event) if isinstance(event, ToolCallStart) else _build_unknown_call(entry.id)
    request = _load_inbox().find_last_request(journal.database, entry.id)
    own = _find_auto_approval(journal, entry) if entry.decision.decision == "confirm" else None
    if request is not None and request.edited and request.command is not None:
        call = replace_command(call, request.command)  # a person edited the command
    pending = PendingCall(call, budget, entry.batch_id)
    pending.approval = own or (Approval(request) if request is not None else None)
    pending.journal_state = entry.state
    # Whether the tool is still offered is checked before the call runs.
    pending.tool = offer.get_registered(call.name) or NO_TOOL
    pending.facts, pending.decision, pending.outcome_decision = entry.facts, entry.decision, entry.judged
    if not is_readable:
        pending.fail(ToolError("INTERNAL", "The journal's record of this call cannot be read. Nothing more was run."))
    return pending


def _find_auto_approval(journal: SessionJournal, entry: CallEntry) -> Approval | None:
    """The approval without a person. Unless the call was parked, only an event has it."""
    for event in journal.list_events_of(entry.id, KIND_NAMES[ToolCallPermissionGranted]):
        if isinstance(event, ToolCallPermissionGranted) and event.answer.by is not None:
            return build_approval(event.permission_request, event.answer)
    return None


def build_call(event: ToolCallStart) -> ToolCall:
    return ToolCall(
        tool_call_id=event.tool_call_id,
        name=event.tool_call_name,
        args=event.args,
        trace_id=event.trace_id,
        timestamp=event.time,
        version=event.version,
        provider_call_id=event.provider_call_id,
        message_id=event.message_id,
        requested_permissions=event.requested_permissions,
        purpose=event.purpose,
        confirm=event.confirm,
    )


def _build_unknown_call(call_id: str) -> ToolCall:
    now = datetime.now(UTC)
    return ToolCall(tool_call_id=call_id, name="unknown", args=None, trace_id=call_id, timestamp=now)


def replace_command(call: ToolCall, command: str) -> ToolCall:
    args: Any = call.args
    return replace(call, args={**args, "command": command} if isinstance(args, dict) else args)


def load_answer(session: Session, pending: PendingCall) -> None:
    found = _load_inbox().find_answer(session.journal.database, pending.call.tool_call_id)
    if found is not None:
        pending.approval = build_approval(*found)


def _load_inbox():  # the type is that of the module
    from handrail.store import inbox  # noqa: PLC0415  most calls need no approval

    return inbox


# Stored previews


def drop_preview(session: Session, preview_id: str | None) -> None:
    """Deletes a stored preview, if there is one. Can be repeated. If it fails, the daily sweep does it."""
    if preview_id is not None:
        from handrail.changes.overlay.previews import delete_preview  # noqa: PLC0415  few calls have a preview

        delete_preview(session.recorder.history, preview_id)


def build_internal_error(error: BaseException, folder: Callable[[], str]) -> ToolError:
    """The error of a call that a full machine or a defect stopped. For a defect, a report is written if possible."""
    if isinstance(error, OSError) and error.errno in EXHAUSTED:
        code, words = EXHAUSTED[error.errno]
        return ToolError(code, f"{words} ({errno.errorcode[error.errno]}), so the call was abandoned: try again later.")
    with suppress(OSError, StoreError):
        write_report(error, folder())
    kind = type(error).__name__
    where = (list_frames(error) or ["an unknown place"])[-1]
    return ToolError(
        "INTERNAL",
        f"An internal error stopped the call ({kind} at {where}). Your arguments are not the cause. "
        "Continue without this call.",
    )
