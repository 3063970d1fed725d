"""The text that stands in the place of the older part of a transcript."""

from handrail.agent.compaction.bounding import keep_ends
from handrail.agent.compaction.ledger import HistoryDigest
from handrail.agent.prompt.fences import fence_text

_HEAD = """\
[From the runtime, not from the person: this talk became too long for your window. What follows stands in the place of \
its older part; the newest messages come after it as they were. Go on with the task where it is, and do nothing again \
that is done already.]"""
_NOTES = """\
## Your own notes
You wrote these on the older part. What the person said goes before them."""


def render_summary(ledger: HistoryDigest, notes: str, room: int) -> str:
    """The summary, in about so many characters: what the journal has, and what the model noted."""
    own = keep_ends(notes, room // 3)
    sections = [f"## {title}\n" + "\n".join(lines) for title, lines in ledger.sections(room - len(own)) if lines]
    if own:
        # They may repeat what a file said, and that may look like any section here.
        sections.insert(1, f"{_NOTES}\n{fence_text('own-notes', own)}")
    return "\n\n".join((_HEAD, *sections))
