"""processes: what goes on in the background."""

from argparse import Namespace

from handrail.cli.exits import OK
from handrail.cli.output import can_show, print_json, print_note, print_out, render_table
from handrail.cli.process_places import SCHEMA, list_processes
from handrail.process.sessions.sessions import collect_records
from handrail.protocol.records import ProcessRecord, shorten_ids
from handrail.protocol.text import truncate
from handrail.protocol.wire import encode
from handrail.tools.process import describe_state, format_run_time


def run(options: Namespace) -> int:
    """Lists the process sessions, the oldest first."""
    found = list_processes(options, everywhere=options.all, session=options.session)
    known = [(record, place.workspace) for place in found for record in collect_records((place.process,))]
    rows = sorted(known, key=lambda row: row[0].started)
    records = [record for record, _ in rows]
    if options.json:
        print_json(encode({"schema": SCHEMA, "processes": records}))
    elif records:
        ids = shorten_ids(record.id for record in records)
        several = len({record.session_id for record in records}) > 1
        where = (*(("session",) if several else ()), *(("workspace",) if options.all else ()))
        head = ("id", "state", "age", "port", *where, "command", "last line")
        print_out(
            render_table([head, *(_row(record, f"p-{ids[record.id]}", where, place or "?") for record, place in rows)])
        )
        if any(record.state == "running" for record in records):
            print_note(
                "what those in the background change is not covered by undo; to end one: handrail processes stop ID"
            )
    else:
        print_note("nothing is running" if options.all else "nothing is running here; every workspace: --all")
    return OK


def _row(record: ProcessRecord, shown: str, where: tuple[str, ...], workspace: str) -> tuple[str, ...]:
    none = "–" if can_show("–") else "-"
    ports = ",".join(map(str, record.ports)) or none
    places = ({"session": record.session_id, "workspace": workspace}[one] for one in where)
    return (
        shown,
        describe_state(record),
        format_run_time(record),
        ports,
        *places,
        truncate(record.command, 40),
        truncate(record.last_line, 60),
    )
