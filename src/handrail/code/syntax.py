"""Explains why a data file or Python file does not parse."""

import re
import sys
import warnings
from _ast import PyCF_ONLY_AST

# § [code.data_syntax] Whether data parses: JSON, YAML, TOML and the front matter of Markdown. Each says what is
# § wrong, or None. None also where a text is nested deeper than the parser goes: it may be valid.

_MAX_BRACKETS = 20_000
_MAX_LINE_DOTS = 2_000
_TEMPLATE = re.compile(r"^[^\"'#\n]*(?:(?<!\$)\{\{|\{%|<%)", re.MULTILINE)
"""What will be YAML when a template is filled in; in quotes, and behind `$`, it is YAML already."""


def find_json_problem(text: str) -> str | None:
    """Why a text is no JSON."""
    import json  # noqa: PLC0415  only for files of this kind

    try:
        json.loads(text, parse_int=str)  # of numbers with thousands of digits, int would make an error
    except ValueError as error:
        return f"it is not valid JSON: {error}"
    except RecursionError:
        return None
    return None


def find_toml_problem(text: str) -> str | None:
    """Why a text is no TOML."""
    if _takes_long(text):
        return None
    import tomllib  # noqa: PLC0415  only for files of this kind

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return f"it is not valid TOML: {error}"
    except (ValueError, RecursionError):  # more digits, or deeper, than Python goes
        return None
    return None


def find_yaml_problem(text: str) -> str | None:
    """Why a text is no YAML."""
    if _takes_long(text):
        return None
    import yaml  # noqa: PLC0415  only for files of this kind

    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it was built
        list(yaml.parse(text, Loader=loader))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    except RecursionError:
        return None
    except (yaml.YAMLError, ValueError) as error:
        if _TEMPLATE.search(text):
            return None
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        return f"it is not valid YAML: {getattr(error, 'problem', None) or type(error).__name__}{where}"
    return None


def find_front_matter_problem(text: str) -> str | None:
    """Why the YAML that a Markdown file begins with is none."""
    if not text.startswith("---"):
        return None
    first, *lines = text.splitlines()
    if first.rstrip() != "---":
        return None  # a rule across the page
    end = next((number for number, line in enumerate(lines) if line.rstrip() in {"---", "..."}), None)
    if end is None:
        return "its front matter has no closing ---"
    problem = find_yaml_problem("\n".join(lines[:end]))
    return problem and problem.replace("it is", "its front matter is", 1)


def _takes_long(text: str) -> bool:
    """Nesting and dotted keys that no person writes, and on which parsers take the square of the time."""
    return text.count("[") + text.count("{") > _MAX_BRACKETS or any(
        line.count(".") > _MAX_LINE_DOTS for line in text.split("\n")
    )


# § [code.python_syntax] Whether Python parses, by the parser of the Python that runs here. Nothing is executed,
# § printed or warned of.

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
