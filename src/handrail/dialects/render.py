"""Texts that several dialects share."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import to_builtins

from handrail.protocol.errors import ErrorInfo
from handrail.protocol.results import ToolResult
from handrail.protocol.text import to_one_line, truncate

_PARAMETER = re.compile(r"\b(?:[a-z]+[A-Z]\w+|cwd)\b")
"""Names of canonical parameters in messages. Other names are plain words."""
_SUBJECT = re.compile(r"\A(\w+)(?= (?:is|holds|has)\b)")
_TOOL = re.compile(r"\b([Uu]se|[Ww]ith) (read|write|edit|ls|find|grep|exec|process|delete)\b(?! (?:the|a|an|of)\b)")
_LOST = "\0"
"""Stands for what the dialect lacks. The clause with it is left out."""
_ADVICE = {
    "The action list": _LOST,
    "Without background and yieldMs": _LOST,
    "without background and yieldMs": _LOST,
    ": list them": "",
    "; list has the ids": "",
}
"""Advice of canonical messages that names no tool, and what stands for it."""
_CLAUSE = re.compile(rf",? or [^,;.\n]*{_LOST}[^,;.\n]*|;[^;.\n]*{_LOST}[^;.\n]*")
_SENTENCE = re.compile(rf"(?:(?<=\.) |^)[^;.\n]*{_LOST}[^;.\n]*\.?")


def to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(to_builtins(value), indent=indent, ensure_ascii=False)


def clean(text: str) -> str:
    """A text of the model for a message."""
    return to_one_line(truncate(text, 80))


def drop_none(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def list_notes(result: ToolResult[Any]) -> list[str]:
    """The warnings of a result, with the reference to its whole text, for systems whose answer is a text."""
    notes = list(result.warnings)
    if result.meta.output is not None and result.meta.output not in result.content:
        notes.append(f"The whole output is {result.meta.output}.")
    return notes


def add_notes(text: str, notes: Sequence[str]) -> str:
    if not notes:
        return text
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}[{' '.join(notes)}]"


def add_block(text: str, tag: str, notes: Sequence[str]) -> str:
    """A text with notes below it, if there are any."""
    return "\n".join((text, "", f"<{tag}>", *notes, f"</{tag}>")) if notes else text


def reword(text: str, names: Mapping[str, str], tools: Mapping[str, str], *, is_plain: bool = True) -> str:
    """A message with the dialect's names of parameters and tools, without advice to use others.

    `is_plain`: whether words such as path may be plain words, so that only the subject is a parameter."""
    if is_plain:
        text = _SUBJECT.sub(lambda found: names.get(found[1], found[1]), text)
        text = _PARAMETER.sub(lambda found: names.get(found[0], _LOST), text)
    else:
        text = re.sub(r"\w+", lambda found: names.get(found[0], found[0]), text)
    text = _TOOL.sub(lambda found: f"{found[1]} {tools[found[2]]}" if found[2] in tools else _LOST, text)
    for advice, replacement in _ADVICE.items():
        text = text.replace(advice, replacement)
    if _LOST in text:
        text = _CLAUSE.sub("", text)
    if _LOST in text:
        text = _SENTENCE.sub("", text).strip() or text.replace(_LOST, "…")
    return text


def get_details(error: ErrorInfo | None) -> dict[str, Any]:
    """The details of an error if they are an object."""
    details: Any = None if error is None else error.details
    return cast("dict[str, Any]", details) if isinstance(details, dict) else {}


def list_extras(result: ToolResult[Any]) -> dict[str, Any]:
    """Facts of a result that a foreign shape has no field for: rule, sandbox, undo, warnings, truncation."""
    extras: dict[str, Any] = to_builtins(result.meta)
    if result.warnings:
        extras["warnings"] = list(result.warnings)
    if result.error is not None and (rule := get_details(result.error).get("rule")) is not None:
        extras["rule"] = rule
    return extras
