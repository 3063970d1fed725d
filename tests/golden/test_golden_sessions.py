"""Sessions that older versions recorded, and this one: each loads, reads back as it was, goes on, and plays again."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bundles import read_bundle, unpack
from expectations import expected_of
from msgspec.structs import replace
from renderings import rendered
from server_sessions import OPEN, Tracker
from sessions import SETTINGS, TOOLS

from handrail import Agent, AsyncHandrail, Done, Handrail
from handrail.dialects.adapters import ADAPTERS
from handrail.mcp.calls import ClientCalls
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import KINDS, PermissionEvent, ToolEvent, decode_event, get_event_kind
from handrail.protocol.messages import AssistantMessage, Message, ResultsMessage
from handrail.protocol.results import ToolResult
from handrail.protocol.version import VERSION
from handrail.protocol.wire import encode
from handrail.replay.player import SessionReplay, make_start, play
from handrail.replay.session_record import Recording, read_recording
from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.settings import LoadedSettings
from handrail.state import StoredState, open_journal
from handrail.store.state_dir import StateFolder
from schemas import validate

HERE = Path(__file__).resolve().parent
FILES = sorted(HERE.glob("*/*.json"))
PLAYS = ("calls", "compacted", "forked", "killed", "left", "parked", "servers", "waiting", "work")
OURS = [file for file in FILES if file.parent.name.split("-")[0] == VERSION]
"""What this version recorded: at once, and as more came to it."""
every_session = pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
every_talk = pytest.mark.parametrize(
    "file",
    [file for file in FILES if read_bundle(file)["expected"]["talk"]],
    ids=lambda file: f"{file.parent.name}-{file.stem}",
)
WAITS = {"waiting": ("question",), "left": ("write",)}
"""What still waits for somebody when a session ends."""
REWORDED = {
    "The person refused.": "The user denied the request.",
    "Ask the person if you need it.": "Ask the user if you need it.",
    "Took back ": "Undid ",
}
"""Phrases in recorded results, and what this version says instead. Nothing else may differ."""
LINES = [ScriptedReply(text="Done.")] * 40
"""Whatever line the session is at, it is the last."""


class Unpacked:
    """A session in a folder of its own."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.bundle = read_bundle(file)
        self.workspace, self.state = unpack(self.bundle, folder)
        self.session: str = self.bundle["session"]

    @property
    def folder(self) -> str:
        return StateFolder(str(self.state)).session(str(self.workspace.resolve()), self.session)

    def options(self, **more: Any) -> dict[str, Any]:
        return {"state_dir": self.state, "session": self.session, "settings": SETTINGS, "tools": TOOLS, **more}

    def stored(self) -> list[Any]:
        """The events as they are in the file, read by nobody yet."""
        with open_journal(self.folder) as journal:
            return [json.loads(row[0]) for row in journal.database.rows("SELECT data FROM event ORDER BY seq", ())]

    def go_on(self, prompt: str | None = None) -> tuple[Any, list[Any]]:
        """The rest of the turn, and the talk afterwards."""

        async def turn() -> tuple[Any, list[Any]]:
            async with AsyncHandrail(self.workspace, **self.options(mode="auto")) as rail:
                agent = Agent(rail, ScriptedModel(LINES))
                came = await (agent.go_on() if prompt is None else agent.run(prompt))
                return came, [one.message for one in rail.conversation.messages()]

        return asyncio.run(turn())

    def replayed(self, folder: Path) -> SessionReplay:
        loaded = LoadedSettings(settings=SETTINGS, sources={})
        workspace = str(self.workspace.resolve())
        folder.mkdir()
        recording, state = reword(read_recording(self.folder)), StateFolder(str(self.state))
        start = make_start(str(folder), state, workspace, self.session, loaded, recording.observed)
        return play(recording, start, workspace, loaded)


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def one(file: Path) -> Unpacked:
        found = Unpacked(file, tmp_path / "golden")
        for name, value in found.bundle["environment"].items():
            monkeypatch.setenv(name, value)
        return found

    return one


@pytest.fixture
def newest(unpacked: Any) -> Any:
    return lambda name: unpacked(next(file for file in OURS if file.stem == name))


def test_this_version_has_recorded_its_sessions() -> None:
    assert sorted(file.stem for file in OURS) == sorted(PLAYS)


