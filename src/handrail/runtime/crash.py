"""What is kept of our own defects: where in the code, never what the data was."""

import contextlib
import os
import traceback

from handrail.protocol.error import ToolError
from handrail.store.identity import new_id


def internal_error(error: BaseException, folder: str) -> ToolError:
    """The refusal for a defect, after its report was written."""
    frames = traceback.extract_tb(error.__traceback__)
    kind = type(error).__name__
    lines = [f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
    report = os.path.join(folder, f"{new_id('crash')}.txt")
    # The text of the exception stays out: it may quote a file or an argument.
    with contextlib.suppress(OSError), open(report, "w", encoding="utf-8") as out:
        out.write("\n".join([kind, *lines, ""]))
    where = lines[-1] if lines else "an unknown place"
    return ToolError(
        "INTERNAL", f"A defect stopped the call ({kind} at {where}). It is not your arguments; go on without it."
    )
