"""What ripgrep says besides its results: what it passed over, what it could not read, why it gave up."""

import re

from handrail.protocol.error import ToolError
from handrail.protocol.wording import clip_text

_LOG = re.compile(rb"(?:rg: )?DEBUG\|")
"""ripgrep puts its name before each line since version 14."""
_LOGGED = re.compile(rb".*: Ignore\(IgnoreMatch\(.*\)$")
_LOST = "\N{REPLACEMENT CHARACTER}".encode()
"""What stands in a log for bytes that are not UTF-8."""
_PASSED_OVER = re.compile(rb".*?\|ignore::walk\|[^|]*?: ignoring (?:\./)?(.*): Ignore\(IgnoreMatch\(Override")
_MISHAP = re.compile(rb".*\(os error (\d+)\)")
_REFUSED = {b"1", b"13"}
_MAX_KEPT_BYTES = 8192
_MAX_LINE_BYTES = 1 << 16


class RipgrepStderr:
    """The lines of one run, sorted by what they mean."""

    def __init__(self) -> None:
        self.mishaps = 0
        """What could not be opened, and does not end the search: also what went away meanwhile."""
        self.unreadable = 0
        """Of that, what the operating system refused."""
        self.logs = False
        """Whether it logs in the way that is known."""
        self.noise = 0
        """Lines that say which names were passed over."""
        self.passed_over: list[bytes] = []
        """Paths that our own globs kept it from."""
        self.unclear = False
        """Whether a name was logged in a way that does not tell which: with a line break, or not in UTF-8."""
        self._words = b""
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Takes in some output; only what is known to be of use is kept."""
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:_MAX_LINE_BYTES]
        for line in lines:
            self._sort(line)

    def failure(self, status: int) -> ToolError:
        """Why a run gave no results."""
        words = (self._words + self._rest).decode("utf-8", "replace")
        if status < 0:
            return ToolError("IO_ERROR", f"ripgrep was ended by signal {-status}; try again.")
        if "regex" in words or "literal" in words:
            return _refused(words)
        return ToolError("UNAVAILABLE", f"ripgrep failed (status {status}): {clip_text(words.strip(), 300)}")

    def _sort(self, line: bytes) -> None:
        if _LOG.match(line):
            self.logs = True
            if b": ignoring " in line:
                self.noise += 1
                self._passed(line)
        elif mishap := _MISHAP.match(line):
            self.mishaps += 1
            self.unreadable += mishap[1] in _REFUSED
        elif len(self._words) < _MAX_KEPT_BYTES:
            self._words += line + b"\n"

    def _passed(self, line: bytes) -> None:
        if not _LOGGED.match(line) or _LOST in line:
            self.unclear = True
        elif (found := _PASSED_OVER.match(line)) and _is_below(found[1]):
            self.passed_over.append(found[1])


def _is_below(path: bytes) -> bool:
    """Whether a path that a log names is one below the folder; a name with a line break can make up any."""
    return not path.startswith(b"/") and not {b"", b".", b".."}.intersection(path.split(b"/"))


def _refused(words: str) -> ToolError:
    """ripgrep shows the expression and points at the place; the model has the expression and needs the reason."""
    if "is not allowed in a regex" in words and r"\n" in words:
        return build_line_break_error()
    reasons: list[str] = re.findall(r"^error: (.*)$", words, re.MULTILINE)
    reason = clip_text(reasons[-1] if reasons else words.strip().removeprefix("rg: "), 300).rstrip(".")
    return build_pattern_error(reason)


def build_pattern_error(reason: str) -> ToolError:
    """The refusal of an expression, and what may help."""
    hint = r"Put a backslash before what is meant literally, as in \( \[ \{ \. \*; look-around is not supported."
    return ToolError("INVALID_ARGUMENT", f"pattern is no valid regular expression: {reason}. {hint}")


def build_line_break_error() -> ToolError:
    """An expression cannot reach over the end of a line."""
    message = (
        "pattern is searched for in each line by itself and cannot hold a line break; search for one of its lines."
    )
    return ToolError("INVALID_ARGUMENT", message)
