"""`handrail audit`: the records of the audit log, with receipts of sessions."""

from argparse import ArgumentParser
from types import SimpleNamespace
from typing import TYPE_CHECKING

from handrail.cli.context import open_state_folder, resolve_session_folder, resolve_workspace
from handrail.cli.exits import FAILED, INFRASTRUCTURE, OK, CommandFailed
from handrail.cli.files import OutFile, read_input_file
from handrail.cli.format import format_time
from handrail.cli.output import choose_out_paint, print_json, print_note, print_out, print_painted, render_table, warn
from handrail.cli.parser import Command, add_json_option, add_workspace_option
from handrail.cli.receipt_page import render_page
from handrail.cli.stdin import read_stdin_text
from handrail.cli.usage import parse_number
from handrail.protocol.errors import StoreError
from handrail.protocol.receipt import Receipt
from handrail.protocol.records import AuditRecord
from handrail.protocol.text import format_count, truncate
from handrail.protocol.wire import encode
from handrail.terminal.style import Style

if TYPE_CHECKING:
    from handrail.state import StoredState

_SCHEMA = "handrail.audit/1"
_HEAD = ("time", "tool", "decision", "rule", "result", "duration", "files", "details")
_REFUSED = frozenset({"POLICY_DENIED", "PERMISSION_DENIED", "PERMISSION_REQUIRED", "OUTSIDE_WORKSPACE", "CANCELLED"})
_UNSOUND = ("–", "–", "–", "–", "not sound", "–", "–", "handrail audit verify")


def run(options: SimpleNamespace) -> int:
    records = open_state_folder().list_audit_records(options.limit)
    if options.json:
        print_json(encode({"schema": _SCHEMA, "records": records}))
    elif records:
        rows = [_HEAD, *(_build_row(record) if record else _UNSOUND for record in records)]
        print_painted(render_table(rows, _paint_cell))
    else:
        print_note("the audit has no record yet")
    return OK


def run_verify(options: SimpleNamespace) -> int:
    """Restores the records that a crash left out, then checks every record."""
    state = open_state_folder()
    restored = _restore(state)
    found = state.verify_twice()
    if options.json:
        body = {"schema": _SCHEMA, "intact": found.intact, "count": found.records, "head": found.head}
        print_json(encode({**body, "problems": found.problems, "unread": found.unread, "restored": restored}))
    else:
        if restored:
            print_note(f"{format_count(restored, 'record')} restored after a crash")
        print_out(
            "".join(f"{problem}\n" for problem in found.problems) or f"{format_count(found.records, 'record')} intact\n"
        )
        for text in found.unread:
            warn(f"warning: {text}")
    return FAILED if found.problems else INFRASTRUCTURE if found.unread else OK


# Receipts


def run_receipt(options: SimpleNamespace) -> int:
    from handrail import receipts  # noqa: PLC0415  they load the tools

    state, folder = open_state_folder(), resolve_session_folder(options, options.session)
    out = OutFile(options.out, resolve_workspace(options)) if options.out else None
    _restore(state)
    if problems := receipts.find_audit_problems(state, folder):
        raise CommandFailed(f"{problems[0]} No receipt was made. See: handrail audit verify", FAILED)
    receipt = receipts.build_receipt(state, folder)
    signed = receipts.sign_receipt(state, receipt, options.key) if out or options.json else b""
    if out is not None:
        out.write(signed)
    if options.json:
        print_json(signed.rstrip(b"\n"))
    else:
        print_out(render_page(receipt))
    if receipt.state != "idle":
        print_note(f"The session is {receipt.state}: calls after event {receipt.events} are not in this receipt.")
    if not signed:
        print_note(f"This page is not signed. To sign: handrail audit receipt {receipt.session_id} --out FILE")
    return OK


