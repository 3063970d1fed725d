"""Texts that several dialects render alike."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from msgspec import to_builtins

from handrail.dialects.dialect import Answered
from handrail.protocol.errors import ErrorInfo, ToolError
from handrail.protocol.results import ToolResult
from handrail.workspace.glob import build_matcher

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_FILE_TYPES = {
    "c": "*.{c,h}",
    "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h,inl}",
    "cs": "*.cs",
    "css": "*.{css,scss}",
    "csv": "*.csv",
    "docker": "*Dockerfile*",
    "go": "*.go",
    "graphql": "*.{graphql,graphqls}",
    "html": "*.{htm,html,ejs}",
    "java": "*.{java,jsp,jspx,properties}",
    "js": "*.{js,jsx,vue,cjs,mjs}",
    "json": "*.{json,sarif}",
    "kotlin": "*.{kt,kts}",
    "lua": "*.lua",
    "make": "{[Mm]akefile,GNUmakefile,*.mk,*.mak}",
    "markdown": "*.{md,markdown,mdown,mdx,mkd,mkdn}",
    "md": "*.{md,markdown,mdown,mdx,mkd,mkdn}",
    "perl": "*.{pl,pm,t}",
    "php": "*.{php,php3,php4,php5,phtml}",
    "py": "*.{py,pyi}",
    "python": "*.{py,pyi}",
    "ruby": "*.{rb,gemspec,rake}",
    "rust": "*.rs",
    "scala": "*.{scala,sbt}",
    "sh": "*.{sh,bash,zsh,ksh,bashrc,zshrc}",
    "sql": "*.{sql,psql}",
    "svelte": "*.svelte",
    "swift": "*.swift",
    "toml": "*.toml",
    "ts": "*.{ts,tsx,cts,mts}",
    "txt": "*.txt",
    "typescript": "*.{ts,tsx,cts,mts}",
    "xml": "*.{xml,xsd,xsl,xslt,dtd,svg}",
    "yaml": "*.{yaml,yml}",
    "zig": "*.zig",
}
"""Globs of file types, named as ripgrep names them."""


def drop_none(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def find_type_glob(name: str) -> str:
    glob = _FILE_TYPES.get(name)
    if glob is None:
        raise ToolError(
            "INVALID_ARGUMENT", f"type: there is no file type {name[:40]}; there are {', '.join(_FILE_TYPES)}"
        )
    return glob


def build_path_filter(globs: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path or its name matches one of the globs."""
    matchers = [build_matcher(glob) for glob in globs]
    return lambda path: any(matches(path.encode()) for matches in matchers)


def split_lines(text: str) -> list[str]:
    """The lines of a page, without their ends."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def number_lines(one: Answered, form: Callable[[int, int, str], str]) -> list[str]:
    """The lines of a read page. `form` gets the number, the width of the last number, the text."""
    lines = split_lines(one.content)
    first = one.data.first_line or 1
    width = len(str(first + len(lines) - 1))
    return [form(number, width, line) for number, line in enumerate(lines, first)]


def find_last_line(one: Answered) -> int:
    return (one.data.first_line or 1) + (one.result.meta.returned or 0) - 1


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


def list_hunks(diff: str) -> list[dict[str, Any]]:
    """The hunks of a unified diff with their lines."""
    hunks: list[dict[str, Any]] = []
    for line in diff.splitlines():
        found = _HUNK.match(line)
        if found:
            old, removed, new, added = (int(number or 1) for number in found.groups())
            hunks.append({"oldStart": old, "oldLines": removed, "newStart": new, "newLines": added, "lines": []})
        elif hunks and line[:1] in {" ", "+", "-", "\\"}:
            hunks[-1]["lines"].append(line)
    return hunks


def count_changes(diff: str) -> tuple[int, int]:
    """The added and the removed lines of a diff."""
    lines = [line for hunk in list_hunks(diff) for line in hunk["lines"]]
    return sum(line[0] == "+" for line in lines), sum(line[0] == "-" for line in lines)


def list_patched_files(one: Answered) -> str:
    """The rows of a patch's files: A, M or D, and the path."""
    letters = {"created": "A", "deleted": "D"}
    rows = [f"{letters.get(file.action, 'M')} {file.path}" for file in one.data.files]
    return "Success. Updated the following files:\n" + "".join(f"{row}\n" for row in rows)


def ask_questions(questions: Sequence[Any]) -> dict[str, Any]:
    """The arguments of `question`. Several questions become one, which the person answers in own words."""
    if len(questions) == 1:
        asked = questions[0]
        multiple = bool(getattr(asked, "multiSelect", False) or getattr(asked, "multiple", False))
        options = [option.label for option in asked.options]
        return {"question": _add_descriptions(asked), "options": options, "multiple": multiple, "custom": True}
    numbered = (f"{number}. {_add_options(asked)}" for number, asked in enumerate(questions, 1))
    return {"question": "\n\n".join(numbered), "options": [], "custom": True}


def _add_descriptions(asked: Any) -> str:
    described = [f"{option.label}: {option.description}" for option in asked.options if option.description]
    return "\n".join((asked.question, *described))


def _add_options(asked: Any) -> str:
    return "\n".join((asked.question, *(f"   - {option.label}: {option.description}" for option in asked.options)))


def list_answers(one: Answered, questions: Sequence[Any]) -> list[list[str]]:
    """The answers to each question. A reply to several questions is split at its numbered lines."""
    data: dict[str, Any] = to_builtins(one.data)
    replies = [*data.get("chosen", ()), *([data["text"]] if data.get("text") else [])]
    if len(questions) == 1:
        return [replies]
    parts = re.split(r"(?m)^\s*\d+[.):]\s*", "\n".join(replies))[1:]
    return [[part.strip()] for part in parts] if len(parts) == len(questions) else [replies for _ in questions]


def get_details(error: ErrorInfo) -> dict[str, Any]:
    """The details of an error if they are an object."""
    details: Any = error.details
    return cast("dict[str, Any]", details) if isinstance(details, dict) else {}


def list_extras(result: ToolResult[Any]) -> dict[str, Any]:
    """Facts of a result that a foreign shape has no field for: rule, sandbox, undo, warnings, truncation."""
    extras: dict[str, Any] = to_builtins(result.meta)
    if result.warnings:
        extras["warnings"] = list(result.warnings)
    rule = None if result.error is None else get_details(result.error).get("rule")
    if rule is not None:
        extras["rule"] = rule
    return extras
