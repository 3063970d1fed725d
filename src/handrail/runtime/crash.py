"""What is kept of our own defects: where in the code, never what the data was."""

import contextlib
import errno
import os
from collections.abc import Callable

from handrail.protocol.errors import EXHAUSTED, StoreError, ToolError
from handrail.store.state_dir import make_id, open_private


def build_internal_error(error: BaseException, folder: Callable[[], str]) -> ToolError:
    """The refusal for a full machine, or for a defect, after its report was written, where there is room for one."""
    if isinstance(error, OSError) and error.errno in EXHAUSTED:
        code, words = EXHAUSTED[error.errno]
        return ToolError(code, f"{words} ({errno.errorcode[error.errno]}), so the call was given up: try again later.")
    with contextlib.suppress(OSError, StoreError):
        write_report(error, folder())
    kind = type(error).__name__
    where = (list_frames(error) or ["an unknown place"])[-1]
    return ToolError(
        "INTERNAL", f"A defect stopped the call ({kind} at {where}). It is not your arguments; go on without it."
    )


def write_report(error: BaseException, folder: str) -> str:
    """Writes down what kind of error came from where; the path of the report."""
    report = os.path.join(folder, f"{make_id('crash')}.txt")
    # The text of the exception stays out: it may quote a file or an argument.
    with open(report, "w", encoding="utf-8", opener=open_private) as out:
        out.write("\n".join([type(error).__name__, *list_frames(error), ""]))
    return report


def list_frames(error: BaseException) -> list[str]:
    """The way to the error through the code, the place itself last."""
    import traceback  # noqa: PLC0415  costs start-up time, and defects are rare

    frames = traceback.extract_tb(error.__traceback__)
    return [f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]
