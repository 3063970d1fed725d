"""The dialect of Agentica: every answer is one text."""

import json
import re
from typing import Any

from msgspec import to_builtins

from handrail.dialects.dialect import Answered, Canonical, Dialect, DialectAnswer, Surface, Translate, declare
from handrail.dialects.parameters import may, need, rows
from handrail.dialects.render import add_notes, drop_none, find_last_line, get_details, list_notes, number_lines

_STATUS = {"pending": "pending", "in_progress": "active", "completed": "done"}
_PATH = need(str, "Path of the file.")
_LINE, _CHARACTER = need(int, "The line, from 0.", ge=0), need(int, "The character, from 0.", ge=0)
_MAX_PLACES = 3


def _show_read(one: Answered) -> str:
    text = "\n".join(number_lines(one, lambda number, _, line: f"{number:>6}\t{line}"))
    meta = one.result.meta
    if meta.next_offset is None and (one.data.first_line or 1) == 1:
        return text
    return f"{text}\n\n[Showing lines {one.data.first_line or 1}-{find_last_line(one)} of {meta.total} total lines]"


def _edit(args: Any, _: Surface) -> Canonical:
    if args.allow_multiple_matches and not args.replace_all:
        first = {"oldText": args.old_string, "newText": args.new_string, "occurrence": "first"}
        return "multi_edit", {"path": args.file_path, "edits": [first]}
    changed = {"oldText": args.old_string, "newText": args.new_string, "replaceAll": args.replace_all}
    return "edit", {"path": args.file_path, **changed}


def _show_edit(one: Answered) -> str:
    edits = getattr(one.data, "edits", None)
    count = one.data.replacements if edits is None else sum(edit.replacements for edit in edits)
    return f"Successfully replaced {count} occurrence(s) in '{one.args.file_path}'"


def _edit_several(args: Any, _: Surface) -> Canonical:
    edits = [{"oldText": one.old_string, "newText": one.new_string, "occurrence": "unique"} for one in args.edits]
    return "multi_edit", {"path": args.file_path, "edits": edits}


def _show_several(one: Answered) -> str:
    edits = one.data.edits
    total = sum(edit.replacements for edit in edits)
    return f"Successfully applied {len(edits)} edits ({total} total replacements) in '{one.args.file_path}'"


def _show_listing(one: Answered) -> str:
    folder = "" if one.data.path == "." else f"{one.data.path}/"
    entries = [
        {"name": entry.path, "path": f"{folder}{entry.path}", "type": "dir" if entry.kind == "directory" else "file"}
        for entry in one.data.entries
    ]
    return json.dumps(entries, ensure_ascii=False)


def _grep(args: Any, _: Surface) -> Canonical:
    mode = {"files_with_matches": "files", "content": "content", "count": "count"}[args.output_mode]
    pattern = args.pattern if args.use_regex else re.escape(args.pattern)
    most = args.max_results if mode == "content" else 100_000
    given = drop_none(filePattern=args.glob_pattern)
    return "search_text", {"pattern": pattern, "path": args.path, "mode": mode, "maxResults": most, **given}


def _show_grep(one: Answered) -> str:
    args, data = one.args, one.data
    if args.output_mode == "content":
        found = [f"{match.path}:{match.line}: {match.text[:200]}" for match in data.matches]
    else:
        files = data.files[: args.max_results]
        if args.output_mode == "files_with_matches":
            return json.dumps([file.path for file in files], ensure_ascii=False)
        found = [f"{file.path}: {file.matches}" for file in files]
    return "\n".join(found) or f"No matches found for '{args.pattern}'"


def _show_command(one: Answered) -> str:
    data = one.data
    text = data.output if data.stdout is None else data.stdout
    if data.stderr:
        text = f"{text.rstrip()}\n[stderr]\n{data.stderr}".lstrip("\n")
    if data.exit_code:
        return f"{text.rstrip()}\n\n[Exit code: {data.exit_code}]".lstrip("\n")
    return text or "Command executed successfully (exit code: 0)"


def _show_todos(one: Answered) -> str:
    return json.dumps(one.surface.memory.get("todos", []), ensure_ascii=False)


def _write_todos(args: Any, surface: Surface) -> Canonical:
    items = enumerate(args.todos, 1)
    surface.memory["todos"] = [{"id": str(n), "content": one.content, "status": one.status} for n, one in items]
    return "todo", {"items": [{"text": item.content, "status": _STATUS[item.status]} for item in args.todos]}


