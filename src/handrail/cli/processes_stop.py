"""processes stop: ends what goes on."""

from argparse import Namespace

from handrail.cli.exits import FAILED, OK, Stop
from handrail.cli.output import note
from handrail.cli.process_places import Place, act, place_of, places
from handrail.protocol.process import ProcessRecord
from handrail.runtime.background import BackgroundWork
from handrail.tools.process_words import how_it_is


def run(options: Namespace) -> int:
    """Ends one with all that it started, those of a session, or all of them; their logs stay."""
    if (options.id is not None) + (options.session is not None) + options.all != 1:
        raise Stop("say which: an id, --session ID, or --all (every workspace). Nothing was ended.")
    if options.id is not None:
        return _stop(options, place_of(options))
    found = places(options, everywhere=options.all, session=options.session)
    running = [place for place in found if not place.process.wait(0)]
    if not running and not options.quiet:
        note("nothing is running")
    for place in running:
        place.process.ask_to_stop("stopped")  # together: one that does not want to end takes its time
    codes = [_end(options, place) for place in running]  # all of them, whatever becomes of one
    return FAILED if any(codes) else OK


def _stop(options: Namespace, place: Place) -> int:
    if place.process.wait(0):
        note(f"{place.process.id} had ended before: {how_it_is(place.process.record())}")
        return OK
    return _end(options, place)


def _end(options: Namespace, place: Place) -> int:
    def stop(work: BackgroundWork) -> ProcessRecord:
        place.process.stop()
        work.told_ended(place.process)
        return place.process.record()

    return act(options, place, "stopped", stop)
