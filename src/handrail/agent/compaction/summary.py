"""The text that stands in the place of the older part of a talk."""

from handrail.agent.compaction.bounding import bounded
from handrail.agent.compaction.ledger import Ledger
from handrail.agent.prompt.fences import fenced

_HEAD = """\
[From the runtime, not from the person: this talk became too long for your window. What follows stands in the place of \
its older part; the newest messages come after it as they were. Go on with the task where it is, and do nothing again \
that is done already.]"""
_NOTES = """\
## Your own notes
You wrote these on the older part. What the person said goes before them."""


def summary_text(ledger: Ledger, notes: str, room: int) -> str:
    """The summary, in about so many characters: what the journal has, and what the model noted."""
    own = bounded(notes, room // 3)
    sections = [f"## {title}\n" + "\n".join(lines) for title, lines in ledger.sections(room - len(own)) if lines]
    if own:
        # They may repeat what a file said, and that may look like any section here.
        sections.insert(1, f"{_NOTES}\n{fenced('own-notes', own)}")
    return "\n\n".join((_HEAD, *sections))
