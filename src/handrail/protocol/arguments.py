"""Explains invalid arguments of a call. One message names every problem, so that the model can correct all of them."""

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import msgspec

from handrail.protocol.errors import Problem, ToolError
from handrail.protocol.text import clip_text, render_value
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import convert

ALIASES = {
    name: tuple(aliases.split())
    for name, aliases in {
        "path": "file_path filePath filename file target_file target_directory dir directory folder",
        "oldText": "old_string old_str old_text oldString search",
        "newText": "new_string new_str new_text newString replace",
        "replaceAll": "replace_all",
        "occurrence": "allow_multiple_matches",
        "content": "contents text file_text",
        "pattern": "query regex glob_pattern",
        "filePattern": "file_pattern include glob",
        "caseSensitive": "case_sensitive",
        "contextLines": "context_lines context",
        "maxResults": "max_results head_limit",
        "command": "cmd script",
        "timeoutMs": "timeout timeout_ms",
        "yieldMs": "yield_ms",
        "background": "is_background run_in_background",
        "cwd": "workdir working_directory",
        "sessionId": "session_id id",
        "offset": "start_line startLine line_offset",
        "limit": "max_lines line_limit lines",
        "depth": "max_depth maxDepth",
    }.items()
}
"""Other systems' names for our arguments. They are refused, and the message names ours."""
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
"""Arguments of other systems that mean something else: our argument nearest to it, and what to do."""
_NOUNS: dict[str, str] = {
    "str": "a string",
    "int": "an integer",
    "bool": "true or false",
    "float": "a number",
    "null": "null",
    "array": "a list",
    "object": "an object",
    "datetime": "a date and time",
}
_INSTRUCTIONS = (
    (r"Expected `(?:int|float)` >= (\S+)", "must be {} or more"),
    (r"Expected `(?:int|float)` <= (\S+)", "must be {} or less"),
    (r"Expected `(?:int|float)` > (\S+)", "must be more than {}"),
    (r"Expected `(?:int|float)` < (\S+)", "must be less than {}"),
    (r"Expected `(?:int|float)` that's a multiple of (\S+)", "must be a multiple of {}"),
    (r"Expected `str` of length >= (\d+)", "must be at least {} characters long"),
    (r"Expected `str` of length <= (\d+)", "must be at most {} characters long"),
    (r"Expected `array` of length >= (\d+)", "must be a list of at least {}"),
    (r"Expected `array` of length <= (\d+)", "must be a list of at most {}"),
    (r"Expected `array` of length (\d+), got \d+", "must be a list of exactly {}"),
    (r"Expected `object` of length >= (\d+)", "must be an object with at least {} entries"),
    (r"Expected `object` of length <= (\d+)", "must be an object with at most {} entries"),
    (r"Expected `str` matching regex (.+)", "must be text that matches {}"),
    (r"Object missing required field `(.+)`", "must have {}"),
)
"""Messages of msgspec as instructions."""
_MAX_UNKNOWN_NAMES = 20
CONVERSION_ERRORS = (msgspec.ValidationError, UnicodeEncodeError, RecursionError)


def explain_conversion_error(spec: ToolSpec, arguments: object, error: Exception) -> ToolError:
    """The error that lists every problem of arguments that do not have the types of the spec."""
    # If every field is fine, the tool's own check of them together failed, and its words are shown.
    problems = _list_problems(spec.arguments, arguments) or (Problem(field="", problem=clip_text(str(error), 400)),)
    return build_argument_error(spec, problems)


def build_argument_error(spec: ToolSpec, problems: tuple[Problem, ...]) -> ToolError:
    texts = tuple(problem.problem for problem in problems)
    message = spec.format_error(texts) if spec.format_error else f"{spec.name}: {'. '.join(texts)}. Nothing was run."
    return ToolError("INVALID_ARGUMENT", message, details=[msgspec.to_builtins(problem) for problem in problems])


def _list_problems(shape: type[msgspec.Struct], arguments: object) -> tuple[Problem, ...]:
    if not isinstance(arguments, dict):
        text = f"arguments must be an object, got {render_value(arguments)}"
        return (Problem(field="", problem=text, value=render_value(arguments)),)
    given: dict[Any, Any] = arguments  # pyright: ignore[reportUnknownVariableType]
    fields = {field.encode_name: field for field in msgspec.structs.fields(shape)}
    unknown = [key for key in given if key not in fields]
    found = [_describe_unknown(key, given, tuple(fields)) for key in unknown[:_MAX_UNKNOWN_NAMES]]
    if len(unknown) > _MAX_UNKNOWN_NAMES:
        found.append(Problem(field="", problem=f"{len(unknown) - _MAX_UNKNOWN_NAMES} more names are not arguments"))
    meant = {problem.use for problem in found}
    for name, field in fields.items():
        if name in given:
            found += _list_value_problems(name, given[name], field.type)
        elif field.required and name not in meant:
            found.append(Problem(field=name, problem=f"{name} is required"))
    return tuple(found)


