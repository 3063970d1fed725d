"""The dialect of one-thing."""

from typing import Any

from handrail.dialects.dialect import Answered, Canonical, Dialect, DialectAnswer, Surface, declare
from handrail.dialects.parameters import may, need
from handrail.dialects.render import (
    build_path_filter,
    count_changes,
    drop_none,
    find_last_line,
    find_type_glob,
    list_extras,
    number_lines,
)

_MAX_RESULTS = 100
Shown = tuple[str, str, dict[str, Any]]
"""Title, output and metadata of an answer."""


def _show_read(one: Answered) -> Shown:
    data, meta = one.data, one.result.meta
    path = one.surface.to_absolute(data.path)
    name, picture = path.rpartition("/")[2], bool(one.result.attachments)
    metadata = {"filePath": path, "lineCount": meta.returned or 0, "offset": data.first_line or 1}
    metadata |= {"limit": int(one.args.limit), "truncated": meta.next_offset is not None}
    metadata |= {"isBinary": picture, "fileSize": data.size}
    if picture:
        return f"Read {name}", one.content, metadata
    lines = number_lines(one, lambda number, width, line: f"{number:>{width}}\t{line}")
    if meta.next_offset is not None:
        lines += ["", f"[Showing lines {data.first_line}-{find_last_line(one)} of {meta.total} total lines]"]
    return f"Read {name} ({meta.returned or 0} lines)", "\n".join(lines), metadata


def _edit(args: Any, surface: Surface) -> Canonical:
    if not args.old_string and surface.find_kind(args.file_path) == "missing":
        return "write", {"path": args.file_path, "content": args.new_string}
    changed = {"oldText": args.old_string, "newText": args.new_string, "replaceAll": args.replace_all}
    return "edit", {"path": args.file_path, **changed}


def _show_edit(one: Answered) -> Shown:
    if one.result.name == "write":
        return _show_write(one)
    path = one.surface.to_absolute(one.data.path)
    added, removed = count_changes(one.data.diff)
    metadata = {"filePath": path, "diff": one.data.diff, "additions": added, "deletions": removed}
    return f"Edited {path.rpartition('/')[2]}", one.content, metadata


def _show_write(one: Answered) -> Shown:
    path, data = one.surface.to_absolute(one.data.path), one.data
    content: str = getattr(one.args, "content", "") or getattr(one.args, "new_string", "")
    metadata = {"filePath": path, "bytesWritten": data.size, "lineCount": len(content.split("\n"))}
    title = f"{'Created' if data.created else 'Updated'} {path.rpartition('/')[2]}"
    return title, one.content, metadata | {"created": data.created}


def _show_command(one: Answered) -> Shown:
    data, command = one.data, one.args.command
    failed = data.exit_code != 0
    title = f"Failed (exit {data.exit_code}): {command[:50]}..." if failed else f"Executed: {command[:50]}"
    notes = [f"Exit code: {data.exit_code}"] if failed else []
    if one.result.meta.output is not None:
        notes.append(f"Output was truncated; all of it: {one.result.meta.output}")
    if one.result.error is not None:
        notes.append(one.message)
    output = data.output or "(no output)"
    if notes:
        output = "\n".join((output.rstrip("\n"), "", "<bash_metadata>", *notes, "</bash_metadata>"))
    cwd = one.surface.to_absolute(one.args.working_directory or ".")
    metadata = {"command": command, "workingDirectory": cwd, "exitCode": data.exit_code, "output": data.output}
    return title, output, metadata


def _show_glob(one: Answered) -> Shown:
    found = one.surface.sort_newest(one.data.files)
    files = found[:_MAX_RESULTS]
    cut = one.result.meta.truncated or len(found) > len(files)
    place = one.surface.to_absolute(one.data.path)
    metadata = {
        "pattern": one.args.pattern,
        "searchPath": place,
        "count": len(files),
        "truncated": cut,
        "order": "newest",
    }
    output = "\n".join(map(one.surface.to_absolute, files)) or "No files found"
    return f"Found {len(files)} file(s)", output, metadata


def _grep(args: Any, _: Surface) -> Canonical:
    glob = args.glob if args.glob is not None else find_type_glob(args.type) if args.type is not None else None
    given = drop_none(path=args.path, filePattern=glob)
    fields = {"caseSensitive": not args.case_insensitive, "contextLines": min(int(args.context_lines or 0), 20)}
    return "grep", {"pattern": args.pattern, "maxResults": 1_000, **fields, **given}


def _show_grep(one: Answered) -> Shown:
    args, matches = one.args, list(one.data.matches)
    if args.glob is not None and args.type is not None:
        fits = build_path_filter([find_type_glob(args.type)])
        matches = [match for match in matches if fits(match.path)]
    order = {path: place for place, path in enumerate(one.surface.sort_newest(tuple({m.path for m in matches})))}
    matches.sort(key=lambda match: (order[match.path], match.line))
    shown = matches[:_MAX_RESULTS]
    lines, last = ([f"Found {len(shown)} matches"] if shown else ["No matches found"]), ""
    for match in shown:
        if match.path != last:
            lines += ["", f"{one.surface.to_absolute(match.path)}:"]
            last = match.path
        lines += [f"  {match.line - len(match.before) + at}- {text}" for at, text in enumerate(match.before)]
        lines.append(f"  {match.line}: {match.text}")
        lines += [f"  {match.line + 1 + at}- {text}" for at, text in enumerate(match.after)]
    cut = one.result.meta.truncated or len(matches) > len(shown)
    place = one.surface.to_absolute(one.data.path)
    metadata = {
        "pattern": args.pattern,
        "searchPath": place,
        "matches": len(shown),
        "truncated": cut,
        "order": "newest",
    }
    return f"Found {len(shown)} match(es)", "\n".join(lines), metadata


