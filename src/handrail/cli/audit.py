"""audit: the last records."""

from argparse import Namespace

from handrail.cli.event_row import when
from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, cut, note, table
from handrail.cli.sessions import state_of_here
from handrail.protocol.wire import encode
from handrail.store.archive import last_records
from handrail.store.audit import Record

_HEAD = ("time", "tool", "decision", "rule", "result", "duration", "files", "details")
_UNSOUND = ("–", "–", "–", "–", "not sound", "–", "–", "handrail audit verify")


def run(options: Namespace) -> int:
    """Shows the end of the audit."""
    records = last_records(state_of_here(), options.limit)
    if options.json:
        answer_json(encode({"schema": "handrail.audit/1", "records": records}))
    elif records:
        answer(table([_HEAD, *(_row(record) if record else _UNSOUND for record in records)]))
    else:
        note("the audit has no record yet")
    return OK


def _row(record: Record) -> tuple[str, ...]:
    return (
        when(record.time),
        record.label,
        record.decision,
        record.rule,
        "ok" if record.ok else record.error_code or "failed",
        _duration(record.duration_ms),
        cut(" ".join(record.files_changed)),
        cut(": ".join(filter(None, (record.command or "", "" if record.ok else record.summary)))),
    )


def _duration(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