def _read_todos(_: Any, surface: Surface) -> Canonical:
    items = surface.list_todo()
    states = {canonical: own for own, canonical in _STATUS.items()}
    surface.memory["todos"] = [
        {"id": str(number), "content": item.text, "status": states[item.status]} for number, item in enumerate(items, 1)
    ]
    return "todo", {"items": [{"text": item.text, "status": item.status} for item in items]}


def _show_json(one: Answered) -> str:
    return json.dumps(to_builtins(one.data), ensure_ascii=False)


def _describe_edit_error(one: Answered, old: str, number: str) -> str | None:
    """The system's own words about a text that is missing, or in the file more than once."""
    error = one.result.error
    if error is not None and error.code == "NO_MATCH":
        return f"{number}String not found: {old[:50]}..."
    if error is None or error.code != "AMBIGUOUS_MATCH":
        return None
    details = get_details(error)
    places: list[Any] = list(details.get("places", []))
    count = details.get("count")
    shown = [
        f"  - Line {place['line']}: ...{_shorten(place.get('context', ''), old)}..." for place in places[:_MAX_PLACES]
    ]
    advice = "Provide more context to make it unique, or use replace_all=True to replace all occurrences."
    head = f"{number}Found {count if count is not None else 'several'} matches for the string. {advice}"
    return "\n".join((head, *(("Matches found at:", *shown) if shown else ())))


def _shorten(text: str, old: str) -> str:
    at = text.find(old)
    return (text[at : at + len(old) + 30] if at >= 0 else text[:30]).replace("\n", "\\n")


def _describe_error(one: Answered) -> str:
    error, args = one.result.error, one.args
    if error is None or args is None:
        return f"Error: {one.message}"
    path = getattr(args, "file_path", "") or getattr(args, "path", "")
    known = {
        ("ls", "NOT_FOUND"): f"Directory not found: {getattr(args, 'directory', '')}",
        ("ls", "NOT_A_DIRECTORY"): f"Directory not found: {getattr(args, 'directory', '')}",
        ("grep", "INVALID_ARGUMENT"): f"Invalid regex pattern '{getattr(args, 'pattern', '')}': {one.message}",
        ("execute", "TIMEOUT"): "Command timed out after 120 seconds",
        ("", "NOT_FOUND"): f"File not found: {path}",
        ("", "NOT_A_FILE"): f"Not a file: {path}",
    }
    name, text = one.tool.name, None
    if name == "edit_file":
        text = _describe_edit_error(one, args.old_string, "")
    elif name == "multi_edit":
        number = int(get_details(error).get("edit", 0))
        text = _describe_edit_error(one, args.edits[number].old_string, f"Edit {number + 1}: ")
    text = text or known.get((name, error.code)) or known.get(("", error.code))
    if text is None and name == "write_file":
        return f"Error writing file: {one.message}"
    return f"Error: {text or one.message}"


def _render(one: Answered, shown: Any) -> DialectAnswer:
    text = (shown if shown is not None else one.content) if one.ok else _describe_error(one)
    text = add_notes(text, list_notes(one.result))
    return DialectAnswer(text, text)


def _locate(name: str) -> Translate:
    return lambda args, _: (name, {"path": args.file_path, "line": args.line, "character": args.character})


