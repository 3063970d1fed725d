"""audit: the last records."""

from argparse import Namespace

from handrail.cli.context import open_state_folder
from handrail.cli.exits import OK
from handrail.cli.format import format_time
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.protocol.records import AuditRecord
from handrail.protocol.text import truncate
from handrail.protocol.wire import encode

_HEAD = ("time", "tool", "decision", "rule", "result", "duration", "files", "details")
_UNSOUND = ("–", "–", "–", "–", "not sound", "–", "–", "handrail audit verify")


def run(options: Namespace) -> int:
    """Shows the end of the audit."""
    records = open_state_folder().list_audit_records(options.limit)
    if options.json:
        print_json(encode({"schema": "handrail.audit/1", "records": records}))
    elif records:
        print_out(render_table([_HEAD, *(_row(record) if record else _UNSOUND for record in records)]))
    else:
        print_note("the audit has no record yet")
    return OK


def _row(record: AuditRecord) -> tuple[str, ...]:
    return (
        format_time(record.time),
        record.label,
        record.decision,
        record.rule,
        "ok" if record.ok else record.error_code or "failed",
        _format_milliseconds(record.duration_ms),
        truncate(" ".join(record.files_changed), 100),
        truncate(": ".join(filter(None, (record.command or "", "" if record.ok else record.summary))), 100),
    )


def _format_milliseconds(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
