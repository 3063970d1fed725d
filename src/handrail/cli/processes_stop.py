"""processes stop: ends what goes on."""

from argparse import Namespace

from handrail.cli.exits import FAILED, OK, Stop
from handrail.cli.output import answer, answer_json, note, one_line, warn
from handrail.cli.process_places import SCHEMA, Place, act, apply, describe_error, place_of, places
from handrail.protocol.error import ToolError
from handrail.protocol.process import ProcessRecord
from handrail.protocol.wire import encode
from handrail.runtime.background import BackgroundWork
from handrail.tools.process_words import how_it_is


def run(options: Namespace) -> int:
    """Ends one with all that it started, those of a session, or all of them; their logs stay."""
    if (options.id is not None) + (options.session is not None) + options.all != 1:
        raise Stop("say which: an id, --session ID, or --all (every workspace). Nothing was ended.")
    if options.id is not None:
        return _stop_one(options, place_of(options))
    found = places(options, everywhere=options.all, session=options.session)
    running = [place for place in found if not place.process.wait(0)]
    for place in running:
        place.process.ask_to_stop("stopped")  # together: one that does not want to end takes its time
    return _stop_all(options, running)


def _stop_one(options: Namespace, place: Place) -> int:
    if not place.process.wait(0):
        return act(options, place, "stopped", lambda work: _stop(place, work))
    record = place.process.record()
    if options.json:
        answer_json(encode({"schema": SCHEMA, "process": record}))
    else:
        note(f"{place.process.id} had ended before: {how_it_is(record)}")
    return OK


def _stop_all(options: Namespace, running: list[Place]) -> int:
    """All of them, whatever becomes of one."""
    ended: list[ProcessRecord] = []
    errors: list[dict[str, object]] = []
    for place in running:
        try:
            ended.append(apply(place, "stopped", lambda work, place=place: _stop(place, work)))
        except ToolError as error:
            errors.append({"id": place.process.id, **describe_error(error)})
    if options.json:
        answer_json(encode({"schema": SCHEMA, "processes": ended, "errors": errors}))
    else:
        answer("".join(f"stopped {record.id}: {one_line(record.command)}\n" for record in ended))
        for error in errors:
            warn(f"{error['id']}: {error['code']}: {error['message']}")
        if not running:
            note("nothing is running")
    return FAILED if errors else OK


def _stop(place: Place, work: BackgroundWork) -> ProcessRecord:
    place.process.stop()
    work.told_ended(place.process)
    return place.process.record()
