"""`handrail audit`: the records of the audit log."""

from argparse import ArgumentParser
from types import SimpleNamespace

from handrail.cli.context import open_state_folder
from handrail.cli.exits import FAILED, INFRASTRUCTURE, OK
from handrail.cli.format import format_time
from handrail.cli.output import choose_out_paint, print_json, print_note, print_out, print_painted, render_table, warn
from handrail.cli.parser import Command, add_json_option
from handrail.cli.usage import parse_number
from handrail.protocol.errors import StoreError
from handrail.protocol.records import AuditRecord
from handrail.protocol.text import truncate
from handrail.protocol.wire import encode
from handrail.terminal.style import Style

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
    from handrail.inspection import restore_audit  # noqa: PLC0415  it loads the tools

    state = open_state_folder()
    try:
        restored = restore_audit(state)
    except StoreError as error:  # for example a read-only state folder: the present records are checked all the same
        warn(f"warning: records that a crash left out were not restored: {error}")
        restored = 0
    found = state.verify_twice()
    if options.json:
        body = {"schema": _SCHEMA, "intact": found.intact, "count": found.records, "head": found.head}
        print_json(encode({**body, "problems": found.problems, "unread": found.unread, "restored": restored}))
    else:
        if restored:
            print_note(f"{_format_count(restored)} restored after a crash")
        print_out("".join(f"{problem}\n" for problem in found.problems) or f"{_format_count(found.records)} intact\n")
        for text in found.unread:
            warn(f"warning: {text}")
    return FAILED if found.problems else INFRASTRUCTURE if found.unread else OK


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


def _format_count(number: int) -> str:
    return f"{number:,} record{'s' * (number != 1)}"


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=parse_number(1), default=20, help="at most so many records (20)")
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
}
