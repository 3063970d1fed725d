"""Replay of what agents did: companions, questions, skills, batches, undo in between, forks, and files of others."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handrail import Agent, AsyncHandrail, Done, Handrail, Parked
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.replay.player import SessionReplay, make_start, play
from handrail.replay.session_record import read_recording
from handrail.settings import LoadedSettings, Settings
from handrail.settings.model import Paths, Tools
from handrail.store.state_dir import StateFolder

COMPANIONS = Settings(tools=Tools(enable=("display", "question", "todo", "memory", "skill_list", "skill_control")))
READ = ("read", {"path": "a.txt"})
EDIT = ("edit", {"path": "a.txt", "oldText": "one", "newText": "two"})
ASK = ("question", {"question": "Which?", "options": ["this", "that"], "custom": True})


class Place:
    """A workspace, its sessions, and what comes of them when they are played again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shop, self.state = folder, folder / "shop", folder / "state"
        self.shop.mkdir()
        (self.shop / "a.txt").write_text("one\n")
        (self.shop / "b.txt").write_text("b\n")

    def talk(self, *script: ScriptedReply, session: str = "first", mode: str = "ask", reply: str = "this") -> None:
        """A turn in which the person says yes to all but what is called refused.txt."""

        async def turn() -> None:
            options: dict[str, Any] = {"mode": mode, "state_dir": self.state, "session": session}
            async with AsyncHandrail(self.shop, settings=COMPANIONS, **options) as rail:

                async def person(parked: Parked) -> Done | Parked:
                    if parked.questions:
                        return await rail.reply(parked.questions[0], reply)
                    outcome: Done | Parked = parked
                    for request in parked.requests:
                        answer = "deny" if "refused.txt" in request.paths else "once"
                        outcome = await rail.answer(request, answer)  # type: ignore[arg-type]
                    return outcome

                await Agent(rail, ScriptedModel([*script, ScriptedReply(text="Done.")]), person=person).run("go")

        asyncio.run(turn())

    def rail(self, session: str = "first", settings: Settings = COMPANIONS, **more: Any) -> Handrail:
        options: dict[str, Any] = {"mode": "auto", "on_permission": lambda _: "once", **more}
        return Handrail(self.shop, state_dir=self.state, session=session, settings=settings, **options)

    def replayed(self, session: str = "first", settings: Settings = COMPANIONS) -> SessionReplay:
        workspace, state = str(self.shop), StateFolder(str(self.state))
        loaded = LoadedSettings(settings=settings, sources={})
        recording = read_recording(state.session(workspace, session))
        folder = self.folder / "replay"
        folder.mkdir()
        start = make_start(str(folder), state, workspace, session, loaded, recording.observed)
        return play(recording, start, workspace, loaded)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def verdicts(replay: SessionReplay) -> list[tuple[str, str]]:
    return [(one.name, one.verdict) for one in replay.calls]


def test_companions_are_played_and_a_question_gets_the_same_reply(place: Place) -> None:
    todo = ("todo", {"items": [{"text": "look", "status": "active"}]})
    place.talk(
        ScriptedReply(calls=(READ, ("display", {"content": "Look."}), todo)),
        ScriptedReply(calls=(ASK,)),
        reply="my own words",
    )
    assert verdicts(place.replayed()) == [("read", "same"), ("display", "same"), ("todo", "same"), ("question", "same")]


def test_a_question_that_was_put_aside_is_put_aside_again(place: Place) -> None:
    place.talk(ScriptedReply(calls=(ASK,)), reply=None)  # type: ignore[arg-type]
    assert verdicts(place.replayed()) == [("question", "same")]


def test_notes_are_neither_made_again_nor_compared(place: Place) -> None:
    place.talk(ScriptedReply(calls=(("memory", {"action": "add", "title": "t", "content": "c"}),)), mode="full")
    assert verdicts(place.replayed()) == [("memory", "left-out")]


def test_a_skill_leaves_the_same_tools(place: Place) -> None:
    folder = place.shop / ".handrail" / "skills" / "looking"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: looking\ndescription: Looks.\nallowed-tools: read\n---\nLook.\n")
    on = ("skill_control", {"action": "activate", "name": "looking"})
    place.talk(
        ScriptedReply(calls=(("skill_list", {}),)),
        ScriptedReply(calls=(on,)),
        ScriptedReply(calls=(EDIT,)),
        ScriptedReply(calls=(READ,)),
    )
    with place.rail() as rail:
        assert rail.active_skills() == ("looking",)
    assert (place.shop / "a.txt").read_text() == "one\n"
    replay = place.replayed()
    assert [one.verdict for one in replay.calls] == ["same"] * 4, replay.calls


