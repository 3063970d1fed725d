"""A language server may do anything wrong: its own calls fail with words, in time, and nothing else does."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from projects import Make, choose, code_of, fake, succeed

from handrail import Handrail
from handrail.lsp import connection, server

AT = {"path": "a.fake", "line": 0, "character": 0}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_START_SECONDS", 5.0)
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 1.0)
    monkeypatch.setattr(server, "_PAUSES", (0.0, 0.0, 0.0))


def open_rail(rail: Make, workspace: Path, mode: str, **settings: object) -> Handrail:
    (workspace / "a.fake").write_text("foo\nbar\n")
    return rail(settings=choose(fake(workspace, mode), **settings))


def test_one_that_never_answers_is_given_up_and_the_session_closes(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_START_SECONDS", 1.0)
    result = open_rail(rail, workspace, "silent").call("lsp_hover", AT)
    assert code_of(result) == "TIMEOUT"


def test_one_that_hangs_in_a_request_times_out_and_is_ended_after_three(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace, "hangs", lsp__diagnostics="off")
    codes = [code_of(opened.call("lsp_hover", AT)) for _ in range(3)]
    assert codes == ["TIMEOUT"] * 3
    assert opened.call("read", {"path": "a.fake"}).ok


def test_one_that_dies_is_restarted_and_then_left_off(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace, "dies")
    results = [opened.call("lsp_hover", AT) for _ in range(5)]
    assert [code_of(one) for one in results] == ["UNAVAILABLE"] * 5
    assert "ended during the call" in results[0].content
    assert "ended 4 times: it ended with exit code 3" in results[4].content


def test_a_server_that_ended_soon_is_restarted_after_a_pause(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PAUSES", (600.0, 600.0, 600.0))
    opened = open_rail(rail, workspace, "dies")
    opened.call("lsp_hover", AT)
    assert "Try again in" in opened.call("lsp_hover", AT).content


def test_one_that_cannot_start_says_why_without_escapes(rail: Make, workspace: Path) -> None:
    result = open_rail(rail, workspace, "dies-at-start").call("lsp_hover", AT)
    assert code_of(result) == "UNAVAILABLE"
    assert "no licence" in result.content
    assert "\x1b" not in result.content


@pytest.mark.parametrize("mode", ["garbage", "huge", "deep", "nonsense"])
def test_one_that_answers_nonsense_fails_its_call_alone(rail: Make, workspace: Path, mode: str) -> None:
    opened = open_rail(rail, workspace, mode)
    for tool in ("lsp_definition", "lsp_references"):
        assert code_of(opened.call(tool, AT)) == "UNAVAILABLE"
    assert code_of(opened.call("lsp_rename", {**AT, "newName": "x"})) == "UNAVAILABLE"
    assert opened.call("write", {"path": "b.txt", "content": "x"}).ok


@pytest.mark.parametrize("mode", ["flood", "many-requests"])
def test_one_that_floods_is_slowed_down_and_its_call_ends(rail: Make, workspace: Path, mode: str) -> None:
    opened = open_rail(rail, workspace, mode)
    began = time.monotonic()
    result = opened.call("lsp_hover", AT)
    assert time.monotonic() - began < 30
    assert result.ok or code_of(result) in {"TIMEOUT", "UNAVAILABLE"}
    assert opened.call("read", {"path": "a.fake"}).ok


def test_one_that_never_has_read_the_project_is_waited_for_once(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_INDEX_SECONDS", 1.0)
    opened = open_rail(rail, workspace, "reads-on")
    first = opened.call("lsp_definition", AT)
    assert first.warnings == (f"{Path(sys.executable).name} still reads the project; the answer may be incomplete.",)
    began = time.monotonic()
    assert opened.call("lsp_definition", AT).ok
    assert time.monotonic() - began < 1.0
    assert code_of(opened.call("lsp_rename", {**AT, "newName": "x"})) == "UNAVAILABLE"


def test_one_that_does_not_read_is_ended(rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_MAX_UNREAD_BYTES", 1 << 20)
    opened = open_rail(rail, workspace, "deaf")
    assert code_of(opened.call("lsp_hover", AT)) == "TIMEOUT"
    (workspace / "a.fake").write_text("x" * 2_000_000)
    result = opened.call("lsp_hover", AT)
    assert code_of(result) == "UNAVAILABLE"
    assert "does not read its input" in result.content


def test_one_that_uses_too_much_memory_is_ended(rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 60.0)
    opened = open_rail(rail, workspace, "hungry", limits__memory="100 MB")
    assert code_of(opened.call("lsp_hover", AT)) == "UNAVAILABLE"
    opened.call("lsp_hover", AT)
    results = [opened.call("lsp_hover", AT) for _ in range(3)]
    assert "it used more memory than limits.memory" in results[-1].content


def test_a_cancelled_call_ends_at_once(rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 600.0)
    opened = open_rail(rail, workspace, "hangs")
    call_id = opened.new_call_id()
    with ThreadPoolExecutor() as pool:
        calling = pool.submit(opened.call, "lsp_hover", AT, tool_call_id=call_id)
        while not opened.cancel_call(call_id):
            pass
        assert code_of(calling.result(60)) == "CANCELLED"


def test_places_that_cannot_be_are_left_out_or_cut(rail: Make, workspace: Path) -> None:
    found = succeed(open_rail(rail, workspace, "far").call("lsp_definition", AT)).locations
    assert [(one.file, one.line) for one in found] == [("a.fake", 4_000_000_000)]


@pytest.mark.parametrize(
    ("mode", "code"),
    [("stale", "CONFLICT"), ("outside", "OUTSIDE_WORKSPACE"), ("moves", "UNAVAILABLE"), ("overlap", "CONFLICT")],
)
def test_a_rename_that_does_not_fit_the_files_changes_nothing(
    rail: Make, workspace: Path, mode: str, code: str
) -> None:
    opened = open_rail(rail, workspace, mode)
    assert code_of(opened.call("lsp_rename", {**AT, "newName": "new"})) == code
    assert (workspace / "a.fake").read_text() == "foo\nbar\n"


@pytest.mark.parametrize("mode", ["silent", "dies", "dies-at-start", "garbage", "huge", "mute", "flood"])
def test_a_write_succeeds_whatever_the_server_does(
    rail: Make, workspace: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_START_SECONDS", 1.0)
    opened = open_rail(rail, workspace, mode, lsp__wait="200ms")
    began = time.monotonic()
    result = opened.call("write", {"path": "a.fake", "content": "bad\n"})
    assert time.monotonic() - began < 5
    assert succeed(result).path == "a.fake"
    assert (workspace / "a.fake").read_text() == "bad\n"


def test_a_server_writes_nothing_sees_no_credentials_and_has_no_network(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / ".env").write_text("PASSWORD=hunter2\n")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 20.0)
    text = succeed(open_rail(rail, workspace, "look").call("lsp_hover", AT)).text
    assert "write: Read-only file system" in text
    assert "hunter2" not in text
    assert "network: Network is unreachable" in text
    assert "token: none" in text
    assert not (workspace / "written.txt").exists()


@pytest.mark.parametrize("settings", [{"tools__deny": ("proc.exec",)}, {"profile": "restricted"}])
def test_no_server_runs_where_no_program_may(rail: Make, workspace: Path, settings: dict[str, object]) -> None:
    folder = workspace / ".minds"
    folder.mkdir()
    (folder / "a.fake").write_text("foo\n")
    opened = rail(settings=choose(fake(workspace, "ok"), **settings))
    result = opened.call("lsp_hover", {**AT, "path": ".minds/a.fake"})
    assert "No language server may run here" in result.content
