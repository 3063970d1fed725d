"""The dialect of DeepChat: canonical names, its own answers, its stream of events."""

from collections import Counter
from typing import Any, cast

from msgspec import to_builtins

from handrail.dialects.dialect import Answered, Canonical, Code, Dialect, DialectAnswer, DialectTool, Shown
from handrail.dialects.render import list_extras
from handrail.dialects.session_view import Surface
from handrail.dialects.table import parse_tools
from handrail.dialects.translation import build_question
from handrail.protocol import events
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import OWN_SERVER
from handrail.protocol.wire import encode

_SHARED = ("read", "write", "edit", "find", "grep", "ls", "exec", "process", "skill_list", "skill_control")
_TOOLS = """
Option:
  label* str len<=30        # The reply, at most 30 characters.
  description str
deepchat_question = question: Ask the person one question and wait. It must be the only call of its message.
  question* str len>=1 len<=500           # The question.
  options* Option[] len>=1 len<=10        # Replies to choose from.
  multiple bool=false                     # Whether several options may be chosen.
  custom bool=false                       # Whether a reply in own words is welcome too.
"""


def _ask(args: Any, _: Any, __: Surface) -> Canonical:
    return "question", build_question(args.question, args.options, multiple=args.multiple, custom=args.custom)


def _render(one: Answered, _: Shown) -> DialectAnswer:
    message = one.content if one.result.error is None else one.message
    return DialectAnswer(message, {"content": one.content, "rawData": {"toolResult": _build_tool_result(one.result)}})


def _build_tool_result(result: ToolResult[Any]) -> dict[str, Any]:
    """The result as DeepChat stores it."""
    error, meta, told = result.error, list_extras(result), dict[str, Any](ok=result.error is None)
    data: Any = to_builtins(result.data)
    if error is not None:
        message = "User denied the request." if error.code == "PERMISSION_DENIED" else error.message
        told["error"] = {"code": error.code, "message": message, "recoverable": error.retryable}
    else:
        told["summary"] = result.summary
        known = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        process = known.get("process")
        process_id = cast("Any", process).get("id") if isinstance(process, dict) else known.get("sessionId")
        meta |= {} if process_id is None else {"sessionId": process_id}
        if result.artifacts.files_changed:
            meta["affectedPaths"] = list(result.artifacts.files_changed)
    if error is None or data is not None:
        told["data"] = data
    return told | {"meta": meta}


DIALECT = Dialect(
    name="deepchat",
    follows="Agent Tooling V2",
    tools=(
        *(DialectTool(name=name, to=(name,)) for name in _SHARED),
        *parse_tools(_TOOLS, {"deepchat_question": Code(_ask)}),
    ),
    render=_render,
)

# Events

_STATES = {"permission-granted": "running", "permission-denied": "error"}
"""DeepChat has seven states of a call. An answer is the state that it leads to."""
EVENTS = """
Head: eventId* str; conversationId* str; seq* int
Text: +Head; content str; reasoning_content str
Result: toolResult* object
Request: toolName* str; serverName* str; permissionType* read|write|all|command; description* str; requestId* str
Call: +Head; tool_call* start|running|update|end|error|permission-required|question-required; tool_call_id* str
  tool_call_name* str; tool_call_params* str; tool_call_server_name* str; tool_call_response str
  tool_call_response_raw Result; permission_request Request; question_request object
Failed: +Head; error* str
Ended: +Head; userStop* bool
ResponseMessage: event* "STREAM_EVENTS.RESPONSE"; data* Text
CallMessage: event* "STREAM_EVENTS.RESPONSE"; data* Call
ErrorMessage: event* "STREAM_EVENTS.ERROR"; data* Failed
EndMessage: event* "STREAM_EVENTS.END"; data* Ended
"""
_PERMISSION_TYPES = {"read": "read", "write": "write", "command": "command"}


class DeepChatEvents:
    """Keeps one `eventId` for a whole turn, since DeepChat finds the growing answer by it.

    DeepChat also expects the sum of tokens, and the arguments of a call in each of its messages."""

    def __init__(self, _workspace: str = "") -> None:
        self._turn: str | None = None
        self._tokens = Counter[str]()
        self._params: dict[str, str] = {}
        """Arguments of calls without a result."""

    def render(self, event: events.Event) -> tuple[dict[str, Any], ...]:
        """One message, two if a limit ended the turn, or none for an event that DeepChat lacks."""
        if isinstance(event, events.User):
            self._turn = event.message_id
        head = {"eventId": self._turn or event.session_id, "conversationId": event.session_id, "seq": event.seq}
        data = self._render_data(event)
        messages = [(event.channel, data)] if data is not None else []
        if isinstance(event, events.End) and event.reason == "limit":
            messages.insert(0, ("response", {"maximum_tool_calls_reached": True}))
        return tuple({"event": f"STREAM_EVENTS.{channel.upper()}", "data": head | data} for channel, data in messages)

    def _render_data(self, event: events.Event) -> dict[str, Any] | None:  # noqa: PLR0911  one a kind
        match event:
            case events.Text():
                return {"messageId": event.message_id, "content": event.text}
            case events.Reasoning():
                return {"messageId": event.message_id, "reasoning_content": event.text}
            case events.Display():
                return {"content": event.content, "display": {"level": event.level, "title": event.title}}
            case events.Usage(input_tokens=read, output_tokens=written):
                self._tokens.update(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)
                return {"totalUsage": dict(self._tokens)}
            case events.Error():
                return {"error": event.message, "code": event.code, "retryable": event.retryable}
            case events.End():
                return {"reason": event.reason, "userStop": event.reason == "cancelled"}
            case events.ToolEvent() if not isinstance(event, events.ChangeEvent):
                return self._render_call(event)
            case _:
                return None

    def _render_call(self, event: events.ToolEvent) -> dict[str, Any]:
        call_id, kind = event.tool_call_id, events.get_event_kind(event).removeprefix("tool_call.")
        if isinstance(event, events.ToolCallStart):
            self._params[call_id] = encode(event.args).decode()
        head = {
            "tool_call": _STATES.get(kind, kind),
            "tool_call_id": call_id,
            "tool_call_name": event.tool_name or event.tool_call_name,
            "tool_call_params": self._params.get(call_id, ""),
            "tool_call_server_name": event.server_name or OWN_SERVER,
        }
        match event:
            case events.ToolCallUpdate():
                news = {"tool_call_response": event.output or "", "title": event.title, "metadata": event.metadata}
            case events.ToolCallEnd(result=result) | events.ToolCallError(result=result):
                self._params.pop(call_id, None)
                raw = {"toolResult": _build_tool_result(result)}
                news = {"tool_call_response": result.content, "tool_call_response_raw": raw}
            case events.ToolCallQuestionRequired():
                names = ("question", "options", "multiple", "custom")
                news = {"question_request": {name: to_builtins(getattr(event, name)) for name in names}}
            case events.PermissionEvent(permission_request=request):
                kinds = {"permissionType": _PERMISSION_TYPES.get(request.permission_type, "all")}
                news = {"permission_request": to_builtins(request) | {"requestId": request.id} | kinds}
                news |= {"tool_call_response": "User denied the request."} if kind == "permission-denied" else {}
            case _:
                news = {}
        return head | news
