"""The summary of a session is read once, follows new events, and says why a journal cannot be read."""

import os
from pathlib import Path

from handrail import Agent, Handrail
from handrail.models.scripted import ScriptedModel, call
from handrail.protocol.events import End, User
from handrail.state import SessionSummaries, SessionSummary, StoredState


def open_session(workspace: Path, state: StoredState, session: str = "talk") -> Handrail:
    return Handrail(workspace, session=session, state_dir=state.path, mode="ask", on_permission="park")


def find_folder(workspace: Path, state: StoredState, session: str = "talk") -> str:
    return os.path.join(state.home(str(workspace.resolve())), session)


def test_a_summary_follows_the_session(workspace: Path, tmp_path: Path) -> None:
    state, summaries = StoredState(str(tmp_path / "state")), SessionSummaries()
    folder = find_folder(workspace, state)
    with open_session(workspace, state) as rail:
        assert summaries.read(folder) == SessionSummary()
        rail.set_mode("auto")
        assert (summaries.read(folder).mode, summaries.read(folder).is_task) == ("auto", True)
        script = [call("write", path="a.txt", content="new"), call("write", path="b.txt", content="new"), "Done."]
        Agent(rail, ScriptedModel(script)).run_sync("Write.")
        summary = summaries.read(folder)
        assert isinstance(summary.last_turn_event, End)
        assert (summary.prompt, summary.model) == ("Write.", "scripted:script")
        assert summary.changed_paths == {"a.txt", "b.txt"}
        assert summary.last_seq == max(event.seq for event in rail.events())
    assert SessionSummaries().read(folder) == summaries.read(folder) == summary


def test_a_summary_counts_the_requests_that_wait(workspace: Path, tmp_path: Path) -> None:
    state, summaries = StoredState(str(tmp_path / "state")), SessionSummaries()
    with open_session(workspace, state) as rail:
        result = rail.write("a.txt", "new")
        assert summaries.read(find_folder(workspace, state)).waiting == 1
        rail.answer(rail.waiting()[0], "deny")
        assert result.error is not None
        assert summaries.read(find_folder(workspace, state)).waiting == 0


def test_a_session_without_a_model_is_no_task(workspace: Path, tmp_path: Path) -> None:
    state = StoredState(str(tmp_path / "state"))
    with open_session(workspace, state) as rail:
        rail.ls(".")
    assert not SessionSummaries().read(find_folder(workspace, state)).is_task


def test_a_turn_that_was_cut_off_ends_with_its_prompt(workspace: Path, tmp_path: Path) -> None:
    state = StoredState(str(tmp_path / "state"))
    with open_session(workspace, state) as rail:
        rail.conversation.tell((User, {"message_id": "m", "text": "Work."}))
    assert isinstance(SessionSummaries().read(find_folder(workspace, state)).last_turn_event, User)


def test_a_damaged_journal_has_a_problem_and_a_new_one_a_new_summary(workspace: Path, tmp_path: Path) -> None:
    state, summaries = StoredState(str(tmp_path / "state")), SessionSummaries()
    folder = find_folder(workspace, state)
    with open_session(workspace, state) as rail:
        rail.set_mode("plan")
        rail.set_mode("ask")
    assert summaries.read(folder).last_seq == 2
    journal = Path(folder, "journal.db")
    journal.rename(journal.with_name("journal.db.damaged"))
    journal.write_bytes(b"nothing of SQLite")
    assert "damaged" in summaries.read(folder).problem
    journal.unlink()
    with open_session(workspace, state) as rail:
        rail.set_mode("auto")
    assert (summaries.read(folder).mode, summaries.read(folder).problem) == ("auto", "")
