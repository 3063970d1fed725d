"""What ripgrep says besides its results: what it passed over, what it could not read, why it gave up."""

import re

from handrail.protocol.error import ToolError
from handrail.protocol.wording import visible

_PASSED_OVER = re.compile(rb"rg: DEBUG\|ignore::walk\|[^|]*: ignoring (?:\./)?(.*): Ignore\(IgnoreMatch\(Override")
_REFUSED = re.compile(rb"rg: .*\(os error \d+\)")
_KEPT = 8192
_LONGEST_LINE = 1 << 16


class Complaints:
    """The lines of one run, sorted by what they mean."""

    def __init__(self) -> None:
        self.unreadable = 0
        self.noise = 0
        """Lines that say which names were passed over."""
        self.passed_over: list[bytes] = []
        """Paths that our own globs kept it from."""
        self._words = b""
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Takes in some output; only what is known to be of use is kept."""
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:_LONGEST_LINE]
        for line in lines:
            self._sort(line)

    def failure(self, status: int) -> ToolError:
        """Why a run gave no results."""
        words = (self._words + self._rest).decode("utf-8", "replace")
        if status < 0:
            return ToolError("IO_ERROR", f"ripgrep was ended by signal {-status}; try again.")
        if "regex" in words or "literal" in words:
            return _broken_expression(words)
        return ToolError("UNAVAILABLE", f"ripgrep failed (status {status}): {visible(words.strip(), 300)}")

    def _sort(self, line: bytes) -> None:
        if line.startswith(b"rg: DEBUG|"):
            self.noise += b": ignoring " in line
            found = _PASSED_OVER.match(line)
            if found:
                self.passed_over.append(found[1])
        elif _REFUSED.match(line):
            self.unreadable += 1
        elif len(self._words) < _KEPT:
            self._words += line + b"\n"


def _broken_expression(words: str) -> ToolError:
    """ripgrep shows the expression and points at the place; the model has the expression and needs the reason."""
    if '"\\n" is not allowed' in words:
        return lines_only()
    reasons: list[str] = re.findall(r"^error: (.*)$", words, re.MULTILINE)
    reason = visible(reasons[-1] if reasons else words.strip().removeprefix("rg: "), 300).rstrip(".")
    hint = r"Put a backslash before what is meant literally, as in \( \[ \{ \. \*; look-around is not supported."
    return ToolError("INVALID_ARGUMENT", f"pattern is no valid regular expression: {reason}. {hint}")


def lines_only() -> ToolError:
    """An expression cannot reach over the end of a line."""
    message = (
        "pattern is searched for in each line by itself and cannot hold a line break; search for one of its lines."
    )
    return ToolError("INVALID_ARGUMENT", message)
