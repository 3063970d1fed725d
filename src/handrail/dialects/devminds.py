"""The dialect of DevMinds: tools in the restricted profile, its stream of events."""

import shlex
from typing import Any, cast

from msgspec import to_builtins

from handrail.dialects.dialect import Answered, Canonical, Code, Dialect, DialectAnswer, Shown
from handrail.dialects.render import drop_none, list_extras
from handrail.dialects.session_view import Surface
from handrail.dialects.table import parse_tools
from handrail.protocol import events
from handrail.protocol.errors import ToolError
from handrail.protocol.results import ToolResult

_FOLDERS = (".minds", ".tasklogs")
_NOTES = ("undo", "sandbox", "output", "limits")
_TOOLS = """
Sender: agent* str; taskId* str
Receiver: type* user|agent; agent str; taskId str
Context: refs str[]=[]; hint str
workspace.fs = read write append: Read, write or append a file below .minds or .tasklogs.
  op* read|write|append                     # What to do.
  path* Path                                # A text or a list of names; below .minds unless it names a folder.
  content str -> content                    # The text; for write and append.
workspace.shell = exec: Run one of a few listed commands, such as ls, cat and git status.
  cmd* str len>=1                           # The program, from the list.
  args str[]=[]                             # Its arguments.
  cwd str -> cwd                            # The folder to run it in; the workspace if not given.
  data: stdout=stdout, stderr=data.stderr or "", exitCode=data.exit_code
ask.request = question @request: Ask the person and wait for the answer.
  from* Sender                              # Who asks.
  to* Receiver                              # Who is asked.
  question* str len>=1 len<=4000            # The question.
  context Context                           # What it is about.
  timeoutMs int=120000                      # Ignored: a question waits until a person answers.
"""


def _join_path(path: str | tuple[str, ...]) -> str:
    """A path below `.minds`, or below the folder that its first part names."""
    parts = path.split("/") if isinstance(path, str) else list(path)
    if not parts or any(part in {"", ".", ".."} or "/" in part for part in parts):
        message = "path: parts are names without /, and none is empty, . or ..; nothing was done"
        raise ToolError("POLICY_DENIED", message)
    return "/".join(parts if parts[0] in _FOLDERS else (_FOLDERS[0], *parts))


