"""Companions and kill -9: what is said stands with its result or not at all; of a note it is told that nobody knows."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from handrail import Done, Handrail, Parked, ToolCall
from handrail.protocol.events import Display, Event, get_event_kind
from handrail.protocol.schema import build_wire_schemas
from handrail.protocol.wire import encode
from handrail.settings import Settings
from handrail.settings.model import Tools

ON = Settings(tools=Tools(enable=("display", "question", "todo", "memory")))
NOTE = {"action": "create", "title": "Tests", "content": "make test"}


def call(name: str, args: Any, call_id: str = "c1") -> ToolCall:
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id="t", timestamp=datetime.now(UTC))


_KILLED = """
import json, os, sys
from tests.runtime.test_companions_interrupted import ON, call
from handrail import Handrail
workspace, state, name, args, moment = sys.argv[1:]
rail = Handrail(workspace, state_dir=state, session="s", settings=ON, mode="full")
def profile(frame, event, what):
    if event == "c_return" and what is os.replace and "/.memories/" in str(frame.f_locals.get("path")):
        os.kill(os.getpid(), 9)
if moment == "renamed":
    sys.setprofile(profile)
else:
    rail.subscribe(lambda event: type(event).__name__ == moment and os.kill(os.getpid(), 9))
rail.batch([call(name, json.loads(args))])
"""


@pytest.fixture
def killed(workspace: Path, tmp_path: Path) -> Callable[[str, Any, str], None]:
    """Makes a call in a process of its own, which is killed at a moment of it."""

    def run(name: str, args: Any, moment: str) -> None:
        words = (str(workspace), str(tmp_path / "state"), name, encode(args).decode(), moment)
        assert subprocess.run([sys.executable, "-c", _KILLED, *words], check=False).returncode == -9

    return run


def displayed(one: Handrail) -> int:
    return sum(isinstance(event, Display) for event in one.events())


@pytest.mark.parametrize("moment", ["Display", "ToolCallEnd"])
def test_who_saw_it_shown_has_its_result_too_and_it_is_shown_once(
    rail: Callable[..., Handrail], killed: Callable[..., None], moment: str
) -> None:
    killed("display", {"content": "hello"}, moment)
    one = rail(settings=ON, session="s")
    assert displayed(one) == 1
    outcome = one.batch([call("display", {"content": "hello"})])
    assert isinstance(outcome, Done)
    assert outcome.results[0].ok
    assert displayed(one) == 1


@pytest.mark.parametrize(("moment", "notes"), [("ToolCallRunning", 0), ("renamed", 1), ("ToolCallEnd", 1)])
def test_a_note_is_there_wholly_or_not_at_all_and_never_twice(
    rail: Callable[..., Handrail], killed: Callable[..., None], moment: str, notes: int
) -> None:
    killed("memory", NOTE, moment)
    one = rail(settings=ON, session="s", mode="full")
    assert [note.content for note in one.memories()] == ["make test"] * notes
    outcome = one.batch([call("memory", NOTE)])
    assert isinstance(outcome, Done)
    error = outcome.results[0].error
    assert (error.code if error else None) == (None if moment == "ToolCallEnd" else "INTERRUPTED")
    assert moment == "ToolCallEnd" or "Check before you repeat it" in outcome.results[0].content
    assert len(one.memories()) == notes


def test_every_event_of_a_session_with_companions_is_valid_by_its_schema(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON, mode="ask", on_permission=lambda _: None)
    one.call("display", {"content": "x", "title": "t", "thought": "why", "evidence": ["a"]})
    one.call("todo", {"items": [{"text": "a", "status": "active"}]})
    one.batch([call("question", {"question": "?", "options": ["a", "b"], "multiple": True}, "q1")])
    one.reply("q1", "a")
    one.batch([call("question", {"question": "?", "options": []}, "q2")])
    one.reply("q2", None)
    waits = one.batch([call("memory", NOTE, "m1")])
    assert isinstance(waits, Parked)
    one.answer(waits.requests[0], "once")
    schemas = build_wire_schemas()
    seen: set[str] = set()
    for event in one.events():
        assert isinstance(event, Event)
        seen.add(get_event_kind(event))
        Draft202012Validator(schemas[f"event.{get_event_kind(event)}"]).validate(json.loads(encode(event)))
    assert {"display", "tool_call.question-required", "tool_call.error"} <= seen


def test_what_is_only_said_does_not_keep_a_later_command_from_being_tried(
    rail: Callable[..., Handrail], workspace: Path
) -> None:
    one = rail(settings=ON, mode="ask", on_permission=lambda _: None)
    writes = call("exec", {"command": "touch made"}, "c2")
    waits = one.batch([call("display", {"content": "x"}), writes])
    assert isinstance(waits, Parked)
    alone = one.batch([call("exec", {"command": "touch made"}, "c3")])
    assert isinstance(alone, Parked)
    previews = [parked.requests[0].preview for parked in (waits, alone)]
    assert previews[0] is not None
    assert previews[1] is not None
    assert previews[0].kind == previews[1].kind
    assert not (workspace / "made").exists()
