"""The dialect of opencode."""

import json
from typing import Any

from msgspec import to_builtins

from handrail.dialects.dialect import Answered, Canonical, Dialect, DialectAnswer, DialectTool, Surface, declare
from handrail.dialects.parameters import may, need, rows
from handrail.dialects.render import (
    ask_questions,
    count_changes,
    drop_none,
    find_last_line,
    list_answers,
    list_extras,
    list_patched_files,
    number_lines,
    split_lines,
)
from handrail.protocol.errors import ToolError

_STATUS = {"pending": "pending", "in_progress": "active", "completed": "done", "cancelled": "done"}
_TYPES = {"created": "add", "modified": "update", "deleted": "delete", "renamed": "move"}
_MAX_METADATA_CHARS = 30_000
_MAX_FILES = 100
Shown = tuple[str, str, dict[str, Any]]
"""Title, output and metadata of an answer."""


def _read(args: Any, surface: Surface) -> Canonical:
    if surface.find_kind(args.filePath) == "folder":
        return "ls", {"path": args.filePath}
    return "read", {"path": args.filePath, "offset": args.offset, "limit": min(args.limit, 10_000)}


def _show_read(one: Answered) -> Shown:
    data, meta = one.data, one.result.meta
    path = one.surface.to_absolute(data.path)
    if one.result.name == "ls":
        return _show_folder(one, path)
    if one.result.attachments:
        return data.path, one.content, {"preview": one.content, "truncated": False, "loaded": []}
    rows_ = number_lines(one, lambda number, _, line: f"{number}: {line}")
    first, last, more = data.first_line or 1, find_last_line(one), meta.next_offset is not None
    note = f"(End of file - total {meta.total} lines)"
    if more:
        note = f"(Showing lines {first}-{last} of {meta.total}. Use offset={meta.next_offset} to continue.)"
    output = "\n".join((f"<path>{path}</path>", "<type>file</type>", "<content>", *rows_, "", note, "</content>"))
    text = "\n".join(split_lines(one.content))
    display = {"type": "file", "path": path, "text": text, "lineStart": first, "lineEnd": last}
    display |= {"totalLines": meta.total, "truncated": more}
    preview = "\n".join(text.split("\n")[:20])
    return data.path, output, {"preview": preview, "truncated": more, "loaded": [], "display": display}


def _show_folder(one: Answered, path: str) -> Shown:
    entries = [f"{entry.path}{'/' if entry.kind == 'directory' else ''}" for entry in one.data.entries]
    first = one.args.offset
    shown = entries[first - 1 : first - 1 + one.args.limit]
    more = first - 1 + len(shown) < len(entries) or one.result.meta.truncated
    note = f"(Showing {len(shown)} of {len(entries)} entries.)" if more else f"({len(entries)} entries)"
    lines = (f"<path>{path}</path>", "<type>directory</type>", "<entries>", *shown, "", note, "</entries>")
    display = {"type": "directory", "path": path, "entries": shown, "offset": first, "totalEntries": len(entries)}
    metadata: dict[str, Any] = {"preview": "\n".join(shown[:20]), "truncated": more, "loaded": []}
    metadata["display"] = display | {"truncated": more}
    return one.data.path, "\n".join(lines), metadata


def _edit(args: Any, surface: Surface) -> Canonical:
    if not args.oldString and surface.find_kind(args.filePath) == "missing":
        return "write", {"path": args.filePath, "content": args.newString}
    changed = {"oldText": args.oldString, "newText": args.newString, "replaceAll": args.replaceAll}
    return "edit", {"path": args.filePath, **changed}


def _show_edit(one: Answered) -> Shown:
    path, diff = one.surface.to_absolute(one.data.path), one.data.diff
    added, removed = count_changes(diff)
    filediff = {"file": path, "patch": diff, "additions": added, "deletions": removed}
    return one.data.path, "Edit applied successfully.", {"diagnostics": {}, "diff": diff, "filediff": filediff}


def _show_write(one: Answered) -> Shown:
    path = one.surface.to_absolute(one.data.path)
    metadata: dict[str, Any] = {"diagnostics": {}, "filepath": path, "exists": not one.data.created}
    return one.data.path, "Wrote file successfully.", metadata


def _show_patch(one: Answered) -> Shown:
    output = list_patched_files(one)
    files = [
        {
            "filePath": one.surface.to_absolute(file.path),
            "relativePath": file.path,
            "type": _TYPES.get(file.action, "update"),
            "additions": file.added,
            "deletions": file.removed,
            **drop_none(movePath=file.path if file.renamed_from else None),
        }
        for file in one.data.files
    ]
    return output, output, {"diff": one.data.diff, "files": files, "diagnostics": {}}


def _show_command(one: Answered) -> Shown:
    data = one.data
    notes = [f"Exit code: {data.exit_code}"] if data.exit_code else []
    if one.result.error is not None:
        notes.append(one.message)
    output = data.output or "(no output)"
    if notes:
        output += "\n\n<shell_metadata>\n" + "\n".join(notes) + "\n</shell_metadata>"
    metadata = {"output": data.output[-_MAX_METADATA_CHARS:], "exit": data.exit_code}
    metadata |= {"truncated": one.result.meta.truncated} | drop_none(outputPath=one.result.meta.output)
    return one.args.command, output, metadata