@every_session
def test_every_event_reads_back_as_it_was_stored_and_is_valid(unpacked: Any, file: Path) -> None:
    stored = unpacked(file).stored()
    assert stored
    for event in stored:
        assert_kept(event, again := json.loads(encode(decode_event(encode(event)))))
        validate(again)


@every_talk
def test_every_message_of_the_talk_reads_back_as_it_was_stored_and_is_valid(unpacked: Any, file: Path) -> None:
    with open_journal(unpacked(file).folder) as journal:
        rows = journal.database.rows("SELECT data FROM message ORDER BY number", ())
    for (data,) in rows:
        assert_kept(json.loads(data), again := json.loads(encode(msgspec.json.decode(data, type=Message))))
        validate(again, "message")


@every_session
def test_results_and_talk_read_back_as_they_were(unpacked: Any, file: Path) -> None:
    one = unpacked(file)
    assert json.loads(encode(expected_of(one.workspace, one.state, one.session))) == one.bundle["expected"]


@every_session
def test_the_audit_of_that_time_still_verifies(unpacked: Any, file: Path) -> None:
    assert not StoredState(str(unpacked(file).state)).verify().problems


@every_session
def test_events_have_their_channel_and_all_that_they_must_have(unpacked: Any, file: Path) -> None:
    for stored in unpacked(file).stored():
        event = decode_event(encode(stored))
        assert event.event_id == f"{event.session_id}:{event.seq}"
        assert event.channel == {"end": "end", "error": "error"}.get(get_event_kind(event), "response")
        if isinstance(event, ToolEvent):
            assert event.tool_call_id
            assert event.tool_call_name
        if isinstance(event, PermissionEvent):
            request = event.permission_request
            assert request.tool_call_id == event.tool_call_id
            assert all((request.id, request.tool_name, request.server_name, request.permission_type))
            assert all((request.description, request.answers, request.session_id, request.batch_id))


def test_every_kind_of_event_was_emitted_by_something_real() -> None:
    kinds = [read_bundle(file)["expected"]["kinds"] for file in OURS]
    assert {name for found in kinds for name in found} == {get_event_kind(kind) for kind in KINDS}


@every_session
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_it_is_exported_in_every_dialect(unpacked: Any, file: Path, adapter: str) -> None:
    events = [decode_event(encode(event)) for event in unpacked(file).stored()]
    lines = rendered(adapter, events).splitlines()
    assert all(json.loads(line) for line in lines)
    calls = {event.tool_call_id for event in events if isinstance(event, ToolEvent)}
    assert all(any(call in line for line in lines) for call in calls)


@every_talk
def test_it_goes_on_from_where_it_was(unpacked: Any, file: Path) -> None:
    one = unpacked(file)
    last = one.stored()[-1]
    waits = last["reason"] if last["kind"] == "end" and last["reason"] in {"parked", "question"} else "done"
    turn, talk = one.go_on()
    assert (turn.reason, len(turn.requests), len(turn.questions)) == (waits, waits == "parked", waits == "question")
    begun, after = one.bundle["expected"]["talk"], expected_of(one.workspace, one.state, one.session)["talk"]
    assert json.loads(encode(after))[: len(begun)] == begun
    if waits == "done":
        assert_paired(talk)


@every_session
def test_a_new_prompt_is_answered_whatever_was_left_open(unpacked: Any, file: Path) -> None:
    turn, talk = unpacked(file).go_on("Leave all that.")
    assert (turn.reason, turn.text) == ("done", "Done.")
    assert_paired(talk)


def test_the_call_that_was_cut_off_is_interrupted_and_the_one_behind_it_is_made(newest: Any) -> None:
    one = newest("killed")
    _, talk = one.go_on()
    (cut, made) = [result for said in talk if isinstance(said, ResultsMessage) for result in said.results][-2:]
    assert (cut.ok, made.ok) == (False, True)
    with open_journal(one.folder) as journal:
        codes = {call: result.error.code for call, result in journal.list_finished() if result and result.error}
    assert codes == {cut.tool_call_id: "INTERRUPTED"}
    assert (one.workspace / "a.txt").read_text() == "two\nlast\n"
    assert not (one.workspace / "late.txt").exists()


