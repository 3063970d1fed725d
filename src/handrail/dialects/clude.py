"""The dialect of clude: a contract of calls."""

from typing import Any

from msgspec import to_builtins

from handrail.dialects.dialect import Answered, Canonical, Dialect, DialectAnswer, Surface, declare
from handrail.dialects.parameters import may, need, rows
from handrail.dialects.render import build_path_filter, drop_none, get_details, list_extras
from handrail.protocol.decisions import Decision
from handrail.protocol.errors import ErrorCode, ToolError
from handrail.protocol.wire import encode

_LEVELS = ("info", "success", "warning", "error", "progress")
_STATUS = {"pending": "pending", "in_progress": "active", "completed": "done"}
_CODES: dict[ErrorCode, str] = {
    "INVALID_ARGUMENT": "E_INVALID_ARGS",
    "UNKNOWN_TOOL": "E_NO_TOOL",
    "UNSUPPORTED_VERSION": "E_UNSUPPORTED",
    "NOT_FOUND": "E_NOT_FOUND",
    "NOT_A_FILE": "E_NOT_FILE",
    "NOT_A_DIRECTORY": "E_NOT_DIR",
    "BINARY_FILE": "E_READ",
    "ACCESS_DENIED": "E_PERMISSION",
    "NO_SPACE": "E_READ",
    "IO_ERROR": "E_READ",
    "NO_MATCH": "E_NOT_FOUND",
    "AMBIGUOUS_MATCH": "E_NOT_UNIQUE",
    "NO_CHANGE": "E_VALIDATION_FAILED",
    "OMITTED_TEXT": "E_VALIDATION_FAILED",
    "STALE_FILE": "E_VALIDATION_FAILED",
    "CONFLICT": "E_VALIDATION_FAILED",
    "OUTSIDE_WORKSPACE": "E_POLICY",
    "POLICY_DENIED": "E_POLICY",
    "PERMISSION_REQUIRED": "E_APPROVAL_REQUIRED",
    "PERMISSION_DENIED": "E_DENIED",
    "PROCESS_NOT_FOUND": "E_NOT_FOUND",
    "PROCESS_ENDED": "E_TOOL",
    "TIMEOUT": "E_TIMEOUT",
    "CANCELLED": "E_TOOL",
    "INTERRUPTED": "E_TOOL",
    "LIMIT_EXCEEDED": "E_EXEC",
    "UNAVAILABLE": "E_TOOL_DISABLED",
    "SANDBOX_UNAVAILABLE": "E_EXEC",
    "INTERNAL": "E_INTERNAL",
}


def render_decision(decision: Decision) -> dict[str, Any]:
    """A decision of the policy: ALLOW, DENY, or REQUIRE_CONFIRMATION."""
    if decision.decision == "allow":
        return {"decision": "ALLOW"}
    if decision.decision == "deny":
        return {"decision": "DENY", "code": decision.code or "POLICY_DENIED", "reason": decision.reason}
    return {"decision": "REQUIRE_CONFIRMATION", "scope": "single_action", "reason": decision.reason}


def _describe_details(one: Answered) -> dict[str, Any]:
    """Details of an error, with the decision in clude's words."""
    error = one.result.error
    if error is None:
        return {}
    given = get_details(error)
    if not given:
        return {"problems": error.details} if error.details else {}
    given = dict(given)
    if error.code == "PERMISSION_REQUIRED":
        scopes = {"once": "single_action", "session": "session", "workspace": "workspace"}
        scope = next((scopes[kind] for kind in reversed(given.get("answers", ())) if kind in scopes), "single_action")
        decision = {"decision": "REQUIRE_CONFIRMATION", "scope": scope, "reason": given.get("reason", "")}
        return {"decision": decision, "request_id": given.get("id")}
    if "rule" in given:
        given["decision"] = {"decision": "DENY", "code": error.code, "reason": given.get("reason", error.message)}
    return given


def _show_listing(one: Answered) -> dict[str, Any]:
    is_ignored = build_path_filter(one.args.ignore_globs or ())
    items = [
        {"name": entry.path, "is_dir": entry.kind == "directory", "size_bytes": entry.size}
        for entry in one.data.entries
        if not is_ignored(entry.path)
    ]
    return {"path": one.data.path, "items": items}


def _show_read(one: Answered) -> dict[str, Any]:
    data, meta = one.data, one.result.meta
    sizes = {"total_size": data.size, "read_size": len(one.content.encode())}
    page = {"truncated": meta.truncated, "offset": data.first_line, "limit": one.args.limit}
    if meta.next_offset is not None:
        page["warning"] = f"Continue with offset {meta.next_offset}."
    return {"path": data.path, "text": one.content, **sizes, **page}


