"""What became of what a command changed."""

import msgspec

from handrail.changes.recorder import RecordedChangeSet
from handrail.protocol.errors import ToolError
from handrail.tools.changed_words import render_change_list, render_change_row


class ChangeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """It was made, or it was dropped, or there was nothing of it."""

    made: RecordedChangeSet | None = None
    failure: ToolError | None = None
    """Why nothing of it was committed."""
    dropped: bool = False
    """Somebody wanted what it printed and nothing else, and there was something else."""
    unkept: tuple[str, ...] = ()
    """What cannot be committed, in words: a socket, a pipe."""

    @property
    def row(self) -> str:
        """For the row that says how the command ended; empty where nothing came of it."""
        if self.made is not None:
            return render_change_row(self.made.changes)
        if self.dropped:
            return "what it changed was dropped, as the person said"
        return "what it changed was dropped" if self.failure is not None else ""

    @property
    def lines(self) -> str:
        """What there is to tell below that row."""
        if self.failure is not None:
            return f"[{self.failure.message}]\n"
        files = render_change_list(self.made.changes.changes) if self.made is not None else ""
        return files + "".join(f"[not kept: {one}]\n" for one in self.unkept)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not as it should be."""
        problem = self.made.problem if self.made is not None else None
        return (*(f"Not kept: {one}." for one in self.unkept), *([problem] if problem else []))


NOTHING = ChangeOutcome()
