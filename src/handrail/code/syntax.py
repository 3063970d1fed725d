"""Finds syntax errors in JSON, YAML, TOML, Markdown front matter or Python.

Each function returns the error as a sentence, or None. A text that is nested too deeply for a parser gives None.
"""

import re
import sys
import warnings
from _ast import PyCF_ONLY_AST

_MAX_BRACKETS = 20_000
_MAX_LINE_DOTS = 2_000
_TEMPLATE = re.compile(r"^[^\"'#\n]*(?:(?<!\$)\{\{|\{%|<%)", re.MULTILINE)
"""A template that becomes YAML later. In quotes and after `$` it is YAML already."""
_PYTHON_FILE = "<file that handrail checks>"
_PYTHON_FILE_PATTERN = re.escape(_PYTHON_FILE)
_MAX_MESSAGE_CHARS = 200


def find_json_problem(text: str) -> str | None:
    import json  # noqa: PLC0415  only for files of this kind

    try:
        json.loads(text, parse_int=str)  # int refuses thousands of digits
    except ValueError as error:
        return f"it is not valid JSON: {error}"
    except RecursionError:
        return None
    return None


def find_toml_problem(text: str) -> str | None:
    if _is_slow(text):
        return None
    import tomllib  # noqa: PLC0415  only for files of this kind

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return f"it is not valid TOML: {error}"
    except (ValueError, RecursionError):  # a limit of Python
        return None
    return None


def find_yaml_problem(text: str, subject: str = "it") -> str | None:
    if _is_slow(text):
        return None
    import yaml  # noqa: PLC0415  only for files of this kind

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C version is ten times as fast
        list(yaml.parse(text, Loader=loader))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    except RecursionError:
        return None
    except (yaml.YAMLError, ValueError) as error:
        if _TEMPLATE.search(text):
            return None
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        return f"{subject} is not valid YAML: {getattr(error, 'problem', None) or type(error).__name__}{where}"
    return None


def find_front_matter_problem(text: str) -> str | None:
    """Check the YAML at the start of a Markdown file."""
    if not text.startswith("---"):
        return None
    first, *lines = text.splitlines()
    if first.rstrip() != "---":
        return None  # a horizontal rule
    end = next((number for number, line in enumerate(lines) if line.rstrip() in {"---", "..."}), None)
    if end is None:
        return "its front matter has no closing ---"
    return find_yaml_problem("\n".join(lines[:end]), "its front matter")


def find_python_problem(text: str) -> str | None:
    """Check with the parser of this Python. Nothing is executed."""
    _ignore_warnings()
    try:
        compile(text.removeprefix("\ufeff"), _PYTHON_FILE, "exec", PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        return _describe_python_error(error.msg, error.lineno)
    except ValueError as error:  # a NUL, before Python 3.12
        return _describe_python_error(str(error), None)
    except (MemoryError, RecursionError):
        return None
    return None


def _describe_python_error(message: str, line: int | None) -> str:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    where = f" in line {line}" if line else ""
    return f"it is not valid Python {version}: {message[:_MAX_MESSAGE_CHARS]}{where}"


def _ignore_warnings() -> None:
    r"""Ignore warnings about the checked text, as of "\d". The program may turn warnings into errors.

    The filter stays: other threads may be parsing, so removing it is not safe.
    """
    first = warnings.filters[0] if warnings.filters else None
    if first is None or first[0] != "ignore" or getattr(first[3], "pattern", None) != _PYTHON_FILE_PATTERN:
        warnings.filterwarnings("ignore", module=_PYTHON_FILE_PATTERN)


def _is_slow(text: str) -> bool:
    """Whether a parser would take quadratic time: for nesting and dotted keys that no person writes."""
    return text.count("[") + text.count("{") > _MAX_BRACKETS or any(
        line.count(".") > _MAX_LINE_DOTS for line in text.split("\n")
    )
