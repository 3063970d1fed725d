"""Signed receipts of stored sessions."""

import os
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from handrail.policy.config import GRANTED
from handrail.process.signature import PublicKey, find_signer, make_key, parse_public_keys, read_public_key, sign
from handrail.protocol import events
from handrail.protocol.decisions import Verdict
from handrail.protocol.errors import StoreError
from handrail.protocol.receipt import (
    Approver,
    ChainedRecord,
    Receipt,
    ReceiptAnswer,
    ReceiptAudit,
    ReceiptCall,
    ReceiptCheck,
    ReceiptHost,
    ReceiptPrompt,
    SealedRecord,
)
from handrail.protocol.version import VERSION
from handrail.protocol.wire import UNREADABLE, decode_json, encode
from handrail.runtime.results import BY_PERSON
from handrail.state import StoredState, find_workspace, open_journal
from handrail.store.audit import FinishedCalls, build_outcome, read_chain, verify_chain
from handrail.store.change_log import ChangeLog
from handrail.store.database import CHANGES, ReadOnlyDatabase
from handrail.store.journal import SessionJournal

_NAMESPACE = "handrail-receipt"
"""Is signed too, so that no signature for another purpose passes for a receipt's."""
_SEAL = b',"signature":'
_set = msgspec.structs.replace


def build_receipt(state: StoredState, folder: str) -> Receipt:
    """The receipt of a session folder. StoreError if an event cannot be read: a receipt leaves nothing out."""
    with open_journal(folder) as journal:
        log = _JournalReader(journal)
    undone = _list_undone(folder, [call.change.number for call in log.calls.values() if call.change is not None])
    session, chain = os.path.basename(folder), list[SealedRecord]()
    for record, digest in read_chain(state.audit):
        chain[1:] = [SealedRecord(seq=record.seq, hash=digest)]
        if record.session_id == session:
            log.add_record(record, digest)
    calls = (_set(one, undone_by=undone.get(one.change.number)) if one.change else one for one in log.calls.values())
    return Receipt(
        version=VERSION,
        made=datetime.now(UTC),
        workspace=os.path.basename(find_workspace(folder) or ""),
        session_id=session,
        state=state.list_usage([folder])[0].state,
        events=log.events,
        prompts=tuple(log.prompts),
        calls=tuple(calls),
        hosts=tuple(log.list_hosts()),
        audit=ReceiptAudit(first=chain[0].hash, head=chain[-1]) if chain else None,
    )


def find_audit_problems(state: StoredState, folder: str) -> tuple[str, ...]:
    """Compares the whole chain with the calls of a session. Sessions of several workspaces may share its name."""
    session = os.path.basename(folder)
    problems: tuple[str, ...] = ()
    for _ in range(2):  # a call that just ended has its result before its record
        calls = FinishedCalls({}, set(), Counter())
        for one in state.sessions():
            if os.path.basename(one) == session:
                with open_journal(one) as journal:
                    for call, result in journal.list_finished():
                        calls.outcomes.setdefault((session, call), []).append(build_outcome(result))
        problems = verify_chain(state.audit, calls, ()).problems
        if not problems:
            break
    return problems


class _JournalReader:
    """Collects what a receipt tells of the events of a journal."""

    def __init__(self, journal: SessionJournal) -> None:
        self.prompts: list[ReceiptPrompt] = []
        self.calls: dict[str, ReceiptCall] = {}
        self.events = 0
        self._outcomes: dict[str, object] = {}
        self._traces: dict[str, str] = {}
        self._hosts: dict[str, ReceiptHost] = {}
        for event in journal.events():
            if isinstance(event, events.BrokenEvent):
                problem = f"event {event.seq} of session {journal.session_id} cannot be read: {event.problem}"
                raise StoreError(f"{problem}. No receipt was made, because the event would be missing")
            self.events = event.seq
            if isinstance(event, events.ToolCallStart):
                self._add_call(event, journal)
            else:
                self._add(event)

    def list_hosts(self) -> list[ReceiptHost]:
        return sorted(self._hosts.values(), key=lambda one: one.host)

    def add_record(self, record: ChainedRecord, digest: str) -> None:
        """Adds a record to its call. A session of the same name may have a call with the same id."""
        call, outcome = self.calls.get(record.tool_call_id), self._outcomes.get(record.tool_call_id)
        error, files, programs = record.error_code, record.files_changed, record.commands_run
        facts = (record.name, record.ok, error, record.duration_ms, files, programs)
        if call is None or facts != outcome or record.trace_id != self._traces[call.id]:
            return
        decision: Any = record.decision
        self.calls[call.id] = _set(
            call,
            args=record.args,
            decision=decision,
            rule=record.rule,
            by=call.by if call.answer else _find_approver(decision, record.rule),
            programs=programs,
            record=SealedRecord(seq=record.seq, hash=digest),
        )

    def _add_call(self, event: events.ToolCallStart, journal: SessionJournal) -> None:
        context = journal.context(event.seq)
        if context is None:
            problem = f"the decision about call {event.tool_call_id} of session {journal.session_id} cannot be read"
            raise StoreError(f"{problem}. No receipt was made, because the decision would be missing")
        decision, command = context.judged or context.decision, context.facts.command
        self._traces[event.tool_call_id] = event.trace_id
        self.calls[event.tool_call_id] = ReceiptCall(
            id=event.tool_call_id,
            time=event.time,
            name=event.tool_name or event.tool_call_name,
            server=event.server_name or None,
            command=command.text if command is not None else None,
            mode=context.mode,
            decision=decision.decision,
            rule=decision.rule,
            by=_find_approver(decision.decision, decision.rule),
        )

    def _add(self, event: events.Event) -> None:
        match event:
            case events.User():
                self.prompts.append(ReceiptPrompt(time=event.time, text=event.text))
            case events.ToolCallPermissionGranted() | events.ToolCallPermissionDenied():
                self._add_answer(event)
            case events.ChangeEvent():
                self._update(event, change=event.change)
            case events.ToolCallEnd() | events.ToolCallError():
                self._outcomes[event.tool_call_id] = build_outcome(event.result)
                error, sandbox = event.result.error, event.result.meta.sandbox
                code = error.code if error else None
                self._update(event, finished=True, ok=event.result.ok, error_code=code, sandbox=sandbox)
            case events.Network():
                name = f"{event.host}:{event.port}"
                host = self._hosts.get(name, ReceiptHost(host=name))
                self._hosts[name] = _set(
                    host, reached=host.reached + event.allowed, blocked=host.blocked + (not event.allowed)
                )
            case _:
                pass

    def _add_answer(self, event: events.ToolCallPermissionGranted | events.ToolCallPermissionDenied) -> None:
        answer, request = event.answer, event.permission_request
        self._update(
            event,
            by=answer.by or "person",
            answer=ReceiptAnswer(kind=answer.kind, time=event.time, reason=answer.reason),
            **({"command": request.command, "edited": request.edited} if request.command is not None else {}),
        )

    def _update(self, event: events.ToolEvent, **fields: Any) -> None:
        if (call := self.calls.get(event.tool_call_id)) is not None:
            self.calls[call.id] = _set(call, **fields)


