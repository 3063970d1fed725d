"""The dialect of DeepChat: canonical names, its own answers."""

from typing import Any

from handrail.dialects.dialect import Answered, Canonical, Code, Dialect, DialectAnswer, DialectTool, Shown, Surface
from handrail.dialects.render import list_extras
from handrail.dialects.table import parse_tools
from handrail.dialects.translation import build_question

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
    result, error = one.result, one.result.error
    meta, told = list_extras(result), dict[str, Any](ok=error is None)
    if error is not None:
        message = "User denied the request." if error.code == "PERMISSION_DENIED" else error.message
        told["error"] = {"code": error.code, "message": message, "recoverable": error.retryable}
    else:
        told["summary"] = result.summary
        process = getattr(result.data, "session_id", None) or getattr(getattr(result.data, "process", None), "id", None)
        if process is not None:
            meta["sessionId"] = process
        if result.artifacts.files_changed:
            meta["affectedPaths"] = list(result.artifacts.files_changed)
    if error is None or result.data is not None:
        told["data"] = result.data
    text = one.content if error is None else error.message
    return DialectAnswer(text, {"content": one.content, "rawData": {"toolResult": told | {"meta": meta}}})


DIALECT = Dialect(
    name="deepchat",
    follows="Agent Tooling V2",
    tools=(
        *(DialectTool(name=name, to=(name,)) for name in _SHARED),
        *parse_tools(_TOOLS, {"deepchat_question": Code(_ask)}),
    ),
    render=_render,
)
