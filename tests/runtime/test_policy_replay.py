"""Calls of before under the rules of today: from the record alone, exactly."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail import tool
from handrail.policy.config import PolicyConfig, Rule
from handrail.protocol.decisions import MODES
from handrail.protocol.tool_spec import ToolSpec
from handrail.runtime.explain import PolicyReplay, replay
from handrail.runtime.registry import build_tool_set
from handrail.settings import Settings
from handrail.store.state_dir import StateFolder

NO_DOCS = Rule(id="no-docs", verdict="deny", pattern="docs/**", tool="*")


def spec_of(name: str) -> ToolSpec | None:
    found = build_tool_set(Settings()).get_registered(name)
    return found.spec if found else None


@pytest.fixture
def folders(tmp_path: Path, workspace: Path) -> Callable[[], list[str]]:
    """The folders of all sessions of the workspace."""
    return lambda: StateFolder(str(tmp_path / "state")).sessions(str(workspace))


@pytest.fixture
def again(folders: Callable[[], list[str]]) -> Callable[..., PolicyReplay]:
    """Replays everything, in the mode of the rules."""
    return lambda rules, since=None: replay(folders(), spec_of, rules, since, rules.mode)


def played(rail, workspace: Path, **options: Any) -> None:
    """A read, a write, a refused read and a call that policy never saw."""
    (workspace / "a.txt").write_text("hello\n")
    with rail(session="one", **options) as opened:
        opened.read("a.txt")
        opened.write("docs/b.txt", "b\n")
        opened.read("../outside.txt")
        opened.call("no_such_tool", {})


def test_under_the_same_rules_nothing_differs(rail, workspace: Path, again) -> None:
    played(rail, workspace)
    found = again(PolicyConfig("auto"))
    assert (found.calls, found.differ, found.unjudged) == (3, (), 1)


def test_what_differs_is_told_with_then_and_now_and_the_rule_of_now(rail, workspace: Path, again) -> None:
    played(rail, workspace)
    [one] = again(PolicyConfig("ask")).differ
    assert (one.session, one.tool, one.subject, one.then, one.now) == ("one", "write", "docs/b.txt", "allow", "confirm")
    assert (one.rule, one.rule_then) == ("fs.write", "fs.write")


def test_a_rule_of_today_counts_for_calls_of_before(rail, workspace: Path, again) -> None:
    played(rail, workspace)
    [one] = again(PolicyConfig("auto", rules=(NO_DOCS,))).differ
    assert (one.subject, one.now, one.rule) == ("docs/b.txt", "deny", "no-docs")


def test_without_another_mode_each_call_is_judged_in_its_own(rail, workspace: Path, folders) -> None:
    played(rail, workspace)
    with rail(session="two", mode="ask") as opened:
        opened.write("c.txt", "")
        opened.set_mode("plan")
        opened.write("d.txt", "")
    assert replay(folders(), spec_of, PolicyConfig("full"), None).differ == ()
    assert len(replay(folders(), spec_of, PolicyConfig("full"), None, "full").differ) == 2


def test_only_the_record_counts_not_what_the_workspace_is_now(rail, workspace: Path, again) -> None:
    played(rail, workspace)
    before = {mode: again(PolicyConfig(mode)) for mode in MODES}
    for path in sorted(workspace.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (workspace / "docs").symlink_to("/etc")
    workspace.rename(workspace.with_name("gone"))
    assert {mode: again(PolicyConfig(mode)) for mode in MODES} == before


def test_calls_that_wait_or_were_refused_by_a_person_are_compared_by_their_decision(
    rail, workspace: Path, again
) -> None:
    with rail(mode="ask", session="asked") as opened:
        opened.write("waits.txt", "")
        opened.write("refused.txt", "")
        opened.write("kept.txt", "")
        _, refused, kept = opened.waiting()
        opened.answer(refused.id, "deny")
        opened.answer(kept.id, "once")
    assert (workspace / "kept.txt").exists()
    assert again(PolicyConfig("ask")).differ == ()
    assert [(one.subject, one.then, one.now) for one in again(PolicyConfig("plan")).differ] == [
        ("waits.txt", "confirm", "deny"),
        ("refused.txt", "confirm", "deny"),
        ("kept.txt", "confirm", "deny"),
    ]


def test_where_nobody_was_there_to_ask_nobody_is_now(rail, workspace: Path, again) -> None:
    played(rail, workspace, mode="ask", unattended=True)
    assert again(PolicyConfig("ask")).differ == ()
    assert [(one.then, one.now) for one in again(PolicyConfig("auto")).differ] == [("deny", "allow")]


def test_what_the_restricted_profile_refused_would_be_asked_about_without_it(rail, workspace: Path, again) -> None:
    (workspace / ".minds").mkdir()
    restricted = msgspec.structs.replace(Settings(), profile="restricted")
    with rail(session="one", mode="ask", settings=restricted) as opened:
        opened.write("a.txt", "")
    [one] = again(PolicyConfig("ask")).differ
    assert (one.then, one.now) == ("deny", "confirm")


def test_calls_of_a_tool_that_is_gone_are_counted_by_its_name(rail, again) -> None:
    @tool
    def shout(text: str) -> str:
        """Shouts."""
        return text.upper()

    with rail(tools=[shout], session="one", mode="full") as opened:
        opened.call("shout", {"text": "a"})
        opened.call("shout", {"text": "b"})
        opened.ls()
    found = again(PolicyConfig("full"))
    assert (found.calls, found.gone) == (1, {"shout": 2})


def change(journal: str, statement: str) -> None:
    connection = sqlite3.connect(journal)
    with connection:
        connection.execute(statement)
    connection.close()


BROKEN = [
    "UPDATE event SET data = '{' WHERE seq = 1",
    "UPDATE event SET data = x'ff' WHERE seq = 1",
    "UPDATE event SET decided = NULL WHERE seq = 1",
    """UPDATE event SET decided = '{"batch_id": 1}' WHERE seq = 1""",
    "UPDATE event SET kind = 'tool_call.start' WHERE seq = 2",
]


@pytest.mark.parametrize("statement", BROKEN)
def test_a_record_that_cannot_be_read_is_counted_and_the_rest_goes_on(
    statement: str, rail, workspace: Path, again, folders
) -> None:
    played(rail, workspace)
    whole = again(PolicyConfig("ask"))
    change(os.path.join(folders()[0], "journal.db"), statement)
    found = again(PolicyConfig("ask"))
    assert found.broken == 1
    assert found.calls == whole.calls - (0 if "seq = 2" in statement else 1)
    assert found.differ == whole.differ


def test_a_journal_that_cannot_be_read_leaves_out_its_session_only(rail, workspace: Path, again, folders) -> None:
    played(rail, workspace)
    with rail(session="two") as opened:
        opened.ls()
    with rail(session="three") as opened:
        opened.ls()
    _, three, two = folders()
    Path(two, "journal.db").write_bytes(b"no database at all, and long enough to be seen as none" * 100)
    change(os.path.join(three, "journal.db"), "PRAGMA user_version = 99")
    found = again(PolicyConfig("auto"))
    assert found.calls == 3
    assert [text.split(" cannot be read: ")[0] for text in found.unreadable] == [
        f"the journal {folder}/journal.db" for folder in (three, two)
    ]
    assert "newer handrail (step 99)" in found.unreadable[0]


def test_a_session_in_use_is_read_beside_its_work(rail, workspace: Path, again) -> None:
    (workspace / "a.txt").write_text("hello\n")
    opened = rail(session="busy")
    opened.read("a.txt")
    assert again(PolicyConfig("auto")).calls == 1
    opened.read("a.txt")
    assert again(PolicyConfig("auto")).calls == 2


def test_a_journal_is_read_where_nothing_can_be_written_beside_it(rail, workspace: Path, again, folders) -> None:
    played(rail, workspace)
    journal = Path(folders()[0], "journal.db")
    before = journal.read_bytes()
    journal.with_name("journal.db-shm").symlink_to("nowhere")  # what SQLite's readers share cannot be made
    with pytest.raises(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as one:
        one.execute("SELECT * FROM event")
    assert again(PolicyConfig("auto")).calls == 3
    assert journal.read_bytes() == before
    journal.with_name("journal.db-wal").write_bytes(b"a crash left this behind")
    assert again(PolicyConfig("auto")).unreadable != ()  # rather than without what is in it


def test_only_calls_since_a_moment_count(rail, workspace: Path, again) -> None:
    played(rail, workspace)
    now = datetime.now(UTC)
    assert again(PolicyConfig("auto"), now - timedelta(hours=1)).calls == 3
    assert again(PolicyConfig("auto"), now + timedelta(hours=1)) == PolicyReplay(
        calls=0, differ=(), unjudged=0, gone={}, broken=0, unreadable=()
    )


def test_differences_of_several_sessions_are_in_the_order_of_time(rail, again) -> None:
    first, second = rail(session="z"), rail(session="a")
    first.write("1.txt", "")
    second.write("2.txt", "")
    first.write("3.txt", "")
    assert [one.subject for one in again(PolicyConfig("ask")).differ] == ["1.txt", "2.txt", "3.txt"]


def test_an_old_record_of_many_calls_is_read_in_pages(rail, workspace: Path, again) -> None:
    (workspace / "a.txt").write_text("hello\n")
    with rail(session="long") as opened:
        for _ in range(501):
            opened.read("a.txt")
    assert again(PolicyConfig("auto")).calls == 501