def _patch(args: Any, _: Surface) -> Canonical:
    if args.patch_text is None:
        meant = (
            "" if args.old is None and args.new is None else "; old and new are for another tool, write a patch of them"
        )
        raise ToolError("INVALID_ARGUMENT", f"apply_patch: patch_text is required{meant}")
    return "apply_patch", {"patch": args.patch_text}


def _show_patch(one: Answered) -> dict[str, Any]:
    files = one.data.files
    payload = {
        "paths": [file.path for file in files],
        "replacements": sum(len(file.strategies) for file in files),
        "before_hash": files[0].before if len(files) == 1 else [file.before for file in files],
        "after_hash": files[0].hash if len(files) == 1 else [file.hash for file in files],
        "undo_id": one.result.meta.undo,
        "diff": one.data.diff,
    }
    return payload | ({"path": files[0].path} if len(files) == 1 else {})


def _grep(args: Any, _: Surface) -> Canonical:
    given = drop_none(path=args.path, filePattern=args.glob, maxResults=args.head_limit)
    fields = {"pattern": args.pattern, "caseSensitive": not args.i, **given}
    return ("search_text", {**fields, "multiline": True}) if args.multiline else ("grep", fields)


def _show_grep(one: Answered) -> dict[str, Any]:
    hits = [{"path": match.path, "line": match.line, "preview": match.text} for match in one.data.matches]
    engine = "rg" if one.result.meta.engine == "ripgrep" else "python"
    return {"pattern": one.args.pattern, "engine": engine, "hits": hits, "truncated": one.result.meta.truncated}


def _show_command(one: Answered) -> dict[str, Any]:
    data = one.data
    payload = {"command": one.args.command, "cwd": ".", "exit_code": data.exit_code, "output": data.output}
    if data.session_id is None:
        return payload
    pid = next((process.pid for process in one.surface.list_processes() if process.id == data.session_id), None)
    return payload | {"session_id": data.session_id, "pid": pid}


def _display(args: Any, _: Surface) -> Canonical:
    content = args.content if args.content is not None else args.message
    if not content:
        raise ToolError("INVALID_ARGUMENT", "display: content is required and must not be empty")
    level = args.level if args.level in _LEVELS else "info"
    thought = args.thought if args.thought is not None else args.explanation
    fields = drop_none(title=args.title or None, thought=thought, evidence=args.evidence)
    return "display", {"content": content[:10_000], "level": level, **fields}


def _show_display(one: Answered) -> dict[str, Any]:
    content = one.args.content if one.args.content is not None else one.args.message
    payload = {"displayed": True, "length": len(content), "level": one.data.level}
    return payload | {"truncated": len(content) > one.data.characters}


def _remember(args: Any, _: Surface) -> Canonical:
    note = drop_none(title=args.title, content=args.knowledge_to_store, id=args.existing_knowledge_id)
    return "memory", {"action": args.action, **note}


def _render(one: Answered, shown: Any) -> DialectAnswer:
    result, error = one.result, one.result.error
    artifacts = {
        "files_changed": list(result.artifacts.files_changed),
        "commands_run": list(result.artifacts.commands_run),
    }
    if error is None:
        payload = shown if shown is not None else {"content": one.content}
        payload, failure = {**payload, "meta": list_extras(result)}, None
    else:
        payload = None
        details = _describe_details(one) | ({"payload": to_builtins(result.data)} if result.data is not None else {})
        failure = {"code": _CODES[error.code], "message": error.message, "details": details}
    told = {
        "tool_call_id": one.call_id,
        "ok": error is None,
        "payload": payload,
        "error": failure,
        "artifacts": artifacts,
        "duration_ms": round(result.duration_ms),
    }
    return DialectAnswer(encode(told).decode(), told)


