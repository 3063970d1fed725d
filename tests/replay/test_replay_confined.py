"""Replay writes nowhere but into its copy, whatever the session was allowed to write then."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail import Handrail
from handrail.replay.player import SessionReplay, make_start, play
from handrail.replay.session_record import read_recording
from handrail.settings import LoadedSettings, Settings
from handrail.settings.model import Paths, Tools
from handrail.store.state_dir import StateFolder

Do = Callable[[Handrail], Any]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for folder in ("shop", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text("one\n")
    return tmp_path


def settings(place: Path, *, writable: bool = False) -> LoadedSettings:
    paths = Paths(writable=(str(place / "other"),)) if writable else Paths(outside="ask")
    return LoadedSettings(settings=Settings(paths=paths), sources={})


def record(place: Path, loaded: LoadedSettings, do: Do, session: str = "first") -> None:
    with Handrail(
        place / "shop", state_dir=place / "state", session=session, settings=loaded, on_permission=lambda _: "once"
    ) as rail:
        do(rail)


def replayed(place: Path, loaded: LoadedSettings) -> SessionReplay:
    workspace, folder = str(place / "shop"), place / "replay"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    state = StateFolder(str(place / "state"))
    recording = read_recording(state.session(workspace, "first"))
    start = make_start(str(folder), state, workspace, "first", loaded, recording.observed)
    return play(recording, start, workspace, loaded)


def told(replay: SessionReplay) -> list[tuple[str, str]]:
    return [(one.name, one.verdict) for one in replay.calls]


def test_a_writable_root_is_not_written_to(place: Path) -> None:
    loaded, file = settings(place, writable=True), place / "other" / "a.txt"
    record(place, loaded, lambda rail: rail.edit(str(file), "one", "two"))
    record(place, loaded, lambda rail: rail.edit(str(file), "two", "three, which took all day"), "second")
    replay = replayed(place, loaded)
    assert file.read_text() == "three, which took all day\n"
    assert told(replay) == [("edit", "left-out")]


def test_a_command_does_not_write_to_a_writable_root(place: Path) -> None:
    loaded, file = settings(place, writable=True), place / "other" / "a.txt"
    record(place, loaded, lambda rail: rail.exec(f"date +%N >> {file}"))
    before = file.read_bytes()
    replay = replayed(place, loaded)
    assert file.read_bytes() == before
    assert told(replay) == [("exec", "left-out")]


def test_a_change_of_both_is_not_guessed_away(place: Path) -> None:
    loaded = settings(place, writable=True)
    record(place, loaded, lambda rail: (rail.exec(f"echo two | tee {place}/other/a.txt a.txt"), rail.read("a.txt")))
    replay = replayed(place, loaded)
    assert told(replay) == [("exec", "left-out"), ("read", "same")]
    assert "a.txt" in replay.start.outside


def test_a_yes_to_a_folder_outside_counts_for_the_session_alone(place: Path) -> None:
    loaded, file = settings(place), place / "other" / "a.txt"
    record(place, loaded, lambda rail: rail.edit(str(file), "one", "two"))
    file.write_text("one, and more\n")
    replay = replayed(place, loaded)
    assert file.read_text() == "one, and more\n"
    assert told(replay) == [("edit", "left-out")]


def test_absolute_paths_of_the_workspace_mean_the_copy(place: Path) -> None:
    loaded, shop = settings(place), place / "shop"

    def work(rail: Handrail) -> None:
        rail.edit(str(shop / "a.txt"), "one", "two")
        rail.exec(f"cd {shop} && echo more >> a.txt && cat {shop}/a.txt")

    record(place, loaded, work)
    before = (shop / "a.txt").stat().st_mtime_ns
    replay = replayed(place, loaded)
    assert told(replay) == [("edit", "same"), ("exec", "same")]
    assert (shop / "a.txt").stat().st_mtime_ns == before


def test_a_link_into_the_workspace_by_its_whole_name_is_not_followed_out_of_the_copy(place: Path) -> None:
    loaded, shop = settings(place), place / "shop"
    (shop / "link").symlink_to(shop / "a.txt")
    record(place, loaded, lambda rail: rail.edit("link", "one", "two"))
    (shop / "a.txt").write_text("one\nmine\n")
    replay = replayed(place, loaded)
    assert (shop / "a.txt").read_text() == "one\nmine\n"
    assert told(replay) == [("edit", "left-out")]


def test_a_command_that_no_sandbox_keeps_in_the_copy_is_left_out(place: Path) -> None:
    loaded = settings(place)
    record(place, loaded, lambda rail: rail.exec("echo more >> a.txt"))
    weak = replace(loaded, settings=replace(loaded.settings, sandbox=replace(loaded.settings.sandbox, tier=0)))
    assert told(replayed(place, weak)) == [("exec", "left-out")]


def test_a_no_is_never_replayed_as_a_yes(place: Path) -> None:
    loaded = settings(place)
    with Handrail(
        place / "shop", state_dir=place / "state", session="first", settings=loaded, on_permission=lambda _: "deny"
    ) as rail:
        rail.write("b.txt", "x")
    assert told(replayed(place, loaded)) == [("write", "same")]
    assert not (place / "replay" / "shop" / "b.txt").exists()


TOOL_FILE = '''
from handrail import tool

@tool(auto_execute=True)
def ring(path: str) -> str:
    """Ring a bell."""
    with open(path, "a") as file:
        file.write("ding")
    return "rang"
'''


def test_a_custom_tool_that_does_something_is_not_run_again(place: Path) -> None:
    (place / "tools").mkdir()
    (place / "tools" / "bell.py").write_text(TOOL_FILE)
    loaded = LoadedSettings(settings=Settings(tools=Tools(folders=(str(place / "tools"),))), sources={})
    record(place, loaded, lambda rail: rail.call("ring", {"path": str(place / "bell")}))
    assert (place / "bell").read_text() == "ding"
    assert told(replayed(place, loaded)) == [("ring", "left-out")]
    assert (place / "bell").read_text() == "ding"