def _show_glob(one: Answered) -> Shown:
    files = [one.surface.to_absolute(path) for path in one.data.files]
    truncated = one.result.meta.truncated
    output = "\n".join(files) or "No files found"
    if truncated:
        output += "\n\n(Results are truncated. Consider using a more specific path or pattern.)"
    return one.data.path, output, {"count": len(files), "truncated": truncated}


def _show_grep(one: Answered) -> Shown:
    matches, truncated = one.data.matches, one.result.meta.truncated
    lines, last = [f"Found {len(matches)} matches"] if matches else ["No files found"], ""
    for match in matches:
        if match.path != last:
            lines += [""] * bool(last) + [f"{one.surface.to_absolute(match.path)}:"]
            last = match.path
        lines.append(f"  Line {match.line}: {match.text}")
    if truncated:
        lines += ["", "(Results are truncated. Consider using a more specific path or pattern.)"]
    return one.args.pattern, "\n".join(lines), {"matches": len(matches), "truncated": truncated}


def _write_todos(args: Any, _: Surface) -> Canonical:
    return "todo", {"items": [{"text": item.content, "status": _STATUS[item.status]} for item in args.todos]}


def _show_todos(one: Answered) -> Shown:
    todos = to_builtins(one.args.todos)
    count = sum(todo["status"] not in {"completed", "cancelled"} for todo in todos)
    return f"{count} todos", json.dumps(todos, indent=2, ensure_ascii=False), {"todos": todos}


def _show_reply(one: Answered) -> Shown:
    questions = one.args.questions
    answers = list_answers(one, questions)
    pairs = ", ".join(f'"{q.question}"="{", ".join(reply)}"' for q, reply in zip(questions, answers, strict=True))
    title = f"Asked {len(questions)} question{'' if len(questions) == 1 else 's'}"
    return title, f"User has answered your questions: {pairs}.", {"answers": answers}


def _look_up(args: Any, _: Surface) -> Canonical:
    tools = {"goToDefinition": "lsp_definition", "findReferences": "lsp_references", "hover": "lsp_hover"}
    if args.operation in {"goToImplementation", "prepareCallHierarchy", "incomingCalls", "outgoingCalls"}:
        raise ToolError("UNAVAILABLE", f"operation: {args.operation} is not available here. Nothing was run.")
    place = {"path": args.filePath, "line": args.line - 1, "character": args.character - 1}
    return tools.get(args.operation, "lsp_symbols"), place


def _render(one: Answered, shown: Any) -> DialectAnswer:
    result, error = one.result, one.result.error
    if error is not None:
        return _render_error(one)
    told: Shown = shown or (result.title, one.content, {})
    title, output, metadata = told
    if result.warnings:
        output += "\n\n" + "\n".join(result.warnings)
    answer: dict[str, Any] = {
        "title": title,
        "output": output,
        "metadata": {**metadata, "handrail": list_extras(result)},
    }
    if result.attachments:
        answer["attachments"] = [
            {"type": "file", "mime": one.mime, "url": f"data:{one.mime};base64,{one.content}"}
            for one in result.attachments
        ]
    return DialectAnswer(output, answer)


def _render_error(one: Answered) -> DialectAnswer:
    error, name = one.result.error, one.tool.name
    if error is None:
        raise AssertionError("an error is rendered")
    text = error.message
    if error.code == "UNKNOWN_TOOL":
        # opencode answers so by its tool `invalid`, as a success with an explanation.
        return DialectAnswer(
            text, {"title": "Invalid Tool", "output": text, "metadata": {"handrail": list_extras(one.result)}}
        )
    if error.code == "TIMEOUT" and one.data is not None:
        return DialectAnswer(text, dict(zip(("title", "output", "metadata"), _show_command(one), strict=True)))
    if error.code == "PERMISSION_DENIED":
        text = f"The user rejected permission to use this specific tool call. {text}"
    elif error.code == "POLICY_DENIED":
        text = f"The user has specified a rule which prevents you from using this specific tool call. {text}"
    elif error.code == "BINARY_FILE" and one.args is not None and name == "read":
        text = f"Cannot read binary file: {one.surface.to_absolute(one.args.filePath)}"
    elif name == "apply_patch" and one.args is not None:
        text = f"apply_patch verification failed: {text}"
    state = {"status": "error", "input": one.given, "error": text, "metadata": {"handrail": list_extras(one.result)}}
    return DialectAnswer(text, state)


def _invalid(name: str, texts: tuple[str, ...]) -> str:
    problems = ". ".join(texts)
    advice = "Please rewrite the input so it satisfies the expected schema."
    return f"The {name} tool was called with invalid arguments: {problems}.\n{advice}"


