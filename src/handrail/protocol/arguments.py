"""Checks arguments against a tool's spec and words every problem at once, so that a model can act on it."""

from typing import Any, cast

import msgspec

from handrail.protocol.error import ToolError
from handrail.protocol.reading import convert
from handrail.protocol.tool import ForeignArguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.protocol.wording import clip_text, describe_problem, find_unknown_field, render_value

ALIASES = {
    "path": (
        "file_path",
        "filePath",
        "filename",
        "file",
        "target_file",
        "target_directory",
        "dir",
        "directory",
        "folder",
    ),
    "oldText": ("old_string", "old_str", "old_text", "oldString", "search"),
    "newText": ("new_string", "new_str", "new_text", "newString", "replace"),
    "replaceAll": ("replace_all",),
    "occurrence": ("allow_multiple_matches",),
    "content": ("contents", "text", "file_text"),
    "pattern": ("query", "regex", "glob_pattern"),
    "filePattern": ("file_pattern", "include", "glob"),
    "caseSensitive": ("case_sensitive",),
    "contextLines": ("context_lines", "context"),
    "maxResults": ("max_results", "head_limit"),
    "command": ("cmd", "script"),
    "timeoutMs": ("timeout", "timeout_ms"),
    "yieldMs": ("yield_ms",),
    "background": ("is_background", "run_in_background"),
    "cwd": ("workdir", "working_directory"),
    "sessionId": ("session_id", "id"),
    "offset": ("start_line", "startLine", "line_offset"),
    "limit": ("max_lines", "line_limit", "lines"),
    "depth": ("max_depth", "maxDepth"),
}
"""What other systems call our arguments. Never accepted: named in the refusal."""
_OPTIONS = {"-i": "caseSensitive", "-A": "contextLines", "-B": "contextLines", "-C": "contextLines"}
_CANONICAL = _OPTIONS | {alias: name for name, aliases in ALIASES.items() for alias in aliases}
_ADVICE = {
    "-i": ("caseSensitive", "use caseSensitive: false"),
    "multiline": ("pattern", "leave it out, a pattern matches within one line"),
    "allow_multiple_matches": (
        "oldText",
        "it means the first match only: lengthen oldText until it is in the file once, "
        'or use multi_edit with occurrence "first"',
    ),
}
"""Arguments of other systems that mean something else: what they are about, and what to do."""
_MAX_UNKNOWN_NAMES = 20
_REFUSED = (msgspec.ValidationError, UnicodeEncodeError, RecursionError)


class Problem(Wire, frozen=True, omit_defaults=False):
    """One thing that is wrong with the arguments."""

    field: str
    problem: str
    value: str | None = None
    use: str | None = None


def validate(spec: ToolSpec, arguments: object) -> msgspec.Struct:
    """The typed arguments, or INVALID_ARGUMENT with every problem."""
    if spec.foreign is not None:
        if problems := spec.foreign.problems(arguments):
            raise build_argument_error(spec, problems)
        return ForeignArguments(cast("dict[str, Any]", arguments))
    try:
        return convert(arguments, spec.arguments)
    except _REFUSED as error:
        # Only the check of the whole can fail where every field is fine: the tool's own words.
        problems = _problems(spec.arguments, arguments) or (Problem(field="", problem=clip_text(str(error), 400)),)
    raise build_argument_error(spec, problems)


def build_argument_error(spec: ToolSpec, problems: tuple[Problem, ...]) -> ToolError:
    """The refusal that lists the problems."""
    texts = tuple(problem.problem for problem in problems)
    message = spec.format_error(texts) if spec.format_error else f"{spec.name}: {'. '.join(texts)}. Nothing was run."
    return ToolError("INVALID_ARGUMENT", message, details=[msgspec.to_builtins(problem) for problem in problems])


def _problems(shape: type[msgspec.Struct], arguments: object) -> tuple[Problem, ...]:
    if not isinstance(arguments, dict):
        text = f"arguments must be an object, got {render_value(arguments)}"
        return (Problem(field="", problem=text, value=render_value(arguments)),)
    given: dict[Any, Any] = arguments  # pyright: ignore[reportUnknownVariableType]
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    unknown = [key for key in given if key not in fields]
    found = [_unknown(key, given, tuple(fields)) for key in unknown[:_MAX_UNKNOWN_NAMES]]
    if len(unknown) > _MAX_UNKNOWN_NAMES:
        found.append(Problem(field="", problem=f"{len(unknown) - _MAX_UNKNOWN_NAMES} more names are not arguments"))
    meant = {problem.use for problem in found}
    for name, field in fields.items():
        if name in given:
            found += _mistyped(name, given[name], field.type)
        elif field.required and name not in meant:
            found.append(Problem(field=name, problem=f"{name} is required"))
    return tuple(found)


def _unknown(key: object, given: dict[Any, Any], names: tuple[str, ...]) -> Problem:
    use = _suggestion(key, given, names)
    name = key if isinstance(key, str) and key.isidentifier() and len(key) <= 80 else render_value(key)
    about, advice = _ADVICE.get(str(key), ("", ""))
    if about not in names or use not in {None, about}:
        advice = f"use {use}" if use else f"the arguments are {', '.join(names)}" if names else "there are none"
    return Problem(field=name, problem=f"{name} is not an argument; {advice}", value=render_value(given[key]), use=use)


def _suggestion(key: object, given: dict[Any, Any], names: tuple[str, ...]) -> str | None:
    if not isinstance(key, str):
        return None
    folded = {name.casefold(): name for name in names}
    meant = (_CANONICAL.get(key), folded.get(key.replace("_", "").casefold()))
    return next((name for name in meant if name in names and name not in given), None)


def _mistyped(name: str, value: object, kind: Any) -> list[Problem]:
    try:
        convert(value, kind)
    except UnicodeEncodeError:
        return [Problem(field=name, problem=f"{name} holds text that is not valid Unicode", value=render_value(value))]
    except RecursionError:
        return [Problem(field=name, problem=f"{name} is nested too deeply", value=render_value(value))]
    except msgspec.ValidationError as error:
        unknown = find_unknown_field(name, value, kind, str(error))
        if unknown is not None and unknown.key in unknown.given:
            found = _unknown(unknown.key, unknown.given, unknown.names)
            field, problem = (f"{unknown.where}.{text}" for text in (found.field, found.problem))
            return [msgspec.structs.replace(found, field=field, problem=problem)]
        where, problem, found = describe_problem(name, value, kind, str(error))
        return [Problem(field=where, problem=problem, value=render_value(found))]
    return []
