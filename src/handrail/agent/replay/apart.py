"""How a replay is kept away from everything but its copy: what it may use, and which calls are not made again."""

from typing import Any

from msgspec.structs import replace

from handrail.agent.replay.confining import confine_settings
from handrail.agent.replay.recorded import RecordedCall, Recording
from handrail.protocol.decisions import PathFact
from handrail.settings import LoadedSettings

BY_PERSON = "undo"
_CUT_OFF = frozenset({"INTERRUPTED", "CANCELLED", "TIMEOUT"})
_OWN_NOTES, _ASKS = "memory", "question"


def isolate_settings(settings: LoadedSettings, recording: Recording) -> LoadedSettings:
    """With every tool that was offered then, as far as calls show it; with no folder to write to but the copy; and with
    commands only in a sandbox that holds them."""
    held = confine_settings(settings)
    old = held.settings
    named = {one.call.name for one in recording.calls if has_offered_tool(one)} - {BY_PERSON}
    tools = replace(old.tools, enable=tuple(sorted({*old.tools.enable, *named})))
    return replace(held, settings=replace(old, tools=tools))


def has_offered_tool(one: RecordedCall) -> bool:
    """Whether there was such a tool then."""
    result = one.result
    return (
        result is not None and result.version != "0" and (result.error is None or result.error.code != "UNKNOWN_TOOL")
    )


def find_skip_reason(one: RecordedCall) -> str:  # noqa: PLR0911  one a reason
    """Why a call is not made again, whatever tools there are; empty where it is."""
    result = one.result
    if result is None:
        return "it has no result"
    if one.call.name == _ASKS:
        return ""  # nothing cuts it off: what has no reply is put aside, and that can be done again
    if result.error is not None and result.error.code in _CUT_OFF:
        return "it was cut off"
    if one.call.name == _OWN_NOTES:
        return "the notes of now are not those of then"
    if one.call.name == "process" or one.args.get("background") or one.args.get("yieldMs"):
        return "what goes on by itself is not the same twice"
    if any(_is_elsewhere(fact, result) for fact in one.facts.paths):
        return "it is about files outside the workspace, of which there is no copy"
    return "it could reach hosts" if result.meta.sandbox is not None and result.meta.sandbox.net != "none" else ""


def _is_elsewhere(fact: PathFact, result: Any) -> bool:
    return fact.real.startswith("/") if fact.real is not None else result.ok and fact.outside is not None
