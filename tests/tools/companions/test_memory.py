"""memory: notes about a workspace that last, bounded, and in nobody's way."""

import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail, ToolResult
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.store.memories import MAX_MEMORIES, MAX_MEMORY_CHARACTERS

ON = Settings(tools=Tools(enable=("memory",)))


def note(one: Handrail, title: str = "Tests", content: str = "make test") -> ToolResult[Any]:
    return one.call("memory", {"action": "create", "title": title, "content": content})


def fill(one: Handrail, folder: Path, count: int) -> None:
    """Makes so many notes, most of them by hand, which is faster."""
    note(one, "the first", "x")
    (file,) = (folder / "state" / "workspaces").glob("*/.memories/*")
    for number in range(10, 10 + count - 1):
        (file.parent / f"m-000{number}").write_bytes(file.read_bytes().replace(file.name.encode(), b"m-000%d" % number))


def code(result: ToolResult[Any]) -> str | None:
    return result.error.code if result.error else None


def test_a_note_is_there_for_every_later_session_of_the_workspace_and_no_other(
    rail: Callable[..., Handrail], tmp_path: Path
) -> None:
    one = rail(settings=ON, mode="full", session="a")
    assert note(one).ok
    (kept,) = rail(settings=ON, session="b").memories()
    assert (kept.title, kept.content, kept.session_id) == ("Tests", "make test", "a")
    other = tmp_path / "other"
    other.mkdir()
    assert rail(settings=ON, workspace=other).memories() == ()


def test_a_note_is_changed_listed_and_deleted_by_its_id(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON, mode="full")
    (made,) = note(one).data.notes
    changed = one.call("memory", {"action": "update", "id": made.id, "content": "make check"})
    assert changed.content == f"Changed {made.id}: Tests\n"
    listed = one.call("memory", {"action": "list"})
    assert listed.content.startswith(f"{made.id}  Tests (")
    assert "  make check\n" in listed.content
    assert one.memories() == listed.data.notes
    assert one.call("memory", {"action": "delete", "id": made.id}).ok
    assert one.call("memory", {"action": "list"}).content == "There are no notes yet.\n"
    assert code(one.call("memory", {"action": "delete", "id": made.id})) == "NOT_FOUND"
    assert code(one.call("memory", {"action": "update", "id": made.id, "title": "x"})) == "NOT_FOUND"


def test_what_is_noted_already_is_not_noted_again(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON, mode="full")
    (made,) = note(one).data.notes
    assert code(note(one)) == "NO_CHANGE"
    assert code(one.call("memory", {"action": "update", "id": made.id, "title": "Tests"})) == "NO_CHANGE"
    assert len(one.memories()) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"action": "create", "title": "x"}, "create needs content"),
        ({"action": "create", "title": "x", "content": "y", "id": "m-1"}, "create takes no id"),
        ({"action": "update", "id": "m-1"}, "title or content"),
        ({"action": "update", "title": "x"}, "update needs id"),
        ({"action": "delete"}, "delete needs id"),
        ({"action": "list", "id": "m-1"}, "list takes no id"),
        ({"action": "create", "title": "a\nb", "content": "y"}, "one printable line"),
        ({"action": "create", "title": "a\x1b[2J", "content": "y"}, "one printable line"),
        ({"action": "create", "title": " ", "content": "y"}, "one printable line"),
        ({"action": "create", "title": "a", "content": " \n"}, "content must say something"),
        ({"action": "create", "title": "a" * 121, "content": "y"}, "120"),
        ({"action": "create", "title": "a", "content": "y" * 2_001}, "2000"),
        ({"action": "forget"}, "action"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(rail: Callable[..., Handrail], args: Any, words: str) -> None:
    result = rail(settings=ON, mode="full").call("memory", args)
    assert code(result) == "INVALID_ARGUMENT"
    assert words in result.content


@pytest.mark.parametrize("name", ["../../audit.jsonl", "m-../x", "", ".", "m-"])
def test_an_id_is_no_path(rail: Callable[..., Handrail], tmp_path: Path, name: str) -> None:
    one = rail(settings=ON, mode="full")
    note(one)
    assert code(one.call("memory", {"action": "delete", "id": name})) in {"NOT_FOUND", "INVALID_ARGUMENT"}
    assert (tmp_path / "state" / "audit.jsonl").exists()
    assert len(one.memories()) == 1


def test_there_is_room_for_so_many_notes(rail: Callable[..., Handrail], tmp_path: Path) -> None:
    one = rail(settings=ON, mode="full")
    fill(one, tmp_path, MAX_MEMORIES)
    full = note(one, "one more", "x")
    assert code(full) == "LIMIT_EXCEEDED"
    assert "Delete" in full.content
    assert one.call("memory", {"action": "update", "id": one.memories()[0].id, "content": "y"}).ok


def test_there_is_room_for_so_many_characters(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON, mode="full")
    for number in range(MAX_MEMORY_CHARACTERS // 2_010):
        assert note(one, f"note {number}", "x" * 2_000).ok
    assert code(note(one, "one more", "x" * 2_000)) == "LIMIT_EXCEEDED"
    assert note(one, "a small one", "x").ok


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"mode": "plan"}, "POLICY_DENIED"),
        ({"mode": "ask"}, "PERMISSION_REQUIRED"),
        ({"mode": "auto"}, "PERMISSION_REQUIRED"),
        ({"mode": "full"}, None),
        ({"mode": "auto", "unattended": True}, "PERMISSION_DENIED"),
        ({"mode": "full", "unattended": True}, None),
        ({"mode": "full", "settings": Settings(tools=ON.tools, profile="restricted")}, "POLICY_DENIED"),
    ],
)
def test_who_may_note_something(rail: Callable[..., Handrail], more: Any, expected: str | None) -> None:
    one = rail(**{"settings": ON, "on_permission": lambda _: None, **more})
    assert code(note(one)) == expected
    assert len(one.memories()) == (expected is None)
    assert one.call("memory", {"action": "list"}).ok


