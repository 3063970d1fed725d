"""processes remove: ends one and forgets it."""

from argparse import Namespace

from handrail.cli.process_places import act, resolve_process
from handrail.protocol.records import ProcessRecord
from handrail.runtime.background import BackgroundWork


def run(options: Namespace) -> int:
    """Ends it where it runs, and removes it with its log."""
    place = resolve_process(options)

    def remove(work: BackgroundWork) -> ProcessRecord:
        record = place.process.record()
        work.forget(place.process)
        return record

    return act(options, place, "removed", remove)
