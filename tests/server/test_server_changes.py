"""Changes over HTTP: listed, shown, undone and redone, with a preview and the ways out of a conflict."""

from pathlib import Path

import pytest
from tests.server.handlers import Api


@pytest.fixture
def changed(api: Api, workspace: Path) -> Api:
    """Change 1 writes a.txt, change 2 edits it, change 3 writes src/b.txt in another session."""
    with api.open("one", mode="auto") as rail:
        assert rail.write("a.txt", "1\n2\n3\n4\n5\n").ok
        assert rail.edit("a.txt", "5", "five").ok
    with api.open("two", mode="auto") as rail:
        assert rail.write("src/b.txt", "b\n").ok
    return api


def list_numbers(api: Api, **query: object) -> list[int]:
    return [one["number"] for one in api.get("/api/changes", **query).body["changes"]]


def test_changes_are_listed_by_task_and_by_path(changed: Api) -> None:
    assert list_numbers(changed) == [3, 2, 1]
    assert list_numbers(changed, limit=1) == [3]
    assert list_numbers(changed, task="one", limit=1) == [2]
    assert list_numbers(changed, path="src") == [3]
    assert list_numbers(changed, path="a.txt") == [2, 1]
    assert list_numbers(changed, path="a") == []


def test_a_change_has_its_diff(changed: Api) -> None:
    shown = changed.get("/api/changes/2").body
    assert shown["change"]["number"] == 2
    assert "-5\n+five\n" in shown["diff"]
    assert changed.get("/api/changes/9").status >= 404
    assert changed.get("/api/changes/x").status == 404


def test_an_undo_is_previewed_and_then_done(changed: Api, workspace: Path) -> None:
    preview = changed.post("/api/changes/2/undo", {"preview": True}).body
    assert preview["result"] is None
    assert "-five\n+5\n" in preview["diff"]
    assert "five" in (workspace / "a.txt").read_text()
    done = changed.post("/api/changes/2/undo", {}).body
    assert done["diff"] == preview["diff"]
    assert done["result"]["data"]["undone"] == [2]
    assert (workspace / "a.txt").read_text() == "1\n2\n3\n4\n5\n"
    again = changed.post("/api/redo", {"preview": True}).body
    assert "-5\n+five\n" in again["diff"]
    assert changed.post("/api/redo", {}).body["diff"] == again["diff"]
    assert "five" in (workspace / "a.txt").read_text()


def test_a_conflict_offers_the_later_changes_or_single_lines(changed: Api, workspace: Path) -> None:
    for body in ({}, {"preview": True}):
        refused = changed.post("/api/changes/1/undo", body)
        assert (refused.status, refused.body["code"]) == (409, "CONFLICT")
        assert refused.body["details"]["conflicts"] == [{"path": "a.txt", "changedBy": [2]}]
        assert "later" in refused.body["details"]["choices"]
    done = changed.post("/api/changes/1/undo", {"resolve": "later"}).body
    assert sorted(done["result"]["data"]["undone"]) == [1, 2]
    assert not (workspace / "a.txt").exists()


def test_nothing_to_redo_is_refused(changed: Api) -> None:
    assert changed.post("/api/redo", {}).body["code"] == "NO_CHANGE"