def _find_approver(decision: Verdict, rule: str) -> Approver | None:
    """Who decided about a call that nobody answered for."""
    if decision == "confirm":
        return None
    return "grant" if rule.startswith(GRANTED) else "person" if rule == BY_PERSON else "policy"


def _list_undone(folder: str, numbers: Iterable[int | None]) -> dict[int | None, int | None]:
    """The changes that were undone by now, also by another session, each with the change that did it."""
    path = os.path.join(os.path.dirname(folder), ".changes", "changes.db")
    wanted = [number for number in numbers if number is not None]
    if not wanted or not os.path.lexists(path):
        return {}
    database = ReadOnlyDatabase(path, CHANGES)
    try:
        entries = map(ChangeLog(database).entry, wanted)
        return {entry.number: entry.undone_by for entry in entries if entry is not None}
    finally:
        database.close()


# Signatures


def sign_receipt(state: StoredState, receipt: Receipt, key: str | None = None) -> bytes:
    """The receipt in one line of JSON that ends in its signature. Without a key, by the key of the state folder."""
    if key is None:
        make_key(key := _build_key_path(state))
    body = encode(receipt)
    return body[:-1] + _SEAL + encode(sign(body + b"\n", key, _NAMESPACE)) + b"}\n"


def check_receipt(state: StoredState, data: bytes, signers: str | None = None) -> ReceiptCheck:
    """Checks the signature of a receipt and, if the state folder has its audit chain, its records.

    `signers` are the public keys that count besides the state folder's own.
    """
    own = read_public_key(_build_key_path(state))
    body, seal, end = data.rpartition(_SEAL)
    signature = _read_signature(end) if seal else None
    if signature is None:
        return ReceiptCheck(("The file is not a signed receipt, or the end of the file was changed.",))
    signer = find_signer(body + b"}\n", signature, _NAMESPACE)
    if signer is None:
        return ReceiptCheck(("The receipt or its signature was changed after it was signed.",))
    try:
        receipt = decode_json(body + b"}", Receipt)
    except UNREADABLE as error:
        problem = f"The signed text is not a receipt of this version of handrail ({VERSION}): {error}."
        return ReceiptCheck((problem,), None, signer.fingerprint)
    problems = _check_signer(signer, own, signers)
    first = next((digest for _, digest in read_chain(state.audit)), None)
    has_chain = receipt.audit is not None and (signer == own or receipt.audit.first == first)
    problems += _find_record_problems(state, receipt) if has_chain else []
    return ReceiptCheck(tuple(problems), receipt, signer.fingerprint, has_chain)


def _build_key_path(state: StoredState) -> str:
    return os.path.join(state.path, "receipt.key")


def _read_signature(end: bytes) -> str | None:
    """None if it is not spelled as `sign_receipt` does."""
    try:
        signature = decode_json(end.removesuffix(b"}\n"), str)
    except UNREADABLE:
        return None
    return signature if end == encode(signature) + b"}\n" else None


def _check_signer(signer: PublicKey, own: PublicKey | None, signers: str | None) -> list[str]:
    if signer == own or signer in parse_public_keys(signers or ""):
        return []
    return [f"The receipt was signed by an unknown key: {signer.fingerprint}."]


def _find_record_problems(state: StoredState, receipt: Receipt) -> list[str]:
    """The records of a receipt that the chain of the state folder does not have."""
    records = [call.record for call in receipt.calls if call.record is not None]
    head = [receipt.audit.head] if receipt.audit is not None else []
    missing = {(one.seq, one.hash) for one in (*records, *head)}
    for record, digest in read_chain(state.audit):
        missing.discard((record.seq, digest))
    numbers = ", ".join(str(seq) for seq, _ in sorted(missing)[:10])
    return [f"The audit of this state folder no longer has these records as they were: {numbers}."] if missing else []