def run_check_receipt(options: SimpleNamespace) -> int:
    from handrail.receipts import check_receipt  # noqa: PLC0415  they load the tools

    signers = read_input_file(options.signer).decode(errors="replace") if options.signer else None
    data = read_stdin_text().encode() if options.file == "-" else read_input_file(options.file)
    found = check_receipt(open_state_folder(), data, signers)
    if options.json:
        body = {"schema": "handrail.receipt-check/1", "intact": not found.problems, "problems": found.problems}
        body |= {"fingerprint": found.fingerprint, "chainChecked": found.chain_checked, "receipt": found.receipt}
        print_json(encode(body))
        return FAILED if found.problems else OK
    for problem in found.problems:
        print_out(f"{problem}\n")
    if found.receipt is not None and found.fingerprint is not None and not found.problems:
        print_out(render_page(found.receipt) if options.page else _describe_receipt(found.receipt, found.fingerprint))
        if not found.chain_checked:
            print_note("The audit chain was not checked: it is not in this state folder.")
    elif found.receipt is not None and not found.chain_checked:
        print_note("If you trust this key, name a file with the public key: --signer FILE")
    return FAILED if found.problems else OK


def _describe_receipt(receipt: Receipt, fingerprint: str) -> str:
    calls = format_count(len(receipt.calls), "call")
    return f"receipt of session {receipt.session_id} intact: {calls}, signed by {fingerprint}\n"


def _restore(state: "StoredState") -> int:
    """Restores the records that a crash left out."""
    from handrail.inspection import restore_audit  # noqa: PLC0415  it loads the tools

    try:
        return restore_audit(state)
    except StoreError as error:  # for example a read-only state folder: the present records are checked all the same
        warn(f"warning: records that are missing after a crash were not restored: {error}")
        return 0


def _build_row(record: AuditRecord) -> tuple[str, ...]:
    milliseconds = record.duration_ms
    return (
        format_time(record.time),
        record.label,
        f"{record.decision} (by {record.answered_by})" if record.answered_by else record.decision,
        record.rule,
        "ok" if record.ok else record.error_code or "failed",
        f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s",
        truncate(" ".join(record.files_changed), 100),
        truncate(": ".join(filter(None, (record.command or "", "" if record.ok else record.summary))), 100),
    )


def _paint_cell(column: int, cell: str) -> str:
    if _HEAD[column] == "rule":
        return choose_out_paint()(cell, "dim")
    if _HEAD[column] != "result" or cell in {"result", "–"}:
        return cell
    style: Style = "ok" if cell == "ok" else "refused" if cell in _REFUSED else "failed"
    return choose_out_paint()(cell, style)


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=parse_number(1), default=20, help="at most so many records (20)")
    add_json_option(parser)


def _add_receipt_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="the id of the session, or its beginning")
    parser.add_argument("--out", metavar="FILE", help="write the signed receipt to this file")
    parser.add_argument("--key", metavar="FILE", help="sign with your SSH key instead of handrail's own")
    add_workspace_option(parser)
    add_json_option(parser)


def _add_check_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the signed receipt; - reads stdin")
    parser.add_argument("--signer", metavar="FILE", help="accept the public SSH keys in this file")
    parser.add_argument("--page", action="store_true", help="print the page of the receipt if it is intact")
    add_json_option(parser)


COMMANDS = {
    "audit": Command(
        run, _add_arguments, ("handrail audit --limit 50", "handrail audit --json | jq '.records[].rule'")
    ),
    "audit verify": Command(
        run_verify,
        add_json_option,
        ("handrail audit verify", "handrail audit verify --json | jq .intact"),
        {FAILED: "the audit is broken"},
    ),
    "audit receipt": Command(
        run_receipt,
        _add_receipt_arguments,
        ("handrail audit receipt cli", "handrail audit receipt cli --out receipt.json > receipt.md"),
        {FAILED: "there is no such session, or the audit is broken"},
    ),
    "audit check-receipt": Command(
        run_check_receipt,
        _add_check_arguments,
        ("handrail audit check-receipt receipt.json", "handrail audit check-receipt receipt.json --signer keys.pub"),
        {FAILED: "the receipt was changed, its signer is unknown, or the audit is broken"},
    ),
}
