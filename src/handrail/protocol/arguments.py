"""Checks arguments against a tool's spec and words every problem at once, so that a model can act on it."""

import re
import reprlib
from typing import Any, TypeVar

import msgspec

from handrail.protocol.error import ToolError
from handrail.protocol.tool import ToolSpec
from handrail.protocol.wire import Wire

Shape = TypeVar("Shape", bound=msgspec.Struct)

ALIASES = {
    "path": ("file_path", "filePath", "filename", "file", "target_file", "dir", "directory", "folder"),
    "oldText": ("old_string", "old_str", "old_text", "oldString", "search"),
    "newText": ("new_string", "new_str", "new_text", "newString", "replace"),
    "replaceAll": ("replace_all", "allow_multiple_matches"),
    "content": ("contents", "text", "file_text"),
    "pattern": ("query", "regex", "glob_pattern"),
    "filePattern": ("file_pattern", "include", "glob"),
    "caseSensitive": ("case_sensitive",),
    "contextLines": ("context_lines", "context"),
    "maxResults": ("max_results", "head_limit"),
    "command": ("cmd", "script"),
    "timeoutMs": ("timeout", "timeout_ms"),
    "yieldMs": ("yield_ms",),
    "cwd": ("workdir", "working_directory"),
    "sessionId": ("session_id", "id"),
    "offset": ("start_line", "startLine", "line_offset"),
    "limit": ("max_lines", "line_limit", "lines"),
    "depth": ("max_depth", "maxDepth"),
}
"""What other systems call our arguments. Never accepted: named in the refusal."""

_CANONICAL = {alias: name for name, aliases in ALIASES.items() for alias in aliases}
_NOUNS: dict[str, str] = {
    "str": "a string",
    "int": "an integer",
    "bool": "true or false",
    "float": "a number",
    "null": "null",
    "array": "a list",
    "object": "an object",
}
_LITERALS = {None: "null", True: "true", False: "false"}
_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 80


class Problem(Wire, frozen=True, omit_defaults=False):
    """One thing that is wrong with the arguments."""

    field: str
    problem: str
    value: str | None = None
    use: str | None = None


def checked(spec: ToolSpec, arguments: object) -> msgspec.Struct:
    """The typed arguments, or INVALID_ARGUMENT with every problem."""
    try:
        return msgspec.convert(arguments, spec.arguments)
    except msgspec.ValidationError as error:
        problems = _problems(spec.arguments, arguments) or (Problem(field="", problem=_worded(str(error), arguments)),)
    raise invalid(spec, problems)


def invalid(spec: ToolSpec, problems: tuple[Problem, ...]) -> ToolError:
    """The refusal that lists the problems."""
    texts = tuple(problem.problem for problem in problems)
    message = spec.format_error(texts) if spec.format_error else f"{spec.name}: {'. '.join(texts)}. Nothing was run."
    return ToolError("INVALID_ARGUMENT", message, details=[msgspec.to_builtins(problem) for problem in problems])


def shown(value: object) -> str:
    """A value as it may stand in a message: short, printable, JSON-like."""
    text = _LITERALS[value] if value is None or isinstance(value, bool) else _short.repr(value)
    clean = text if text.isprintable() else text.encode("unicode_escape", "surrogatepass").decode("ascii")
    return clean if len(clean) <= 80 else f"{clean[:77]}…"


def _problems(shape: type[msgspec.Struct], arguments: object) -> tuple[Problem, ...]:
    if not isinstance(arguments, dict):
        text = f"arguments must be an object, got {shown(arguments)}"
        return (Problem(field="", problem=text, value=shown(arguments)),)
    given: dict[Any, Any] = arguments  # pyright: ignore[reportUnknownVariableType]
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    found = [_unknown(key, given, tuple(fields)) for key in given if key not in fields]
    meant = {problem.use for problem in found}
    for name, field in fields.items():
        if name in given:
            found += _mistyped(name, given[name], field.type)
        elif field.required and name not in meant:
            found.append(Problem(field=name, problem=f"{name} is required"))
    return tuple(found)


def _unknown(key: object, given: dict[Any, Any], names: tuple[str, ...]) -> Problem:
    use = _suggestion(key, given, names)
    name = key if isinstance(key, str) and key.isidentifier() and len(key) <= 80 else shown(key)
    hint = f"use {use}" if use else f"the arguments are {', '.join(names)}" if names else "there are none"
    return Problem(field=name, problem=f"{name} is not an argument; {hint}", value=shown(given[key]), use=use)


def _suggestion(key: object, given: dict[Any, Any], names: tuple[str, ...]) -> str | None:
    if not isinstance(key, str):
        return None
    folded = {name.casefold(): name for name in names}
    name = _CANONICAL.get(key) or folded.get(key.replace("_", "").casefold())
    return name if name in names and name not in given else None


def _mistyped(name: str, value: object, kind: Any) -> list[Problem]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return [Problem(field=name, problem=f"{name} {_worded(str(error), value)}", value=shown(value))]
    return []


def _worded(message: str, value: object) -> str:
    """msgspec's finding as an instruction: "Expected `int` >= 1" becomes "must be 1 or more, got 0"."""
    expected = message.removeprefix("Expected ").split(", got ")[0].split(" - at ")[0]
    for pattern, words in _BOUNDS:
        match = re.fullmatch(pattern, expected)
        if match:
            return f"must be {words.format(*match.groups())}, got {shown(value)}"
    names: list[str] = re.findall(r"[\w-]+", expected)
    kinds = [_NOUNS.get(name, name) for name in names]
    if "`" in expected and kinds:
        return f"must be {' or '.join(kinds)}, got {shown(value)}"
    return f"is not valid ({message}), got {shown(value)}"


_BOUNDS = (
    (r"`(?:int|float)` >= (\S+)", "{} or more"),
    (r"`(?:int|float)` <= (\S+)", "{} or less"),
    (r"`str` of length >= (\d+)", "at least {} characters long"),
    (r"`str` of length <= (\d+)", "at most {} characters long"),
    (r"`array` of length >= (\d+)", "a list of at least {}"),
    (r"`array` of length <= (\d+)", "a list of at most {}"),
    (r"`str` matching regex (.+)", "text that matches {}"),
)