def test_who_is_asked_sees_what_would_be_noted(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON, mode="ask", on_permission=lambda _: None)
    note(one, "Deploys", "always with --force")
    (request,) = one.waiting()
    assert request.description == "Memory: create Deploys"
    assert request.answers == ("once", "deny")
    assert request.preview is not None
    assert "+always with --force\n" in request.preview.text
    one.answer(request, "once")
    assert one.memories()[0].title == "Deploys"


def test_notes_are_for_their_owner_only_and_the_audit_has_none_of_their_text(
    rail: Callable[..., Handrail], tmp_path: Path
) -> None:
    one = rail(settings=ON, mode="full")
    note(one, "Whereabouts", "under the mat")
    (file,) = (tmp_path / "state" / "workspaces").glob("*/.memories/*")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    audit = (tmp_path / "state" / "audit.jsonl").read_text()
    assert "create" in audit
    assert "Whereabouts" not in audit
    assert "under the mat" not in audit


def test_a_note_that_cannot_be_read_is_none_and_harms_no_other(rail: Callable[..., Handrail], tmp_path: Path) -> None:
    one = rail(settings=ON, mode="full")
    note(one)
    (file,) = (tmp_path / "state" / "workspaces").glob("*/.memories/*")
    (file.parent / "m-zzzzz").write_bytes(b"{")
    (file.parent / "m-yyyyy").write_bytes(file.read_bytes())
    assert len(one.memories()) == 1


_NOTE_MANY = """
import sys
from tests.tools.companions.test_memory import ON, note
from handrail import Handrail
with Handrail(sys.argv[1], state_dir=sys.argv[2], settings=ON, mode="full") as rail:
    print("ready", flush=True)
    sys.stdin.readline()
    print(sum(note(rail, f"{sys.argv[3]} {number}", "x").ok for number in range(4)))
"""


def test_processes_that_note_at_once_lose_nothing_and_do_not_pass_the_bound(
    rail: Callable[..., Handrail], workspace: Path, tmp_path: Path
) -> None:
    fill(rail(settings=ON, mode="full"), tmp_path, MAX_MEMORIES - 5)
    command = [sys.executable, "-c", _NOTE_MANY, str(workspace), str(tmp_path / "state")]
    writers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in "ab"
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert sum(int(writer.communicate()[0]) for writer in writers) == 5
    assert len(rail(settings=ON).memories()) == MAX_MEMORIES


_TITLE = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120).filter(
    lambda text: bool(text.strip()) and text.isprintable()
)
_CONTENT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=2_000).filter(lambda text: bool(text.strip()))


def test_every_note_comes_back_as_it_was_given(rail: Callable[..., Handrail]) -> None:
    one = rail(settings=ON, mode="full")

    @given(_TITLE, _CONTENT)
    def comes_back(title: str, content: str) -> None:
        (made,) = note(one, title, content).data.notes
        (kept,) = one.memories()
        assert (kept, kept.title, kept.content) == (made, title, content)
        assert one.call("memory", {"action": "delete", "id": made.id}).ok
        assert one.memories() == ()

    comes_back()
