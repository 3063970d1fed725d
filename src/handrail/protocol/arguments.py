"""Checks the arguments of a call, and says what is wrong with them."""

import re
import reprlib
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin

import msgspec

from handrail.protocol.errors import ToolError
from handrail.protocol.tool_spec import ForeignArguments, ToolSpec
from handrail.protocol.wire import Wire, convert

# § [protocol.wording] Words what is wrong with a value, so that a model can act on it.

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
_WORDS = (
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
"""What msgspec finds, as an instruction."""


def describe_problem(name: str, value: object, kind: Any, message: str) -> tuple[str, str, object]:
    """Where the problem is, the problem in words, and the value there.

    "Expected `int` >= 1" becomes "limit must be 1 or more, got 0"; where only a part is wrong, the part is named.
    """
    parts = re.fullmatch(r"(.*) - at (`key` in )?`\$(.*)`", message, re.DOTALL)
    finding, key, place = parts.groups() if parts else (message, None, "")
    where = f"{name}{place}"
    found = _value_at(value, place)
    words = _words(finding, _kind_at(kind, place))
    return where, f"{'a key of ' if key else ''}{where} {words}, got {render_value(found)}", found


class UnknownField(NamedTuple):
    """A name that an object within an argument must not have."""

    where: str
    key: str
    given: dict[Any, Any]
    names: tuple[str, ...]
    """Those that it may have."""


def find_unknown_field(name: str, value: object, kind: Any, message: str) -> UnknownField | None:
    """What msgspec says about a name that it does not know; None when it says something else."""
    parts = re.fullmatch(r"Object contains unknown field `(.+)` - at `\$(.*)`", message, re.DOTALL)
    parts = parts or re.fullmatch(r"Object contains unknown field `(.+)`()", message, re.DOTALL)
    found = _value_at(value, parts[2]) if parts else None
    if parts is None or not isinstance(found, dict):
        return None
    structs = _structs(_kind_at(kind, parts[2]))
    names = tuple(field.encode_name for struct in structs for field in msgspec.structs.fields(struct))
    return UnknownField(f"{name}{parts[2]}", parts[1], found, names)  # pyright: ignore[reportUnknownArgumentType]


def render_value(value: object) -> str:
    """A value as it may stand in a message: short, printable, JSON-like."""
    return clip_text(_SHORT.repr(value), 80)


def clip_text(text: str, most: int) -> str:
    """The beginning of a text. If it has an unprintable character, everything beyond ASCII is escaped."""
    text = text[: most + 1]  # a megabyte need not be escaped for the part that is kept
    clean = text if text.isprintable() else text.encode("unicode_escape", "surrogatepass").decode("ascii")
    return clean if len(clean) <= most else f"{clean[: most - 3]}…"


def _words(finding: str, kind: Any) -> str:
    for pattern, words in _WORDS:
        match = re.fullmatch(pattern, finding, re.DOTALL)
        if match:
            return words.format(clip_text(match[1], 200))
    match = re.fullmatch(r"Expected `([^`]+)`(?:, got `[^`]+`)?", finding)
    if match:
        return f"must be {' or '.join(_NOUNS.get(noun, noun) for noun in match[1].split(' | '))}"
    choices = [choice if isinstance(choice, str) else render_value(choice) for choice in _choices(kind)]
    if choices and finding.startswith("Invalid enum value"):
        return f"must be one of {', '.join(choices)}"
    return f"is not valid ({clip_text(finding, 200)})"


def _choices(kind: Any) -> tuple[Any, ...]:
    """The values of the Literal that a type is made of."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(choice for part in get_args(kind) for choice in _choices(part))


def _value_at(value: Any, place: str) -> object:
    """What stands at a place such as `[1].name`; as near as the place is known."""
    for index, key in re.findall(r"\[(\d+)\]|\.(\w+)", place.partition("[...]")[0]):
        try:
            value = value[int(index)] if index else value[key]
        except (LookupError, TypeError):
            break
    return value


def _kind_at(kind: Any, place: str) -> Any:
    """The type that a place is meant to have."""
    for key in re.findall(r"\.(\w+)", place):
        fields = [field for struct in _structs(kind) for field in msgspec.structs.fields(struct)]
        kind = next((field.type for field in fields if field.encode_name == key), Any)
    return kind


def _structs(kind: Any) -> Iterator[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for part in get_args(kind):
        yield from _structs(part)


class _Short(reprlib.Repr):
    """Bounded in every direction, and the same on every run: no addresses."""

    def repr1(self, x: Any, level: int) -> str:
        if type(x) in {str, int, list, tuple, dict}:
            return super().repr1(x, level)
        if x is None or isinstance(x, bool):
            return _LITERALS[x]
        return repr(x) if type(x) is float else f"<{type(x).__name__}>"

    def repr_int(self, x: int, level: int) -> str:
        # Python refuses to spell integers of more than some thousand digits.
        return super().repr_int(x, level) if x.bit_length() < 2_000 else "<too large>"


_LITERALS = {None: "null", True: "true", False: "false"}
_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxlong = 80


# § [protocol.arguments] Checks arguments against a tool's spec and words every problem at once, so that a model can
# § act on it.

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
