"""The dialect of one-thing: tools, answers, its stream of events."""

from posixpath import join, normpath
from typing import Any

from msgspec import Struct, to_builtins

from handrail.dialects.dialect import NOTHING, Answered, Canonical, Code, Dialect, DialectAnswer, Shown
from handrail.dialects.facts import group_matches, list_paths, number_page
from handrail.dialects.render import add_block, drop_none, list_extras
from handrail.dialects.session_view import Surface
from handrail.dialects.table import parse_tools
from handrail.dialects.translation import edit_or_create, filter_type, search_type
from handrail.protocol import events
from handrail.protocol.titles import describe_running_call

_MAX_RESULTS = 100
_TOOLS = """
File:
  file_path* str -> path                                    # The absolute path of the file.
bash = exec: Runs a shell command in the workspace, in a sandbox.
  command* str len>=1 -> command                            # The command.
  working_directory str -> cwd                              # The folder to run it in.
  timeout number=120000 >=1 -> timeoutMs[100..600000]       # Milliseconds after which it is stopped.
read = read +File: Reads a file. Lines are numbered.
  offset number=1 >=1 -> offset                             # The first line, from 1.
  limit number=2000 >=1 -> limit[1..10000]                  # The number of lines.
  title: Read {name} ({returned} lines)
  data: filePath=path, lineCount=returned, offset=first_line, limit=int(args.limit), truncated=has_more,
    isBinary=is_picture, fileSize=data.size
write = write +File: Writes a file. It replaces an existing one.
  content* str -> content                                   # The whole content.
  title: {change.capitalize()}d {name}
  data: filePath=path, bytesWritten=data.size, lineCount=written.count(chr(10)) + 1, created=data.created
edit = edit write@write +File: Replaces an exact text in a file. It must be unique, unless replace_all is set.
  old_string* str -> oldText                                # The text to replace; empty creates the file.
  new_string* str -> newText                                # The text to replace it with.
  replace_all bool=false -> replaceAll                      # Replace all occurrences.
  title: Edited {name}
  data: filePath=path, diff=data.diff, **count_changes(data.diff)
glob = find: Finds files by a glob. The newest come first.
  pattern* str len>=1 -> pattern                            # The glob.
  path str -> path                                          # The folder to search in.
grep = grep maxResults=1000: Searches file contents by a regular expression. The newest files come first.
  pattern* str len>=1 -> pattern                            # The regular expression.
  path str -> path                                          # File or folder to search in.
  glob str len>=1 -> filePattern                            # Glob of the files to search.
  type str                                                  # File type to search: js, py, rust, go, java …
  case_insensitive bool=false -> !caseSensitive             # Ignore case.
  context_lines number >=0 -> contextLines[0..20]           # Lines before and after each match.
"""