DIALECT = Dialect(
    name="clude",
    follows="tool protocol (2026-02)",
    parameters={
        "filePattern": "glob",
        "maxResults": "head_limit",
        "caseSensitive": "-i",
        "background": "is_background",
    },
    tools=(
        declare(
            "list_dir",
            "List a folder.",
            "ls",
            {
                "path": may(str, ".", "The folder."),
                "ignore_globs": may(tuple[str, ...], None, "Globs of entries to leave out."),
            },
            lambda args, _: ("ls", {"path": args.path}),
            _show_listing,
        ),
        declare(
            "glob_file_search",
            "Find files by a glob.",
            "find",
            {
                "glob_pattern": need(str, "The glob.", min_length=1),
                "target_directory": may(str, ".", "The folder to search in."),
            },
            lambda args, _: ("find", {"pattern": args.glob_pattern, "path": args.target_directory}),
            lambda one: {"pattern": one.args.glob_pattern, "matches": list(one.data.files)},
        ),
        declare(
            "read_file",
            "Read a text file, or a page of its lines.",
            "read",
            {
                "path": need(str, "The file."),
                "offset": may(int, None, "The first line, from 1.", ge=1),
                "limit": may(int, None, "The number of lines.", ge=1, le=10_000),
            },
            lambda args, _: ("read", drop_none(path=args.path, offset=args.offset, limit=args.limit)),
            _show_read,
        ),
        declare(
            "apply_patch",
            "Change files by a patch: *** Begin Patch … *** End Patch, or a unified diff.",
            "apply_patch",
            {
                "patch_text": may(str, None, "The patch; required."),
                "path": may(str, None, "Not for this tool."),
                "old": may(str, None, "Not for this tool."),
                "new": may(str, None, "Not for this tool."),
            },
            _patch,
            _show_patch,
        ),
        declare(
            "delete_file",
            "Delete a file.",
            "delete",
            {"path": need(str, "The file.")},
            lambda args, _: ("delete", {"path": args.path}),
            lambda one: {"path": one.data.path, "deleted": True, "before_hash": one.data.before},
        ),
        declare(
            "grep",
            "Search the contents of files by a regular expression.",
            "grep search_text",
            {
                "pattern": need(str, "The regular expression.", min_length=1),
                "path": may(str, None, "File or folder to search in."),
                "glob": may(str, None, "Glob of the files to search.", min_length=1),
                "multiline": may(bool, False, "Let a match reach over line ends."),
                "head_limit": may(int, None, "Most hits.", ge=1, le=10_000),
                "-i": may(bool, False, "Ignore case."),
            },
            _grep,
            _show_grep,
        ),
        declare(
            "codebase_search",
            "Search the code by its meaning.",
            "codebase_search",
            {
                "query": need(str, "The text to search for.", min_length=1),
                "target_directories": need(tuple[str, ...], "Folders to search in; empty for all."),
            },
            lambda args, _: ("codebase_search", {"query": args.query, "paths": list(args.target_directories)}),
            lambda one: {"query": one.args.query, **to_builtins(one.data)},
        ),
        declare(
            "run_terminal_cmd",
            "Run a shell command in the workspace, in a sandbox.",
            "exec",
            {
                "command": need(str, "The command.", min_length=1),
                "is_background": may(bool, False, "Return at once; the command continues."),
            },
            lambda args, _: ("exec", {"command": args.command, "background": args.is_background}),
            _show_command,
        ),
        declare(
            "display",
            "Show the person something while you work.",
            "display",
            {
                "content": may(str, None, "Markdown, at most 10,000 characters; required."),
                "level": may(str, "info", "info, success, warning, error or progress."),
                "title": may(str, None, "A few words above it."),
                "thought": may(str, None, "Why you show it."),
                "evidence": may(tuple[str, ...], None, "What it rests on."),
                "explanation": may(str, None, "The older name of thought."),
                "message": may(str, None, "The older name of content."),
            },
            _display,
            _show_display,
        ),
        declare(
            "read_lints",
            "List the problems of files.",
            "code_lint lsp_diagnostics",
            {"paths": need(tuple[str, ...], "The files.")},
            lambda args, _: ("code_lint", {"paths": list(args.paths)}),
            lambda one: to_builtins(one.data),
        ),
        declare(
            "update_memory",
            "Note something about the workspace for later sessions.",
            "memory",
            {
                "action": need("create | update | delete", "What to do."),
                "title": may(str, None, "What it is about, in one line."),
                "knowledge_to_store": may(str, None, "The note."),
                "existing_knowledge_id": may(str, None, "The note to update or delete."),
            },
            _remember,
            lambda one: {"id": one.data.notes[0].id, "action": one.args.action},
        ),
        declare(
            "todo_write",
            "Replace the list of steps.",
            "todo",
            {"todos": need(rows(content=need(str, min_length=1), status=need(" | ".join(_STATUS))), "The whole list.")},
            lambda args, _: (
                "todo",
                {"items": [{"text": item.content, "status": _STATUS[item.status]} for item in args.todos]},
            ),
            lambda one: {"todos": to_builtins(one.args.todos)},
        ),
    ),
    render=_render,
)
