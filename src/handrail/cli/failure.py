"""What a person reads when a command fails: handrail's own errors in their words, a defect in one line."""

import traceback as tracebacks

from handrail.cli.exits import INFRASTRUCTURE, USAGE
from handrail.cli.output import warn
from handrail.protocol.errors import HandrailError, StoreError
from handrail.state import report_defect


def explain(error: BaseException, *, traceback: bool) -> int:
    """Says what happened; the exit code."""
    if isinstance(error, HandrailError):
        warn(f"handrail: {error}")
        return INFRASTRUCTURE if isinstance(error, StoreError) else USAGE
    if isinstance(error, OSError) and error.filename:
        warn(f"handrail: {error.filename} cannot be used: {error.strerror}")
        return INFRASTRUCTURE
    if traceback:
        # Without the error's own text, which may quote a file or an argument.
        warn("".join(tracebacks.format_tb(error.__traceback__)).rstrip())
    warn(f"handrail: a defect stopped the command {report_defect(error)}")
    return INFRASTRUCTURE
