"""Whether Python parses, by the parser of the Python that runs here. Nothing is executed, printed or warned of."""

import re
import sys
import warnings
from _ast import PyCF_ONLY_AST

_NAME = "<file that handrail checks>"
_MAX_MESSAGE_CHARS = 200


def find_python_problem(text: str) -> str | None:
    """Why a text is no Python, or None; also None where it is nested deeper than the parser goes."""
    _keep_quiet()
    try:
        compile(text.removeprefix("\ufeff"), _NAME, "exec", PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return _worded(error.msg, error.lineno)
    except ValueError as error:  # a NUL, before Python 3.12
        return _worded(str(error), None)
    except (MemoryError, RecursionError):
        return None
    return None


def _worded(message: str, line: int | None) -> str:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    where = f" in line {line}" if line else ""
    return f"it is not valid Python {version}: {message[:_MAX_MESSAGE_CHARS]}{where}"


def _keep_quiet() -> None:
    r"""Warnings about a text, as of "\d", are its author's business; the host may have asked for errors instead.

    The filter is for this one name, and stays: to take it away again would not be safe while other threads parse.
    """
    first = warnings.filters[0] if warnings.filters else None
    if first is None or first[0] != "ignore" or getattr(first[3], "pattern", None) != _PATTERN:
        warnings.filterwarnings("ignore", module=_PATTERN)


_PATTERN = re.escape(_NAME)