@pytest.mark.parametrize("answer", ["once", "deny"])
def test_what_waited_for_a_yes_can_still_be_answered(newest: Any, answer: Any) -> None:
    one = newest("parked")
    with Handrail(one.workspace, **one.options(mode="ask")) as rail:
        (request,) = rail.waiting()
        assert request.preview is not None
        assert request.preview.tried is not None
        done = rail.answer(request, answer)
        assert isinstance(done, Done)
        (result,) = done.results
    made = (one.workspace / "made.txt").exists()
    if answer == "deny":
        assert result.error is not None
        assert (result.error.code, made) == ("PERMISSION_DENIED", False)
    else:  # on another machine commands start with other variables: then what was shown is not what would run
        assert result.ok == made
        assert result.ok or (result.error is not None and result.error.code == "CONFLICT")


def test_what_waited_for_a_reply_gets_it(newest: Any) -> None:
    turn, talk = newest("waiting").go_on("the last")
    assert (turn.reason, turn.calls) == ("done", 1)
    (results,) = [said for said in talk if isinstance(said, ResultsMessage)]
    assert "the last" in results.results[0].content


@pytest.mark.parametrize(("creates", "code"), [("Creates one.", None), ("Creates two.", "CONFLICT")])
def test_a_yes_to_a_servers_tool_counts_where_the_server_says_the_same_of_it(
    newest: Any, creates: str, code: str | None
) -> None:
    one, tracker = newest("servers"), Tracker("Finds issues, and more.", creates)
    with Handrail(one.workspace, **one.options(mode="ask", sources=[tracker])) as rail:
        (request,) = rail.waiting()
        assert (request.tool_name, request.server_name) == ("create_issue", "tracker")
        done = rail.answer(request, "once")
        assert isinstance(done, Done)
        (result,) = done.results
        assert (result.error.code if result.error else None) == code
    assert tracker.called == ([] if code else ["create_issue"])


def test_a_call_that_a_client_left_waiting_is_found_by_the_same_call(newest: Any) -> None:
    one = newest("left")
    with Handrail(one.workspace, **one.options(mode="ask", on_permission=lambda _: None)) as rail:
        (request,) = rail.waiting()
        rail.answer(request, "once")
        kept: Any = ClientCalls(rail).begin("write", OPEN)
        assert (kept.tool_call_id, kept.ok) == (request.tool_call_id, True)
    assert (one.workspace / "open.txt").read_text() == "open\n"


@pytest.mark.skipif(find_bubblewrap({}) is None, reason="commands were recorded in a sandbox of bubblewrap")
@every_session
def test_it_is_played_again_as_far_as_that_can_be(unpacked: Any, file: Path, tmp_path: Path) -> None:
    replay = unpacked(file).replayed(tmp_path / "replay")
    assert [(one.name, one.reason, one.difference) for one in replay.calls if one.verdict == "differs"] == []
    assert replay.start.outside == ()
    left_out = {one.name for one in replay.calls if one.verdict == "left-out" and not one.name.startswith("mcp__")}
    assert left_out <= {"exec", "count_words", *WAITS.get(file.stem, ())}


def reword(recording: Recording) -> Recording:
    """The recording with its results in the words of this version."""

    def in_new_words(result: ToolResult[Any]) -> ToolResult[Any]:
        content = result.content
        for old, new in REWORDED.items():
            content = content.replace(old, new)
        return replace(result, content=content)

    calls = [one if one.result is None else replace(one, result=in_new_words(one.result)) for one in recording.calls]
    return replace(recording, calls=tuple(calls))


def assert_kept(old: Any, new: Any) -> None:
    """Everything of the old is in the new; the new may have more fields."""
    if isinstance(old, dict):
        for key, value in old.items():
            assert_kept(value, new[key])
    elif isinstance(old, list):
        for one, other in zip(old, new, strict=True):
            assert_kept(one, other)
    else:
        assert old == new


def assert_paired(talk: list[Any]) -> None:
    """Every call of the model has its result, just behind it."""
    for before, after in pairwise(talk):
        if isinstance(before, AssistantMessage) and before.calls:
            assert isinstance(after, ResultsMessage)
            assert [one.tool_call_id for one in after.results] == [call.tool_call_id for call in before.calls]
