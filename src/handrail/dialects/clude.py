"""The dialect of clude: a contract of calls."""

from datetime import UTC, datetime
from typing import Any

from handrail.dialects.dialect import Answered, Canonical, Code, Dialect, DialectAnswer, Shown
from handrail.dialects.render import get_details, list_extras
from handrail.dialects.session_view import Surface
from handrail.dialects.table import parse_tools
from handrail.dialects.translation import build_path_filter
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.text import render_value

_LEVELS = ("info", "success", "warning", "error", "progress")
_INVALID = {"grep": "E_INVALID_REGEX", "glob_file_search": "E_GLOB"}
"""Codes of arguments that have the right type, and that the tool cannot use."""
_SCOPES = {"once": "single_action", "session": "session", "workspace": "workspace"}
_OWN_CODES = """
E_INVALID_ARGS: INVALID_ARGUMENT
E_NO_TOOL: UNKNOWN_TOOL
E_UNSUPPORTED: UNSUPPORTED_VERSION
E_NOT_FOUND: NOT_FOUND NO_MATCH PROCESS_NOT_FOUND
E_NOT_FILE: NOT_A_FILE
E_NOT_DIR: NOT_A_DIRECTORY
E_READ: BINARY_FILE NO_SPACE IO_ERROR
E_PERMISSION: ACCESS_DENIED
E_NOT_UNIQUE: AMBIGUOUS_MATCH
E_VALIDATION_FAILED: NO_CHANGE OMITTED_TEXT STALE_FILE CONFLICT
E_POLICY: OUTSIDE_WORKSPACE POLICY_DENIED
E_APPROVAL_REQUIRED: PERMISSION_REQUIRED
E_DENIED: PERMISSION_DENIED
E_TOOL: PROCESS_ENDED CANCELLED INTERRUPTED
E_TIMEOUT: TIMEOUT
E_EXEC: LIMIT_EXCEEDED SANDBOX_UNAVAILABLE
E_TOOL_DISABLED: UNAVAILABLE
E_INTERNAL: INTERNAL
"""
_CODES: dict[str, str] = {
    code: own for own, _, codes in (row.partition(": ") for row in _OWN_CODES.split("\n")) for code in codes.split()
}
_TOOLS = """
File:
  path* str -> path                             # The file.
Todo: content* str len>=1 -> text; status* pending|in_progress:active|completed:done -> status
list_dir = ls: List a folder.
  path str=. -> path                            # The folder.
  ignore_globs str[]                            # Globs of entries to leave out.
glob_file_search = find: Find files by a glob.
  glob_pattern* str len>=1 -> pattern           # The glob.
  target_directory str=. -> path                # The folder to search in.
  data: pattern=args.glob_pattern, matches=data.files
read_file = read +File: Read a text file, or a page of its lines.
  offset int >=1 -> offset                      # The first line, from 1.
  limit int >=1 <=10000 -> limit                # The number of lines.
  data: path=data.path, text=content, total_size=data.size, truncated=truncated, offset=data.first_line,
    limit=args.limit, read_size=len(content.encode()),
    **({"warning": f"Continue with offset {result.meta.next_offset}."} if has_more else {})
apply_patch = apply_patch: Change files by a patch: *** Begin Patch … *** End Patch, or a unified diff.
  patch_text str -> patch                       # The patch; required.
  path str                                      # Not for this tool.
  old str                                       # Not for this tool.
  new str                                       # Not for this tool.
  data: paths=[file.path for file in data.files], replacements=sum(len(file.strategies) for file in data.files),
    before_hash=[file.before for file in data.files], after_hash=[file.hash for file in data.files],
    undo_id=result.meta.undo, diff=data.diff, **({} if data.files[1:] else
    dict(path=data.files[0].path, before_hash=data.files[0].before, after_hash=data.files[0].hash))
delete_file = delete +File: Delete a file.
  data: path=data.path, deleted=True, before_hash=data.before
grep = grep search_text: Search the contents of files by a regular expression.
  pattern* str len>=1 -> pattern                # The regular expression.
  path str -> path                              # File or folder to search in.
  glob str len>=1 -> filePattern                # Glob of the files to search.
  multiline bool=false                          # Let a match reach over line ends.
  head_limit int >=1 <=10000 -> maxResults      # Most hits.
  -i bool=false -> !caseSensitive               # Ignore case.
  data: pattern=args.pattern, engine="rg" if result.meta.engine == "ripgrep" else "python",
    hits=[dict(path=own.path, line=own.line, preview=own.text) for own in data.matches], truncated=truncated
codebase_search = codebase_search: Search the code by its meaning.
  query* str len>=1 -> query                    # The text to search for.
  target_directories* str[] -> paths            # Folders to search in; empty for all.
  data: query=args.query, mode=data.method,
    hits=[dict(path=own.path, start_line=own.line, end_line=own.end_line, preview=own.preview, score=own.score)
    for own in data.hits]
run_terminal_cmd = exec: Run a shell command in the workspace, in a sandbox.
  command* str len>=1 -> command                # The command.
  is_background bool=false -> background        # Return at once; the command continues.
  data: command=args.command, cwd=".", exit_code=data.exit_code, output=data.output,
    **(dict(session_id=data.session_id, pid=surface.find_pid(data.session_id)) if data.session_id else {})
display = display: Show the person something while you work.
  message str -> content                        # The older name of content.
  content str -> content                        # Markdown, at most 10,000 characters; required.
  level str=info -> level                       # info, success, warning, error or progress.
  title str -> title                            # A few words above it.
  explanation str -> thought                    # The older name of thought.
  thought str -> thought                        # Why you show it.
  evidence str[] -> evidence                    # What it rests on.
  data: displayed=True, length=len(args.content or args.message), level=data.level,
    truncated=len(args.content or args.message) > data.characters
read_lints = code_lint lsp_lint: List the problems of files.
  paths* str[] -> paths                         # The files.
  data: items=[dict(path=own.file, line=own.line, character=own.column, severity=own.severity,
    message=f"{own.rule}: {own.message}" if own.rule else own.message, source=own.source) for own in data.findings]
update_memory = memory: Note something about the workspace for later sessions.
  action* create|update|delete -> action        # What to do.
  title str -> title                            # What it is about, in one line.
  knowledge_to_store str -> content             # The note.
  existing_knowledge_id str -> id               # The note to update or delete.
  data: id=data.notes[0].id, action=args.action
todo_write = todo: Replace the list of steps.
  todos* Todo[] -> items                        # The whole list.
  data: todos=args.todos
"""


