"""The dialect of DeepChat: canonical names, its own answers."""

from typing import Any

from msgspec import to_builtins

from handrail.dialects.dialect import Answered, Dialect, DialectAnswer, DialectTool
from handrail.dialects.parameters import may, need, rows
from handrail.dialects.render import list_extras

_SHARED = ("read", "write", "edit", "find", "grep", "ls", "exec", "process", "skill_list", "skill_control")
_OPTION = rows(label=need(str, "The reply, at most 30 characters.", max_length=30), description=may(str))


def _render(one: Answered, _: Any) -> DialectAnswer:
    result = one.result
    if result.error is not None:
        error = {"code": result.error.code, "message": result.error.message, "recoverable": result.error.retryable}
        told: dict[str, Any] = {"ok": False, "error": error, "meta": list_extras(result)}
        if result.data is not None:
            told["data"] = to_builtins(result.data)
        return DialectAnswer(result.error.message, {"content": result.content, "rawData": {"toolResult": told}})
    meta = list_extras(result) | {"truncated": result.meta.truncated}
    if result.artifacts.files_changed:
        meta["affectedPaths"] = list(result.artifacts.files_changed)
    if process := getattr(result.data, "session_id", None):
        meta["sessionId"] = process
    told = {"ok": True, "summary": result.summary, "data": to_builtins(result.data), "meta": meta}
    return DialectAnswer(result.content, {"content": result.content, "rawData": {"toolResult": told}})


def _ask(args: Any, _: Any) -> tuple[str, dict[str, Any]]:
    options = [option.label for option in args.options]
    described = [f"{option.label}: {option.description}" for option in args.options if option.description]
    question = "\n".join((args.question, *described))
    return "question", {"question": question, "options": options, "multiple": args.multiple, "custom": args.custom}


DIALECT = Dialect(
    name="deepchat",
    follows="Agent Tooling V2",
    keeps_canonical=True,
    tools=(
        *(DialectTool(name=name, about="", to=(name,)) for name in _SHARED),
        DialectTool(
            name="deepchat_question",
            about="Ask the person one question and wait for the reply. It must be the only call of its message.",
            params={
                "question": need(str, "The question.", min_length=1, max_length=500),
                "options": need(_OPTION, "Replies to choose from.", min_length=1, max_length=10),
                "multiple": may(bool, False, "Whether several options may be chosen."),
                "custom": may(bool, False, "Whether a reply in own words is welcome too."),
            },
            to=("question",),
            call=_ask,
        ),
    ),
    render=_render,
)