def _use_file(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    path = _join_path(args.path)
    if args.op == "read" and given:
        raise ToolError("INVALID_ARGUMENT", "workspace.fs: content is for write and append only")
    if args.op != "read" and not given:
        raise ToolError("INVALID_ARGUMENT", f"workspace.fs: content is required for {args.op}")
    return args.op, {"path": path, **given}


def _show_file(one: Answered) -> Shown:
    data = one.data
    if one.args.op == "read":
        mtime = data.mtime.isoformat().replace("+00:00", "Z") if data.mtime is not None else None
        return Shown({"text": one.content, "meta": {"mtime": mtime, "size": data.size}})
    size = data.bytes if one.args.op == "append" else data.size
    return Shown({"path": data.path, "bytes": size, "summary": one.result.summary})


def _run(args: Any, given: dict[str, Any], _: Surface) -> Canonical:
    return "exec", {"command": shlex.join([*args.cmd.split(), *args.args]), **given}


def _ask(args: Any, _: Any, __: Surface) -> Canonical:
    hint = [args.context.hint] if args.context is not None and args.context.hint else []
    return "question", {"question": "\n".join((args.question, *hint)), "options": [], "custom": True}


def _show_reply(one: Answered) -> Shown:
    answer = "\n".join((*one.data.chosen, *([one.data.text] if one.data.text else [])))
    reply = {"to": one.args.from_, "answer": answer, "inReplyTo": one.call_id}
    return Shown(reply | {"metadata": {"choices": one.data.chosen}})


def _render(one: Answered, shown: Shown) -> DialectAnswer:
    extras = list_extras(one.result)
    warnings: list[Any] = list(extras.pop("warnings", ()))
    answer: dict[str, Any] = {"ok": not one.code}
    if one.code:
        warnings.insert(0, {"code": one.code, "message": one.message} | drop_none(rule=extras.get("rule")))
    else:
        answer["result"] = shown.data or one.content
        notes = {name: extras[name] for name in _NOTES if name in extras}
        if notes := notes | ({"truncated": True} if one.truncated else {}):
            warnings.append({"code": "INFO", **notes})
    if warnings:
        answer["warnings"] = warnings
    return DialectAnswer(None, answer)


DIALECT = Dialect(
    name="devminds",
    follows="tools migration (2025-10)",
    is_restricted=True,
    splits_streams=True,
    unknown="unknown tool: {name}",
    tools=parse_tools(
        _TOOLS,
        {
            "workspace.fs": Code(_use_file, _show_file),
            "workspace.shell": Code(_run),
            "ask.request": Code(_ask, _show_reply),
        },
        Path=str | tuple[str, ...],
    ),
    render=_render,
)

# Events

_OPERATIONS = {"exec": "shell"}
_NAMES = {"exec": "workspace.shell", "read": "workspace.fs", "write": "workspace.fs", "append": "workspace.fs"}
_SHOWN = ("path", "cwd", "command", "pattern", "name", "action")
EVENTS = """
Warning: code* str; message* str
Delta: phase* start|progress; warning Warning
Said: operation* "message"; content* str
Output: operation* str; ok* bool; path str; summary* str; exitCode int; durationMs* number; limits* str[]
Error: message* str
Record: ts* str; taskId* str; agentId* str
DeltaMessage: +Record; type* "agent.run.delta"; payload* Delta
MessageMessage: +Record; type* "agent.run.output"; payload* Said
OutputMessage: +Record; type* "agent.run.output"; payload* Output
CancelledMessage: +Record; type* "agent.run.cancelled"; payload* object
ErrorMessage: +Record; type* "agent.run.error"; payload* Error
FinishedMessage: +Record; type* "agent.run.finished"; payload* object
"""


class DevMindsEvents:
    """Collects the text of a run. It is the content of the run's output."""

    def __init__(self, _workspace: str = "") -> None:
        self._texts: list[str] = []
        self._paths: dict[str, str] = {}
        """Paths of running calls, by their ids."""

    def render(self, event: events.Event) -> tuple[dict[str, Any], ...]:
        """One message, two at the end of a run, or none for an event that DevMinds lacks."""
        head = {"ts": event.time, "taskId": event.session_id, "agentId": "handrail"}
        payloads = self._render_call(event) if isinstance(event, events.ToolEvent) else self._render_run(event)
        return tuple(to_builtins(head | {"type": f"agent.run.{kind}", "payload": own}) for kind, own in payloads)

    def _render_run(self, event: events.Event) -> list[tuple[str, dict[str, Any]]]:  # noqa: PLR0911  one a kind
        match event:
            case events.User():
                self._texts.clear()
                return _build_delta("start", prompt=event.text)
            case events.Text():
                self._texts.append(event.text)
                return _build_delta(delta=event.text)
            case events.Reasoning():
                return _build_delta(reasoning=event.text)
            case events.Display():
                display = {"display": event.content, "level": event.level, "title": event.title}
                return _build_delta(metadata=display)
            case events.Error():
                return [("error", {"code": event.code, "message": event.message, "retryable": event.retryable})]
            case events.Warning():
                return _build_delta(warning={"code": event.code, "message": event.text}, toolCallId=event.tool_call_id)
            case events.End():
                content = "".join(self._texts)
                self._texts.clear()
                output = [("output", {"operation": "message", "content": content})] if content else []
                if event.reason == "cancelled":
                    return [*output, ("cancelled", {"calls": event.calls})]
                facts = {"reason": event.reason, "calls": event.calls, "filesChanged": list(event.files_changed)}
                return [*output, ("finished", facts)]
            case _:
                return []

    def _render_call(self, event: events.ToolEvent) -> list[tuple[str, dict[str, Any]]]:  # noqa: PLR0911  one a kind
        name, call_id = event.tool_call_name, event.tool_call_id
        head = {"operation": _OPERATIONS.get(name, name), "name": _NAMES.get(name, name), "toolCallId": call_id}
        match event:
            case events.ToolCallStart():
                given: Any = event.args
                args = _summarize_arguments(cast("dict[str, Any]", given)) if isinstance(given, dict) else {}
                path = args.get("path", args.get("cwd"))
                if path is not None:
                    self._paths[call_id] = path
                return _build_delta("start", **head, path=path, cmd=args.get("command"), args=args)
            case events.ToolCallRunning():
                return _build_delta(**head)
            case events.ToolCallUpdate():
                return _build_delta(**head, output=event.output, title=event.title, metadata=event.metadata)
            case events.PermissionEvent():
                kind = events.get_event_kind(event).removeprefix("tool_call.")
                metadata = {"permission": kind, "permission_request": event.permission_request}
                return _build_delta(**head, metadata=metadata)
            case events.ToolCallQuestionRequired():
                return _build_delta(**head, metadata={"question": event.question, "options": event.options})
            case events.ToolCallEnd(result=result) | events.ToolCallError(result=result):
                return [("output", self._render_output(result))]
            case _:
                return []

    def _render_output(self, result: ToolResult[Any]) -> dict[str, Any]:
        data: Any = to_builtins(result.data)
        changed = result.artifacts.files_changed
        output: dict[str, Any] = {
            "operation": _OPERATIONS.get(result.name, result.name),
            "toolCallId": result.tool_call_id,
            "ok": result.ok,
            "path": self._paths.pop(result.tool_call_id, None) or next(iter(changed), None),
            "summary": result.summary,
            "durationMs": result.duration_ms,
            "limits": result.meta.limits,
            "exitCode": cast("dict[str, Any]", data).get("exitCode") if isinstance(data, dict) else None,
        }
        return output | drop_none(warnings=result.warnings or None, error=result.error)


def _build_delta(phase: str = "progress", **payload: Any) -> list[tuple[str, dict[str, Any]]]:
    return [("delta", {"phase": phase, **drop_none(**payload)})]


def _summarize_arguments(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments without contents: of a text that is no place and no command only the length."""
    return {name: value if name in _SHOWN else _summarize_value(value) for name, value in args.items()}


def _summarize_value(value: Any) -> Any:
    if isinstance(value, str):
        return f"{len(value)} characters"
    return f"{len(cast('list[Any]', value))} item(s)" if isinstance(value, list | dict) else value