_FILE = need(str, "The path of the file.")
_OPERATIONS = (
    "goToDefinition | findReferences | hover | documentSymbol | workspaceSymbol | goToImplementation"
    " | prepareCallHierarchy | incomingCalls | outgoingCalls"
)
_QUESTION = rows(
    question=need(str),
    header=need(str, max_length=30),
    options=need(rows(label=need(str), description=need(str))),
    multiple=may(bool, False),
)


DIALECT = Dialect(
    name="opencode",
    follows="1.18.18",
    repairs_case=True,
    parameters={
        "oldText": "oldString",
        "newText": "newString",
        "filePattern": "include",
        "timeoutMs": "timeout",
        "cwd": "workdir",
    },
    unknown="The arguments provided to the tool are invalid: Model tried to call unavailable tool '{name}'.",
    invalid=_invalid,
    tools=(
        declare(
            "bash",
            "Runs a shell command in the workspace, in a sandbox.",
            "exec",
            {
                "command": need(str, "The command.", min_length=1),
                "timeout": may(int, 120_000, "Milliseconds after which it is stopped.", gt=0),
                "workdir": may(str, None, "The folder to run it in; the workspace if not given."),
            },
            lambda args, _: (
                "exec",
                drop_none(command=args.command, timeoutMs=max(100, min(args.timeout, 600_000)), cwd=args.workdir),
            ),
            _show_command,
        ),
        declare(
            "read",
            "Reads a file with numbered lines, or lists a folder.",
            "read ls",
            {
                "filePath": need(str, "The path of the file or folder."),
                "offset": may(int, 1, "The first line, from 1.", ge=1),
                "limit": may(int, 2_000, "The number of lines.", ge=1),
            },
            _read,
            _show_read,
        ),
        declare(
            "write",
            "Writes a file. It replaces an existing one.",
            "write",
            {"filePath": _FILE, "content": need(str, "The whole content.")},
            lambda args, _: ("write", {"path": args.filePath, "content": args.content}),
            _show_write,
        ),
        declare(
            "edit",
            "Replaces an exact text in a file. It must be unique, unless replaceAll is set.",
            "edit write",
            {
                "filePath": _FILE,
                "oldString": need(str, "The text to replace."),
                "newString": need(str, "The text to replace it with."),
                "replaceAll": may(bool, False, "Replace all occurrences."),
            },
            _edit,
            lambda one: _show_edit(one) if one.result.name == "edit" else _show_write(one),
        ),
        declare(
            "apply_patch",
            "Changes files by a patch: *** Begin Patch … *** End Patch.",
            "apply_patch",
            {"patchText": need(str, "The whole patch.")},
            lambda args, _: ("apply_patch", {"patch": args.patchText}),
            _show_patch,
        ),
        declare(
            "glob",
            "Finds files by a glob, such as **/*.ts.",
            "find",
            {"pattern": need(str, "The glob.", min_length=1), "path": may(str, None, "The folder to search in.")},
            lambda args, _: ("find", drop_none(pattern=args.pattern, path=args.path, maxResults=_MAX_FILES)),
            _show_glob,
        ),
        declare(
            "grep",
            "Searches file contents by a regular expression.",
            "grep",
            {
                "pattern": need(str, "The regular expression.", min_length=1),
                "path": may(str, None, "The folder to search in."),
                "include": may(str, None, "Glob of the files to search.", min_length=1),
            },
            lambda args, _: ("grep", drop_none(pattern=args.pattern, path=args.path, filePattern=args.include)),
            _show_grep,
        ),
        declare(
            "todowrite",
            "Replaces the list of steps.",
            "todo",
            {
                "todos": need(
                    rows(
                        content=need(str, min_length=1),
                        status=need(" | ".join(_STATUS)),
                        priority=need("high | medium | low"),
                    ),
                    "The whole list.",
                )
            },
            _write_todos,
            _show_todos,
        ),
        declare(
            "question",
            "Asks the person questions and waits for the answers.",
            "question",
            {"questions": need(_QUESTION, "The questions.", min_length=1)},
            lambda args, _: ("question", ask_questions(args.questions)),
            _show_reply,
        ),
        declare(
            "skill",
            "Loads a skill: written instructions for a kind of task.",
            "skill_control",
            {"name": need(str, "The skill.")},
            lambda args, _: ("skill_control", {"name": args.name, "action": "activate"}),
            lambda one: (f"Loaded skill: {one.args.name}", one.content, {"name": one.args.name}),
        ),
        declare(
            "lsp",
            "Asks a language server about a place in a file.",
            "lsp_definition lsp_references lsp_hover lsp_symbols",
            {
                "operation": need(_OPERATIONS, "What to ask."),
                "filePath": _FILE,
                "line": need(int, "The line, from 1.", ge=1),
                "character": need(int, "The character, from 1.", ge=1),
                "query": may(str, None, "Words for workspaceSymbol."),
            },
            _look_up,
            lambda one: (
                f"{one.args.operation} {one.args.filePath}:{one.args.line}",
                json.dumps(to_builtins(one.data)),
                {"result": to_builtins(one.data)},
            ),
        ),
        DialectTool(name="plan_exit", about="", to=(), lacks="a person changes the mode; say that your plan is ready"),
    ),
    render=_render,
)