def _describe_unknown(key: object, given: dict[Any, Any], names: tuple[str, ...]) -> Problem:
    use = _suggest_name(key, given, names)
    name = key if isinstance(key, str) and key.isidentifier() and len(key) <= 80 else render_value(key)
    about, advice = _ADVICE.get(str(key), ("", ""))
    if about not in names or use not in {None, about}:
        advice = f"use {use}" if use else f"the arguments are {', '.join(names)}" if names else "it takes no arguments"
    return Problem(field=name, problem=f"{name} is not an argument; {advice}", value=render_value(given[key]), use=use)


def _suggest_name(key: object, given: dict[Any, Any], names: tuple[str, ...]) -> str | None:
    if not isinstance(key, str):
        return None
    folded = {name.casefold(): name for name in names}
    meant = (_CANONICAL.get(key), folded.get(key.replace("_", "").casefold()))
    return next((name for name in meant if name in names and name not in given), None)


def _list_value_problems(name: str, value: object, kind: Any) -> list[Problem]:
    try:
        convert(value, kind)
    except UnicodeEncodeError:
        return [Problem(field=name, problem=f"{name} holds text that is not valid Unicode", value=render_value(value))]
    except RecursionError:
        return [Problem(field=name, problem=f"{name} is nested too deeply", value=render_value(value))]
    except msgspec.ValidationError as error:
        message = str(error)
        return [_find_unknown_field(name, value, kind, message) or _describe_mismatch(name, value, kind, message)]
    return []


def _find_unknown_field(name: str, value: object, kind: Any, message: str) -> Problem | None:
    """The problem if msgspec reports a name that an object within the argument must not have."""
    parts = re.fullmatch(r"Object contains unknown field `(.+)` - at `\$(.*)`", message, re.DOTALL)
    parts = parts or re.fullmatch(r"Object contains unknown field `(.+)`()", message, re.DOTALL)
    nested = _get_value_at(value, parts[2]) if parts else None
    if parts is None or not isinstance(nested, dict) or parts[1] not in nested:
        return None
    names = tuple(field.encode_name for field in _list_fields(_get_kind_at(kind, parts[2])))
    unknown = _describe_unknown(parts[1], nested, names)  # pyright: ignore[reportUnknownArgumentType]
    place = f"{name}{parts[2]}."
    return msgspec.structs.replace(unknown, field=place + unknown.field, problem=place + unknown.problem)


def _describe_mismatch(name: str, value: object, kind: Any, message: str) -> Problem:
    """msgspec's message as an instruction: "limit must be 1 or more, got 0". If only a part is wrong, it is named."""
    parts = re.fullmatch(r"(.*) - at (`key` in )?`\$(.*)`", message, re.DOTALL)
    finding, key, place = parts.groups() if parts else (message, None, "")
    value = render_value(_get_value_at(value, place))
    words = _describe_finding(finding, _get_kind_at(kind, place))
    text = f"{'a key of ' if key else ''}{name}{place} {words}, got {value}"
    return Problem(field=f"{name}{place}", problem=text, value=value)


def _describe_finding(finding: str, kind: Any) -> str:
    for pattern, words in _INSTRUCTIONS:
        match = re.fullmatch(pattern, finding, re.DOTALL)
        if match:
            return words.format(clip_text(match[1], 200))
    match = re.fullmatch(r"Expected `([^`]+)`(?:, got `[^`]+`)?", finding)
    if match:
        return f"must be {' or '.join(_NOUNS.get(noun, noun) for noun in match[1].split(' | '))}"
    choices = [choice if isinstance(choice, str) else render_value(choice) for choice in _list_choices(kind)]
    if choices and finding.startswith("Invalid enum value"):
        return f"must be one of {', '.join(choices)}"
    return f"is not valid ({clip_text(finding, 200)})"


def _list_choices(kind: Any) -> tuple[Any, ...]:
    """The values of the Literals in a type."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(choice for part in get_args(kind) for choice in _list_choices(part))


def _get_value_at(value: Any, place: str) -> object:
    """The value at a place such as `[1].name`, or the nearest one above it."""
    for index, key in re.findall(r"\[(\d+)\]|\.(\w+)", place.partition("[...]")[0]):
        try:
            value = value[int(index)] if index else value[key]
        except (LookupError, TypeError):
            break
    return value


def _get_kind_at(kind: Any, place: str) -> Any:
    for key in re.findall(r"\.(\w+)", place):
        kind = next((field.type for field in _list_fields(kind) if field.encode_name == key), Any)
    return kind


def _list_fields(kind: Any) -> Iterator[msgspec.structs.FieldInfo]:
    """The fields of every struct in a type."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from msgspec.structs.fields(kind)
    for part in get_args(kind):
        yield from _list_fields(part)
