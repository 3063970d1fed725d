"""processes stop: ends what goes on."""

from argparse import Namespace

from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.output import print_json, print_note, print_out, warn
from handrail.cli.process_places import (
    SCHEMA,
    ProcessEntry,
    act,
    apply,
    describe_error,
    list_processes,
    resolve_process,
)
from handrail.protocol.errors import ToolError
from handrail.protocol.records import ProcessRecord
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode
from handrail.runtime.background import BackgroundWork
from handrail.tools.process import describe_process


def run(options: Namespace) -> int:
    """Ends one with all that it started, those of a session, or all of them; their logs stay."""
    if (options.id is not None) + (options.session is not None) + options.all != 1:
        raise CommandFailed("say which: an id, --session ID, or --all (every workspace). Nothing was ended.")
    if options.id is not None:
        return _stop_one(options, resolve_process(options))
    found = list_processes(options, everywhere=options.all, session=options.session)
    running = [place for place in found if not place.process.wait(0)]
    for place in running:
        place.process.ask_to_stop("stopped")  # together: one that does not want to end takes its time
    return _stop_all(options, running)


def _stop_one(options: Namespace, place: ProcessEntry) -> int:
    if not place.process.wait(0):
        return act(options, place, "stopped", lambda work: _stop(place, work))
    record = place.process.record()
    if options.json:
        print_json(encode({"schema": SCHEMA, "process": record}))
    else:
        print_note(f"{place.process.id} had ended before: {describe_process(record)}")
    return OK


def _stop_all(options: Namespace, running: list[ProcessEntry]) -> int:
    """All of them, whatever becomes of one."""
    ended: list[ProcessRecord] = []
    errors: list[dict[str, object]] = []
    for place in running:
        try:
            ended.append(apply(place, "stopped", lambda work, place=place: _stop(place, work)))
        except ToolError as error:
            errors.append({"id": place.process.id, **describe_error(error)})
    if options.json:
        print_json(encode({"schema": SCHEMA, "processes": ended, "errors": errors}))
    else:
        print_out("".join(f"stopped {record.id}: {to_one_line(record.command)}\n" for record in ended))
        for error in errors:
            warn(f"{error['id']}: {error['code']}: {error['message']}")
        if not running:
            print_note("nothing is running")
    return FAILED if errors else OK


def _stop(place: ProcessEntry, work: BackgroundWork) -> ProcessRecord:
    place.process.stop()
    work.announce_end(place.process)
    return place.process.record()
