"""The dialect of DeepChat: canonical names, its own answers."""

from typing import Any

from handrail.dialects.deepchat_events import build_tool_result
from handrail.dialects.dialect import Answered, Canonical, Code, Dialect, DialectAnswer, DialectTool, Shown
from handrail.dialects.session_view import Surface
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
    message = one.content if one.result.error is None else one.message
    return DialectAnswer(message, {"content": one.content, "rawData": {"toolResult": build_tool_result(one.result)}})


DIALECT = Dialect(
    name="deepchat",
    follows="Agent Tooling V2",
    tools=(
        *(DialectTool(name=name, to=(name,)) for name in _SHARED),
        *parse_tools(_TOOLS, {"deepchat_question": Code(_ask)}),
    ),
    render=_render,
)
