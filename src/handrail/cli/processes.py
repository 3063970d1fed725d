"""processes: what goes on in the background."""

from argparse import Namespace

from handrail.cli.exits import OK
from handrail.cli.output import answer, answer_json, can_show, cut, note, table
from handrail.cli.process_places import places
from handrail.cli.short_ids import short_ids
from handrail.process.sessions.sessions import known_of
from handrail.protocol.process import ProcessRecord
from handrail.protocol.wire import encode
from handrail.tools.process_words import age_of, state_of


def run(options: Namespace) -> int:
    """Lists the process sessions, the oldest first."""
    found = places(options, everywhere=options.all, session=options.session)
    records = sorted(known_of(place.process for place in found), key=lambda record: record.started)
    if options.json:
        answer_json(encode({"schema": "handrail.processes/1", "processes": records}))
    elif records:
        ids = short_ids(record.id for record in records)
        several = len({record.session_id for record in records}) > 1
        head = ("id", "state", "age", "port", *(("session",) if several else ()), "command", "last line")
        answer(table([head, *(_row(record, f"p-{ids[record.id]}", several) for record in records)]))
        if not options.quiet and any(record.state == "running" for record in records):
            note("what they change is not covered by undo; to end one: handrail processes stop ID")
    elif not options.quiet:
        note("nothing is running" if options.all else "nothing is running here; every workspace: --all")
    return OK


def _row(record: ProcessRecord, shown: str, several: bool) -> tuple[str, ...]:
    none = "–" if can_show("–") else "-"
    ports = ",".join(map(str, record.ports)) or none
    session = (record.session_id,) if several else ()
    return shown, state_of(record), age_of(record), ports, *session, cut(record.command, 40), cut(record.last_line, 60)