def _grep(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    return "grep", search_type(args, given)


def _show_read(one: Answered) -> Shown:
    return Shown(title=f"Read {one.name}", text=one.content) if one.is_picture else Shown(text=number_page(one))


def _show_command(one: Answered) -> Shown:
    data, command = one.data, one.args.command
    failed = data.exit_code != 0
    why = "timeout" if one.code == "TIMEOUT" else f"exit {data.exit_code}"
    title = f"Failed ({why}): {command[:50]}..." if failed else f"Executed: {command[:50]}"
    notes = [f"Exit code: {data.exit_code}"] if failed and not one.code else []
    if one.result.meta.output is not None:
        notes.append(f"Output was truncated; all of it: {one.result.meta.output}")
    if one.code:
        notes.append(one.message)
    output = add_block((data.output or "(no output)").rstrip("\n"), "bash_metadata", notes) if notes else data.output
    folder = one.surface.to_absolute(one.args.working_directory or ".")
    metadata = {"command": command, "workingDirectory": folder, "exitCode": data.exit_code, "output": data.output}
    return Shown(metadata, title, output or "(no output)")


def _show_glob(one: Answered) -> Shown:
    found = one.surface.sort_newest(one.data.files)
    files = found[:_MAX_RESULTS]
    output = list_paths(one, files)
    return Shown(_describe_search(one, "count", len(files), len(found)), f"Found {len(files)} file(s)", output)


def _show_grep(one: Answered) -> Shown:
    matches = filter_type(one, one.data.matches)
    order = {path: place for place, path in enumerate(one.surface.sort_newest(tuple({m.path for m in matches})))}
    matches.sort(key=lambda match: (order[match.path], match.line))
    shown = matches[:_MAX_RESULTS]
    output = group_matches(one, shown, "  {}: {}", "  {}- {}", "\n") or "No matches found"
    return Shown(_describe_search(one, "matches", len(shown), len(matches)), f"Found {len(shown)} match(es)", output)


def _describe_search(one: Answered, key: str, shown: int, found: int) -> dict[str, Any]:
    metadata = {"pattern": one.args.pattern, "searchPath": one.path, key: shown, "order": "newest"}
    return metadata | {"truncated": one.truncated or found > shown}


def _render(one: Answered, shown: Shown) -> DialectAnswer:
    result = one.result
    if one.code == "BINARY_FILE" and one.args is not None:
        path = one.surface.to_absolute(one.args.file_path)
        metadata = {"filePath": path, "lineCount": 0, "offset": 1, "limit": int(one.args.limit), "truncated": False}
        shown = Shown(metadata | {"isBinary": True}, f"Read {path.rpartition('/')[2]}", one.message)
    if one.code and shown is NOTHING:
        rejected = "The user rejected permission to use this specific tool call. " * (one.code == "PERMISSION_DENIED")
        text = rejected + one.message
        return DialectAnswer(text, {"success": False, "error": text, "metadata": list_extras(result)})
    output = one.content if shown.text is None else shown.text
    told = {
        "title": shown.title or result.title,
        "output": output,
        "metadata": {**shown.data, "handrail": list_extras(result)},
        "attachments": [
            drop_none(type=file.type, path=one.surface.to_absolute(file.path), content=file.content)
            for file in result.attachments
        ],
    }
    for warning in result.warnings:
        output += f"\n[{warning}]"
    return DialectAnswer(output, {"success": True, "data": told})


def _invalid(name: str, texts: tuple[str, ...]) -> str:
    return "\n".join((f"Invalid {name} parameters:", *(f"- {text.partition(' ')[0]}: {text}" for text in texts)))


DIALECT = Dialect(
    name="onething",
    follows="current tool system (2025-12-27)",
    unknown='Tool "{name}" not found',
    invalid=_invalid,
    tools=parse_tools(
        _TOOLS,
        {
            "bash": Code(show=_show_command),
            "read": Code(show=_show_read),
            "edit": Code(edit_or_create),
            "glob": Code(show=_show_glob),
            "grep": Code(_grep, _show_grep),
        },
    ),
    render=_render,
)

# Events

_MAX_OUTPUT_CHARS = 30_000
_STATUS = {
    "start": "pending",
    "running": "running",
    "update": "running",
    "end": "completed",
    "error": "failed",
    "permission-required": "awaiting-confirmation",
    "permission-granted": "running",
    "permission-denied": "failed",
    "question-required": "awaiting-confirmation",
}
_TOOL_IDS = {"exec": "bash", "find": "glob", "search_text": "grep"}
EVENTS = """
Request: id* str; type* str; pattern* str[]; sessionId* str; messageId str; callId* str; title* str; metadata* object
  createdAt* int
Metadata: status* pending|running|completed|failed|awaiting-confirmation; tool* str; permission_request Request
Updates: title* str; metadata* Metadata
Payload: sessionId* str; messageId str; stepId* str; updates* Updates
Message: type* "STEP_UPDATED"; payload* Payload
"""


class _Step(Struct):
    message_id: str | None = None
    title: str = ""
    output: str = ""


class OneThingEvents:
    """Remembers the message, the title and the output of each running call, since not every event has them.

    `workspace`: its absolute path, for absolute paths."""

    def __init__(self, workspace: str = "") -> None:
        self._workspace = workspace
        self._steps: dict[str, _Step] = {}

    def render(self, event: events.Event) -> tuple[dict[str, Any], ...]:
        """One message about a call, and none about other events."""
        if not isinstance(event, events.ToolEvent) or isinstance(event, events.ChangeEvent):
            return ()
        call_id, name = event.tool_call_id, event.tool_call_name
        step = self._steps.setdefault(call_id, _Step(title=name))
        title, more = self._render_news(event, step)
        status = _STATUS[events.get_event_kind(event).removeprefix("tool_call.")]
        updates = {"title": title, "metadata": {"status": status, "tool": _TOOL_IDS.get(name, name), **more}}
        payload = {"sessionId": event.session_id, "messageId": step.message_id, "stepId": call_id, "updates": updates}
        return ({"type": "STEP_UPDATED", "payload": payload},)

    def _render_news(self, event: events.ToolEvent, step: _Step) -> tuple[str, dict[str, Any]]:
        """The title and the new metadata."""
        name = event.tool_call_name
        running = {"exitCode": -1} if name == "exec" else {}
        match event:
            case events.ToolCallStart():
                given: Any = event.args
                path = given.get("path") if isinstance(given, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
                file = {"filePath": self._to_absolute(path)} if isinstance(path, str) else {}
                step.message_id, step.title = event.message_id, describe_running_call(name, given) or name
                return step.title, {"input": given, **file, **running}
            case events.ToolCallUpdate():
                step.title = event.title or step.title
                step.output = (step.output + (event.output or ""))[-_MAX_OUTPUT_CHARS:]
                return step.title, {"output": step.output, **running, **(event.metadata or {})}
            case events.ToolCallEnd(result=result) | events.ToolCallError(result=result):
                del self._steps[event.tool_call_id]
                outcome = {"output": result.content, "summary": result.summary, **to_builtins(result.meta)}
                return result.title, outcome | drop_none(error=to_builtins(result.error))
            case events.PermissionEvent():
                request = self._render_request(event, step.message_id)
                return request["title"], {"permission_request": request}
            case events.ToolCallQuestionRequired():
                asked = {"options": list(event.options), "multiple": event.multiple, "custom": event.custom}
                return event.question, asked
            case _:
                return step.title, running

    def _render_request(self, event: events.PermissionEvent, message_id: str | None) -> dict[str, Any]:
        """The request in one-thing's terms: `external_directory`, `bash`, `edit`, or another kind."""
        request, kind = event.permission_request, event.permission_request.s4_kind
        metadata: dict[str, Any] = {"handrail": to_builtins(request)}
        if request.command is not None and kind == "bash":
            pattern = [f"{' '.join(request.command.split()[:2])} *"]
            metadata |= {"command": request.command, "pattern": pattern[0]}
        else:
            pattern = list(request.pattern or request.paths)
            path = self._to_absolute(request.paths[0]) if request.paths else ""
            operation = request.access or _TOOL_IDS.get(request.tool_name, request.tool_name)
            metadata |= {"filePath": path, "boundary": self._workspace, "operation": operation}
        return {
            "id": request.id,
            "type": kind,
            "pattern": pattern,
            "sessionId": request.session_id,
            "messageId": message_id,
            "callId": request.tool_call_id,
            "title": request.description,
            "metadata": metadata,
            "createdAt": int(event.time.timestamp() * 1000),
        }

    def _to_absolute(self, path: str) -> str:
        return normpath(join(self._workspace, path)) if self._workspace else path