def _render(one: Answered, shown: Any) -> DialectAnswer:
    result, error = one.result, one.result.error
    if error is not None and error.code == "TIMEOUT" and one.args is not None and one.data is not None:
        shown, error = _show_command(one), None
    if error is not None and error.code == "BINARY_FILE" and one.args is not None:
        path = one.surface.to_absolute(one.args.file_path)
        metadata: dict[str, Any] = {
            "filePath": path,
            "lineCount": 0,
            "offset": 1,
            "limit": int(one.args.limit),
            "truncated": False,
        }
        shown, error = (f"Read {path.rpartition('/')[2]}", error.message, metadata | {"isBinary": True}), None
    if error is not None:
        text = error.message
        if error.code == "PERMISSION_DENIED":
            text = f"The user rejected permission to use this specific tool call. {text}"
        return DialectAnswer(text, {"success": False, "error": text, "metadata": list_extras(result)})
    told_by_tool: Shown = shown or (result.title, one.content, {})
    title, output, metadata = told_by_tool
    attachments = [
        drop_none(type=file.type, path=one.surface.to_absolute(file.path), content=file.content)
        for file in result.attachments
    ]
    told = {"title": title, "output": output, "metadata": {**metadata, "handrail": list_extras(result)}}
    text = "\n".join((output, *(f"[{warning}]" for warning in result.warnings)))
    return DialectAnswer(text, {"success": True, "data": told | {"attachments": attachments}})


def _invalid(name: str, texts: tuple[str, ...]) -> str:
    return "\n".join((f"Invalid {name} parameters:", *(f"- {text.partition(' ')[0]}: {text}" for text in texts)))


_PATH = need(str, "The absolute path of the file.")


DIALECT = Dialect(
    name="onething",
    follows="current tool system (2025-12-27)",
    parameters={
        "oldText": "old_string",
        "newText": "new_string",
        "replaceAll": "replace_all",
        "filePattern": "glob",
        "caseSensitive": "case_insensitive",
        "contextLines": "context_lines",
        "timeoutMs": "timeout",
        "cwd": "working_directory",
    },
    unknown='Tool "{name}" not found',
    invalid=_invalid,
    tools=(
        declare(
            "bash",
            "Runs a shell command in the workspace, in a sandbox.",
            "exec",
            {
                "command": need(str, "The command.", min_length=1),
                "working_directory": may(str, None, "The folder to run it in."),
                "timeout": may(float, 120_000, "Milliseconds after which it is stopped.", ge=1),
            },
            lambda args, _: (
                "exec",
                drop_none(
                    command=args.command,
                    cwd=args.working_directory,
                    timeoutMs=int(max(100, min(args.timeout, 600_000))),
                ),
            ),
            _show_command,
        ),
        declare(
            "read",
            "Reads a file. Lines are numbered.",
            "read",
            {
                "file_path": _PATH,
                "offset": may(float, 1, "The first line, from 1.", ge=1),
                "limit": may(float, 2_000, "The number of lines.", ge=1),
            },
            lambda args, _: (
                "read",
                {"path": args.file_path, "offset": int(args.offset), "limit": min(int(args.limit), 10_000)},
            ),
            _show_read,
        ),
        declare(
            "write",
            "Writes a file. It replaces an existing one.",
            "write",
            {"file_path": _PATH, "content": need(str, "The whole content.")},
            lambda args, _: ("write", {"path": args.file_path, "content": args.content}),
            _show_write,
        ),
        declare(
            "edit",
            "Replaces an exact text in a file. It must be unique, unless replace_all is set.",
            "edit write",
            {
                "file_path": _PATH,
                "old_string": need(str, "The text to replace; empty creates the file."),
                "new_string": need(str, "The text to replace it with."),
                "replace_all": may(bool, False, "Replace all occurrences."),
            },
            _edit,
            _show_edit,
        ),
        declare(
            "glob",
            "Finds files by a glob. The newest come first.",
            "find",
            {"pattern": need(str, "The glob.", min_length=1), "path": may(str, None, "The folder to search in.")},
            lambda args, _: ("find", drop_none(pattern=args.pattern, path=args.path)),
            _show_glob,
        ),
        declare(
            "grep",
            "Searches file contents by a regular expression. The newest files come first.",
            "grep",
            {
                "pattern": need(str, "The regular expression.", min_length=1),
                "path": may(str, None, "File or folder to search in."),
                "glob": may(str, None, "Glob of the files to search.", min_length=1),
                "type": may(str, None, "File type to search: js, py, rust, go, java …"),
                "case_insensitive": may(bool, False, "Ignore case."),
                "context_lines": may(float, None, "Lines before and after each match.", ge=0),
            },
            _grep,
            _show_grep,
        ),
    ),
    render=_render,
)