def test_a_batch_with_several_answers_gets_each_of_them_again(place: Place) -> None:
    refused = ("write", {"path": "refused.txt", "content": "x"})
    command = ("exec", {"command": "echo more >> b.txt; cat b.txt"})
    place.talk(ScriptedReply(calls=(EDIT, command, ("write", {"path": "c.txt", "content": "c\n"}), refused)))
    assert [one.verdict for one in place.replayed().calls] == ["same"] * 4
    assert not (place.folder / "replay" / "shop" / "refused.txt").exists()
    assert (place.folder / "replay" / "shop" / "b.txt").read_text() == "b\nmore\n"


def test_what_a_grant_of_then_allowed_is_allowed_again(place: Place) -> None:
    with place.rail(mode="ask", on_permission=lambda _: "workspace") as rail:
        rail.exec("touch once.txt")
    with place.rail("second", mode="ask", on_permission=lambda _: "deny") as rail:
        assert rail.exec("touch twice.txt").ok
    assert verdicts(place.replayed("second")) == [("exec", "same")]


def test_an_undo_of_several_changes_and_its_redo_are_done_again(place: Place) -> None:
    place.talk(ScriptedReply(calls=(EDIT, ("write", {"path": "c.txt", "content": "c\n"}))), mode="auto")
    with place.rail() as rail:
        rail.undo(turn=True)
        rail.redo()
        rail.undo(turn=True)
        rail.read("a.txt")
    replay = place.replayed()
    assert [one.verdict for one in replay.calls] == ["same"] * 6, replay.calls
    assert (place.folder / "replay" / "shop" / "a.txt").read_text() == "one\n"


def test_an_undo_of_what_another_session_did_is_left_out(place: Place) -> None:
    with place.rail("other") as rail:
        rail.edit("a.txt", "one", "two")
    with place.rail() as rail:
        rail.undo()
        rail.read("b.txt")
    assert verdicts(place.replayed()) == [("undo", "left-out"), ("read", "same")]


def test_a_fork_begins_where_it_was_forked(place: Place) -> None:
    place.talk(ScriptedReply(calls=(READ, EDIT)))
    with place.rail() as rail:
        rail.fork_session("fork")
    place.talk(
        ScriptedReply(),
        ScriptedReply(),
        ScriptedReply(calls=(READ, ("write", {"path": "c.txt", "content": "c\n"}))),
        session="fork",
    )
    replay = place.replayed("fork")
    assert verdicts(replay) == [("read", "same"), ("write", "same")]
    assert replay.start.outside == ()
    assert (place.folder / "replay" / "shop" / "a.txt").read_text() == "two\n"


def test_a_file_that_was_only_read_and_changed_since_is_named(place: Place) -> None:
    with place.rail() as rail:
        rail.read("b.txt")
        rail.grep("b")
        rail.exec("cat b.txt")
        rail.read("a.txt")
    (place.shop / "b.txt").write_text("others\n")
    replay = place.replayed()
    assert replay.start.outside == ("b.txt",)
    assert verdicts(replay) == [("read", "outside"), ("grep", "outside"), ("exec", "outside"), ("read", "same")]
    assert replay.calls[0].reason == "changed since: b.txt"


def test_a_file_that_others_changed_between_two_calls_is_named(place: Place) -> None:
    with place.rail() as rail:
        rail.read("b.txt")
        (place.shop / "b.txt").write_text("others\n")
        assert not rail.edit("b.txt", "others", "mine").ok
        rail.read("b.txt")
        rail.edit("b.txt", "others", "mine")
    replay = place.replayed()
    assert replay.start.outside == ("b.txt",)
    assert replay.same


def test_what_a_call_would_have_changed_that_is_left_out_is_not_held_against_later_ones(place: Place) -> None:
    with place.rail() as rail:
        rail.call("exec", {"command": "echo late > c.txt", "yieldMs": 20_000})
        rail.read("c.txt")
        rail.read("a.txt")
    replay = place.replayed()
    assert [one.verdict for one in replay.calls] == ["left-out", "outside", "same"], replay.calls


def test_nothing_outside_the_copy_is_written_to(place: Place) -> None:
    other = place.folder / "other"
    other.mkdir()
    settings = Settings(paths=Paths(writable=(str(other),)))
    with place.rail(settings=settings) as rail:
        assert rail.write(str(other / "x.txt"), "then\n").ok
        assert rail.exec(f"echo then > {other}/y.txt").ok
    for name in ("x.txt", "y.txt"):
        (other / name).write_text("now\n")
    assert "same" not in {one.verdict for one in place.replayed(settings=settings).calls}
    assert [(other / name).read_text() for name in ("x.txt", "y.txt")] == ["now\n", "now\n"]


def test_the_workspace_by_its_whole_path_is_the_copy(place: Place) -> None:
    with place.rail() as rail:
        rail.read(str(place.shop / "a.txt"))
        rail.exec(f"echo more >> {place.shop}/a.txt; cat {place.shop}/a.txt")
    assert verdicts(place.replayed()) == [("read", "same"), ("exec", "same")]
    assert (place.shop / "a.txt").read_text() == "one\nmore\n"