DIALECT = Dialect(
    name="agentica",
    follows="tools redesign (2026-02-12)",
    splits_streams=True,
    parameters={
        "oldText": "old_string",
        "newText": "new_string",
        "replaceAll": "replace_all",
        "maxResults": "max_results",
        "filePattern": "glob_pattern",
    },
    tools=(
        declare(
            "read_file",
            "Read a file. Lines are numbered from 1.",
            "read",
            {
                "file_path": _PATH,
                "offset": may(int, 0, "The first line, from 0.", ge=0),
                "limit": may(int, 500, "The number of lines.", ge=1, le=10_000),
            },
            lambda args, _: ("read", {"path": args.file_path, "offset": args.offset + 1, "limit": args.limit}),
            _show_read,
        ),
        declare(
            "write_file",
            "Write a file. It replaces an existing one.",
            "write",
            {"file_path": _PATH, "content": need(str, "The whole content.")},
            lambda args, _: ("write", {"path": args.file_path, "content": args.content}),
            lambda one: (
                f"{'Created' if one.data.created else 'Updated'} file, absolute path: "
                f"{one.surface.to_absolute(one.data.path)}"
            ),
        ),
        declare(
            "edit_file",
            "Replace a text in a file. It must be unique, unless replace_all is set.",
            "edit multi_edit",
            {
                "file_path": _PATH,
                "old_string": need(str, "The text to replace."),
                "new_string": need(str, "The text to put in its place."),
                "replace_all": may(bool, False, "Replace all occurrences."),
                "allow_multiple_matches": may(bool, False, "Of several occurrences replace the first one only."),
            },
            _edit,
            _show_edit,
        ),
        declare(
            "multi_edit",
            "Make several replacements in one file, in order, all or none.",
            "multi_edit",
            {
                "file_path": _PATH,
                "edits": need(rows(old_string=need(str), new_string=need(str)), "The replacements.", min_length=1),
            },
            _edit_several,
            _show_several,
        ),
        declare(
            "ls",
            "List a folder.",
            "ls",
            {"directory": may(str, ".", "The folder.")},
            lambda args, _: ("ls", {"path": args.directory}),
            _show_listing,
        ),
        declare(
            "glob",
            "Find files by a glob, such as **/*.py.",
            "find",
            {"pattern": need(str, "The glob.", min_length=1), "path": may(str, ".", "The folder to search in.")},
            lambda args, _: ("find", {"pattern": args.pattern, "path": args.path}),
            lambda one: json.dumps(list(one.data.files), ensure_ascii=False),
        ),
        declare(
            "grep",
            "Search the contents of files.",
            "search_text",
            {
                "pattern": need(str, "What to search for.", min_length=1),
                "path": may(str, ".", "File or folder to search in."),
                "glob_pattern": may(str, None, "Glob of the files to search.", min_length=1),
                "output_mode": may("files_with_matches | content | count", "files_with_matches", "What to return."),
                "max_results": may(int, 50, "Most results.", ge=1, le=10_000),
                "use_regex": may(bool, True, "Whether pattern is a regular expression."),
            },
            _grep,
            _show_grep,
        ),
        declare(
            "execute",
            "Run a shell command in the workspace, at most 120 seconds.",
            "exec",
            {"command": need(str, "The command.", min_length=1)},
            lambda args, _: ("exec", {"command": args.command, "timeoutMs": 120_000}),
            _show_command,
        ),
        declare(
            "write_todos",
            "Replace the list of steps.",
            "todo",
            {"todos": need(rows(content=need(str, min_length=1), status=need(" | ".join(_STATUS))), "The whole list.")},
            _write_todos,
            _show_todos,
        ),
        declare("read_todos", "Return the list of steps.", "todo", {}, _read_todos, _show_todos),
        declare(
            "analyze_code",
            "Analyze imports, functions, classes and complexity of a file.",
            "code_analyze",
            {"file_path": _PATH},
            lambda args, _: ("code_analyze", {"path": args.file_path}),
            _show_json,
        ),
        declare(
            "get_code_outline",
            "Outline a file as Markdown.",
            "code_outline",
            {"file_path": _PATH},
            lambda args, _: ("code_outline", {"path": args.file_path}),
        ),
        declare(
            "format_code",
            "Format a file.",
            "code_format",
            {
                "file_path": _PATH,
                "formatter": may("auto | black | autopep8 | yapf | prettier", "auto", "The formatter."),
            },
            lambda args, _: ("code_format", {"path": args.file_path, "formatter": args.formatter, "write": True}),
        ),
        declare(
            "lint_code",
            "Lint a file.",
            "code_lint",
            {"file_path": _PATH, "linter": may("auto | pylint | flake8 | eslint", "auto", "The linter.")},
            lambda args, _: ("code_lint", {"paths": [args.file_path], "linter": args.linter}),
        ),
        declare(
            "find_symbols",
            "Find functions, classes and variables of a file.",
            "code_symbols",
            {
                "file_path": _PATH,
                "symbol_type": may("all | function | class | variable", "all", "The kind of symbols."),
                "pattern": may(str, "", "A regular expression for their names."),
            },
            lambda args, _: (
                "code_symbols",
                {"path": args.file_path, "kind": args.symbol_type, "pattern": args.pattern},
            ),
            _show_json,
        ),
        *(
            declare(
                name, about, to, {"file_path": _PATH, "line": _LINE, "character": _CHARACTER}, _locate(to), _show_json
            )
            for name, about, to in (
                ("goto_definition", "Find the definition of a symbol.", "lsp_definition"),
                ("find_references", "Find the references to a symbol.", "lsp_references"),
                ("hover_info", "Describe a symbol.", "lsp_hover"),
            )
        ),
        declare(
            "get_diagnostics",
            "List errors and warnings of a file.",
            "lsp_diagnostics",
            {"file_path": _PATH},
            lambda args, _: ("lsp_diagnostics", {"path": args.file_path}),
            _show_json,
        ),
        declare("lsp_symbol", "Find symbols.", "lsp_symbols", {"query": may(str, "")}, None, _show_json),
        declare("lsp_format", "Format a file by its language server.", "lsp_format", {"file_path": _PATH}, None),
    ),
    render=_render,
)