def _patch(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    if not given:
        is_other = args.old is not None or args.new is not None
        meant = "; old and new are for another tool, write a patch of them" if is_other else ""
        raise ToolError("INVALID_ARGUMENT", f"apply_patch: patch_text is required{meant}")
    return "apply_patch", given


def _grep(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    return ("search_text", {**given, "multiline": True}) if args.multiline else ("grep", given)


def _read_lints(_: Any, given: dict[str, Any], surface: Surface) -> Canonical:
    """code_lint. lsp_lint also returns what lsp_diagnostics would, so it stands in where that could be called."""
    return ("lsp_lint" if surface.is_allowed("lsp_diagnostics", given) else "code_lint"), given


def _display(_: Any, given: dict[str, Any], __: Surface) -> Canonical:
    shown = {name: value for name, value in given.items() if value}
    if "content" not in shown:
        raise ToolError("INVALID_ARGUMENT", "display: content is required and must not be empty")
    level = given["level"] if given["level"] in _LEVELS else "info"
    return "display", {**shown, "content": shown["content"][:10_000], "level": level}


def _show_listing(one: Answered) -> Shown:
    is_ignored = build_path_filter(one.args.ignore_globs or ())
    items = [
        {"name": entry.path, "is_dir": entry.kind == "directory", "size_bytes": entry.size}
        for entry in one.data.entries
        if not is_ignored(entry.path)
    ]
    return Shown({"path": one.data.path, "items": items})


def _describe_details(one: Answered) -> dict[str, Any]:
    """Details of an error, with the decision in clude's words: REQUIRE_CONFIRMATION or DENY."""
    error, given = one.result.error, dict(get_details(one.result.error))
    is_denied = "rule" in given or one.code == "PERMISSION_DENIED"
    if not given and not is_denied:
        return {"problems": error.details} if error is not None and error.details else {}
    reason = given.get("reason", one.message)
    if one.code == "PERMISSION_REQUIRED":
        scope = next((_SCOPES[kind] for kind in reversed(given.get("answers", ())) if kind in _SCOPES), "single_action")
        decision = {"decision": "REQUIRE_CONFIRMATION", "scope": scope, "reason": reason}
        return {"decision": decision, "request_id": given.get("id")}
    if is_denied:
        given["decision"] = {"decision": "DENY", "code": _CODES[one.code], "reason": reason}
    return given


def _render(one: Answered, shown: Shown) -> DialectAnswer:
    result, payload, failure = one.result, None, None
    if one.code:
        data = {} if result.data is None else {"payload": result.data}
        code = _CODES[one.code]
        if one.code == "INVALID_ARGUMENT" and one.args is not None:
            code = _INVALID.get(one.tool.name, code)
        failure = {"code": code, "message": one.message, "details": _describe_details(one) | data}
    else:
        meta = {**list_extras(result), "decision": {"decision": "ALLOW"}}
        payload = {**(shown.data or {"content": one.content}), "meta": meta}
    told = {
        "tool_call_id": one.call_id,
        "ok": not one.code,
        "payload": payload,
        "error": failure,
        "artifacts": {
            "files_changed": result.artifacts.files_changed,
            "commands_run": result.artifacts.commands_run,
        },
        "duration_ms": round(result.duration_ms),
    }
    return DialectAnswer(None, told)


def _unwrap(call: dict[str, Any]) -> dict[str, Any]:
    """A call of the contract, whose timestamp is a number, or the short form of small models."""
    given = dict(call)
    if "tool" in given:
        given["name"] = given.pop("tool")
    moment = given.get("timestamp")
    if "timestamp" in given and type(moment) not in {int, float}:
        raise UsageError(f"timestamp must be a number of milliseconds, not {render_value(moment)}")
    if moment is not None:
        try:
            given["timestamp"] = datetime.fromtimestamp(moment / 1000, UTC)
        except (OverflowError, ValueError, OSError):
            raise UsageError(f"timestamp is out of range: {render_value(moment)}") from None
    return given


DIALECT = Dialect(
    name="clude",
    follows="tool protocol (2026-02)",
    unwrap=_unwrap,
    tools=parse_tools(
        _TOOLS,
        {
            "list_dir": Code(show=_show_listing),
            "apply_patch": Code(_patch),
            "grep": Code(_grep),
            "read_lints": Code(_read_lints),
            "display": Code(_display),
        },
    ),
    render=_render,
)
