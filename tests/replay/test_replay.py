"""Replay: a recorded session is played again on a copy of the workspace as it was, and every result is compared."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.replay.player import SessionReplay, make_start, play
from handrail.replay.session_record import read_recording
from handrail.settings import LoadedSettings, Settings
from handrail.store.state_dir import StateFolder

LOADED = LoadedSettings(settings=Settings(), sources={})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "a.txt").write_text("one\n")
    return tmp_path


@pytest.fixture
def session(place: Path) -> Callable[..., Handrail]:
    def opened(name: str = "first", answer: str = "once") -> Handrail:
        return Handrail(place / "shop", state_dir=place / "state", session=name, on_permission=lambda _: answer)  # type: ignore[arg-type, return-value]

    return opened


def replayed(place: Path, name: str = "first") -> SessionReplay:
    workspace, folder = str(place / "shop"), place / "replay"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    state = StateFolder(str(place / "state"))
    recording = read_recording(state.session(workspace, name))
    start = make_start(str(folder), state, workspace, name, LOADED, recording.observed)
    return play(recording, start, workspace, LOADED)


def verdicts(replay: SessionReplay) -> list[tuple[str, str]]:
    return [(one.name, one.verdict) for one in replay.calls]


def test_a_session_that_changed_files_comes_out_the_same(place: Path, session) -> None:
    with session() as rail:
        rail.read("a.txt")
        rail.edit("a.txt", "one", "two")
        rail.write("b/c.txt", "new\n")
        rail.exec("cat a.txt b/c.txt; pwd; exit 3")
        rail.read("missing.txt")
    replay = replayed(place)
    assert verdicts(replay) == [
        ("read", "same"), ("edit", "same"), ("write", "same"), ("exec", "same"), ("read", "same")
    ]  # fmt: skip
    assert replay.same
    assert (place / "shop" / "a.txt").read_text() == "two\n"


def test_commands_that_change_files_are_played_on_what_they_were(place: Path, session) -> None:
    with session() as rail:
        rail.exec("echo more >> a.txt; cat a.txt")
        rail.exec("rm a.txt; ls")
        rail.undo()
        rail.exec("cat a.txt")
    assert verdicts(replayed(place)) == [("exec", "same"), ("exec", "same"), ("undo", "same"), ("exec", "same")]


def test_a_refusal_of_the_person_is_given_again(place: Path, session) -> None:
    with session(answer="deny") as rail:
        rail.write("a.txt", "x")
    with session(answer="once") as rail:
        rail.write("b.txt", "x")
    assert verdicts(replayed(place)) == [("write", "same"), ("write", "same")]


def test_what_prints_how_long_it_took_is_the_same_but_for_times(place: Path, session) -> None:
    with session() as rail:
        rail.exec("date +%Y-%m-%dT%H:%M:%S.%N | cut -c -23; echo took $RANDOM ms")
    [only] = replayed(place).calls
    assert only.verdict == "times"


def test_what_differs_is_shown(place: Path, session) -> None:
    with session() as rail:
        rail.exec("head -c 12 /dev/urandom | base64")
    replay = replayed(place)
    [only] = replay.calls
    assert (only.verdict, replay.same) == ("differs", False)
    assert "--- recorded" in only.difference


def test_a_file_that_others_changed_since_is_named_and_not_guessed(place: Path, session) -> None:
    with session() as rail:
        rail.edit("a.txt", "one", "two")
        rail.write("b.txt", "b\n")
        rail.read("b.txt")
    (place / "shop" / "a.txt").write_text("something else\n")
    replay = replayed(place)
    assert replay.start.outside == ("a.txt",)
    assert verdicts(replay) == [("edit", "outside"), ("write", "same"), ("read", "same")]


def test_a_file_that_others_changed_after_the_session_was_undone_is_named(place: Path, session) -> None:
    with session() as rail:
        rail.edit("a.txt", "one", "two")
        rail.write("b.txt", "b\n")
        rail.undo(session="first")
    (place / "shop" / "a.txt").write_text("something else\n")
    replay = replayed(place)
    assert replay.start.outside == ("a.txt",)
    assert verdicts(replay)[:2] == [("edit", "outside"), ("write", "same")]
    assert replay.same


def test_a_file_that_was_only_read_and_others_changed_since_is_named(place: Path, session) -> None:
    (place / "shop" / "gone.txt").write_text("gone\n")
    (place / "shop" / "own.txt").write_text("own\n")
    with session() as rail:
        rail.read("a.txt")
        rail.read("gone.txt")
        rail.write("own.txt", "mine\n")
        rail.read("own.txt")
        rail.read("a.txt", limit=1)
    (place / "shop" / "a.txt").write_text("something else\n")
    (place / "shop" / "gone.txt").unlink()
    replay = replayed(place)
    assert replay.start.outside == ("a.txt", "gone.txt")
    assert [one.verdict for one in replay.calls] == ["outside", "outside", "same", "same", "outside"]


def test_changes_of_later_sessions_to_the_same_files_are_taken_back_too(place: Path, session) -> None:
    with session() as rail:
        rail.edit("a.txt", "one", "two")
    with session("second") as rail:
        rail.edit("a.txt", "two", "three")
        rail.write("other.txt", "x\n")
    replay = replayed(place)
    assert verdicts(replay) == [("edit", "same")]
    assert (place / "replay" / "shop" / "other.txt").exists()


def test_what_a_later_session_changed_of_files_that_were_only_read_is_taken_back(place: Path, session) -> None:
    with session() as rail:
        rail.read("a.txt")
        rail.exec("cat a.txt")
    with session("second") as rail:
        rail.edit("a.txt", "one", "two")
        rail.edit("a.txt", "two", "three")
        rail.undo()
        rail.read("a.txt")
        rail.edit("a.txt", "two", "four")
    replay = replayed(place)
    assert replay.start.outside == ()
    assert verdicts(replay) == [("read", "same"), ("exec", "same")]
    assert (place / "shop" / "a.txt").read_text() == "four\n"


def test_what_an_undo_changed_after_the_session_is_brought_back(place: Path, session) -> None:
    with session("before") as rail:
        rail.edit("a.txt", "one", "two")
    with session() as rail:
        rail.read("a.txt")
    with session("person") as rail:
        rail.undo()
    replay = replayed(place)
    assert replay.start.outside == ()
    assert verdicts(replay) == [("read", "same")]


def test_a_file_that_was_undone_and_written_anew_by_a_later_session_is_as_the_first_one_met_it(
    place: Path, session
) -> None:
    with session() as rail:
        rail.write("b.txt", "b\n")
    with session("second") as rail:
        rail.undo()
        rail.write("b.txt", "another\n")
    replay = replayed(place)
    assert replay.start.outside == ()
    assert verdicts(replay) == [("write", "same")]


def test_what_others_changed_by_hand_after_a_later_session_is_still_named(place: Path, session) -> None:
    with session() as rail:
        rail.read("a.txt")
    with session("second") as rail:
        rail.edit("a.txt", "one", "two")
    (place / "shop" / "a.txt").write_text("something else\n")
    replay = replayed(place)
    assert replay.start.outside == ("a.txt",)
    assert (place / "replay" / "shop" / "a.txt").read_text() == "something else\n"


def test_what_went_on_by_itself_is_left_out(place: Path, session) -> None:
    with session() as rail:
        rail.exec("sleep 0", background=True)
        rail.process("list")
        rail.end_session()
    assert {one.verdict for one in replayed(place).calls} == {"left-out"}


def test_links_and_odd_files_of_the_workspace_do_no_harm(place: Path, session) -> None:
    import os

    shop = place / "shop"
    (place / "secret").write_text("outside\n")
    (shop / "link").symlink_to(place / "secret")
    os.mkfifo(shop / "pipe")
    (shop / "closed").mkdir()
    (shop / "closed" / "x").write_text("x")
    (shop / "closed").chmod(0o500)
    with session() as rail:
        rail.read("a.txt")
    replay = replayed(place)
    assert replay.start.left_out == ("pipe",)
    copy = place / "replay" / "shop"
    assert (copy / "link").is_symlink()
    assert (copy / "closed").stat().st_mode & 0o777 == 0o500
    (copy / "closed").chmod(0o700)
    (shop / "closed").chmod(0o700)


def test_tools_that_are_off_by_default_are_offered_as_they_were_then(place: Path) -> None:
    from handrail.settings.model import Tools

    settings = Settings(tools=Tools(enable=("delete",)))
    with Handrail(place / "shop", state_dir=place / "state", session="first", mode="full", settings=settings) as rail:
        rail.set_mode("full")
        rail.delete("a.txt")
    assert verdicts(replayed(place)) == [("delete", "same")]
