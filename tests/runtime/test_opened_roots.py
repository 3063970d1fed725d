"""Folders outside the workspace: refused by default; where people are asked, opened by an answer and closed again."""

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail import (
    AsyncHandrail,
    Context,
    Done,
    Handrail,
    Parked,
    PermissionRequest,
    ToolCall,
    UsageError,
    tool,
)
from handrail.protocol.events import Notice, ToolCallPermissionGranted
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.settings.model import Paths, Tools
from handrail.store.state_dir import StateFolder
from handrail.tools.tool import Touches
from handrail.workspace.facts import build_command_fact
from handrail.workspace.roots import open_root
from handrail.workspace.workspace import Workspace

Make = Callable[..., Handrail]
ASK = Settings(paths=Paths(outside="ask"))


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder outside the workspace."""
    folder = tmp_path / "other"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("secret text of a\n")
    (folder / "b.txt").write_text("text of b\n")
    (folder / "sub" / "c.txt").write_text("text of c\n")
    return folder


@pytest.fixture
def asks(rail: Make) -> Make:
    """Opens Handrails whose settings let people be asked."""
    return lambda **options: rail(**{"settings": ASK, **options})


def asked(result: ToolResult[Any]) -> dict[str, Any]:
    assert result.error is not None
    assert result.error.code == "PERMISSION_REQUIRED", result.content
    assert isinstance(result.error.details, dict)
    return result.error.details


def code(result: ToolResult[Any]) -> str | None:
    return result.error.code if result.error else None


def answered(house: Handrail, result: ToolResult[Any], kind: Any) -> ToolResult[Any]:
    outcome = house.answer(asked(result)["id"], kind)
    assert isinstance(outcome, Done)
    return outcome.results[0]


# Whether it asks


def test_by_default_a_path_outside_is_refused_without_a_look(rail: Make, other: Path) -> None:
    house = rail()
    assert code(house.read(str(other / "a.txt"))) == "OUTSIDE_WORKSPACE"
    assert house.waiting() == ()


def test_where_nobody_is_there_it_is_refused(asks: Make, other: Path) -> None:
    house = asks(unattended=True)
    assert code(house.read(str(other / "a.txt"))) == "OUTSIDE_WORKSPACE"
    assert code(house.write(str(other / "a.txt"), "x")) == "OUTSIDE_WORKSPACE"


def test_the_question_names_the_folder_and_what_it_is_opened_for(asks: Make, other: Path) -> None:
    house = asks()
    request = asked(house.read(str(other / "a.txt")))
    assert request["kind"] == "external_directory"
    assert request["pattern"] == (str(other), f"{other}/*")
    assert request["access"] == "read"
    assert request["answers"] == ("once", "session", "workspace", "deny")
    assert request["rule"] == "fs.outside"
    assert str(other) in request["reason"]
    assert asked(house.write(str(other / "new.txt"), "x"))["access"] == "write"


@pytest.mark.parametrize("name", ["ls", "find", "grep"])
def test_a_tool_that_looks_into_a_folder_asks_for_that_folder(asks: Make, other: Path, name: str) -> None:
    house = asks()
    args = {"path": str(other)} if name == "ls" else {"path": str(other), "pattern": "text"}
    first = house.call(name, args)
    assert asked(first)["pattern"][0] == str(other)
    assert answered(house, first, "once").ok


def test_the_question_tells_nothing_of_what_is_in_the_folder(asks: Make, other: Path) -> None:
    """Neither a preview nor a refusal of an edit that does not fit says what the file holds."""
    house = asks(mode="ask")
    for result in (
        house.read(str(other / "a.txt")),
        house.write(str(other / "a.txt"), "x\n"),
        house.edit(str(other / "a.txt"), "not there", "y"),
    ):
        assert "preview" not in asked(result)
        assert "secret" not in str(result)


def test_plan_mode_writes_nothing_outside_but_may_read_after_a_yes(asks: Make, other: Path) -> None:
    house = asks(mode="plan")
    assert code(house.write(str(other / "a.txt"), "x")) == "OUTSIDE_WORKSPACE"
    assert answered(house, house.read(str(other / "a.txt")), "once").ok


def test_a_refusal_is_the_result(asks: Make, other: Path) -> None:
    house = asks()
    result = answered(house, house.read(str(other / "a.txt")), "deny")
    assert code(result) == "PERMISSION_DENIED"
    assert house.opened_folders() == ()


def test_other_requests_have_no_more_answers_than_before(asks: Make, workspace: Path) -> None:
    house = asks(mode="ask")
    request = asked(house.write("a.txt", "x"))
    assert request["answers"] == ("once", "edits", "deny")
    assert not {"kind", "pattern", "access"} & set(request)
    with pytest.raises(UsageError, match="not with 'session'"):
        house.answer(request["id"], "session")


# How long it is open


def test_once_is_for_that_call_only(asks: Make, other: Path) -> None:
    house = asks()
    assert "secret text of a" in answered(house, house.read(str(other / "a.txt")), "once").content
    asked(house.read(str(other / "a.txt")))
    assert house.opened_folders() == ()


def test_once_is_for_no_other_call_of_its_batch(asks: Make, other: Path) -> None:
    def read(name: str) -> ToolCall:
        args = {"path": str(other / name)}
        return ToolCall(tool_call_id=name, name="read", args=args, trace_id=name, timestamp=datetime.now(UTC))

    house = asks()
    outcome = house.batch((read("a.txt"), read("b.txt")))
    assert isinstance(outcome, Parked)
    first, second = outcome.requests
    house.answer(first.id, "once")
    last = house.answer(second.id, "deny")
    assert isinstance(last, Done)
    assert [result.ok for result in last.results] == [True, False]


def test_once_is_not_seen_by_other_threads(asks: Make, other: Path) -> None:
    seen: list[str] = []
    house: list[Handrail] = []

    @tool(permissions=("fs.read",), read_only=True, auto_execute=True)
    def look(context: Context, path: str) -> str:
        """Looks at a file while another thread reads it."""
        with context.workspace.open_file(path), ThreadPoolExecutor(1) as pool:
            seen.append(code(pool.submit(house[0].read, path).result()) or "")
        return "done"

    declared = msgspec.structs.replace(look, touches=lambda arguments: Touches(reads=(arguments.path,)))
    house.append(asks(tools=(declared,)))
    assert answered(house[0], house[0].call("look", {"path": str(other / "a.txt")}), "once").ok
    assert seen == ["PERMISSION_REQUIRED"]


def test_for_the_session_it_stays_open_also_when_the_session_is_opened_again(asks: Make, other: Path) -> None:
    house = asks(session="one")
    answered(house, house.read(str(other / "a.txt")), "session")
    assert house.read(str(other / "b.txt")).ok
    assert house.read(str(other / "sub" / "c.txt")).ok
    (opened,) = house.opened_folders()
    assert (opened.path, opened.access, opened.scope, opened.session_id) == (str(other), "read", "session", "one")
    house.close()
    assert asks(session="one").read(str(other / "b.txt")).ok
    asked(asks(session="two").read(str(other / "b.txt")))


def test_for_the_workspace_it_is_open_to_every_session_of_it(asks: Make, other: Path, tmp_path: Path) -> None:
    house = asks(session="one")
    answered(house, house.read(str(other / "a.txt")), "workspace")
    assert asks(session="two").read(str(other / "b.txt")).ok
    assert asks(session="three", unattended=True).read(str(other / "b.txt")).ok
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    asked(asks(workspace=elsewhere).read(str(other / "b.txt")))


def test_what_is_kept_is_for_the_owner_only(asks: Make, other: Path, workspace: Path, tmp_path: Path) -> None:
    house = asks()
    answered(house, house.read(str(other / "a.txt")), "workspace")
    folder = Path(StateFolder(str(tmp_path / "state")).opened_folders(str(workspace)))
    (kept,) = folder.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"{", b'{"path": "/"}', b"\xff"])
def test_what_cannot_be_read_is_not_open(
    asks: Make, other: Path, workspace: Path, tmp_path: Path, damage: bytes
) -> None:
    house = asks(session="one")
    answered(house, house.read(str(other / "a.txt")), "workspace")
    folder = Path(StateFolder(str(tmp_path / "state")).opened_folders(str(workspace)))
    next(folder.iterdir()).write_bytes(damage)
    asked(asks(session="two").read(str(other / "a.txt")))


def test_an_entry_under_another_name_is_not_open(asks: Make, other: Path, workspace: Path, tmp_path: Path) -> None:
    house = asks(session="one")
    answered(house, house.read(str(other / "a.txt")), "workspace")
    folder = Path(StateFolder(str(tmp_path / "state")).opened_folders(str(workspace)))
    entry = next(folder.iterdir())
    entry.rename(folder / entry.name.replace("-read", "-write"))
    asked(asks(session="two").read(str(other / "a.txt")))


def test_where_the_settings_no_longer_ask_nothing_opened_is_in_force(rail: Make, asks: Make, other: Path) -> None:
    house = asks()
    answered(house, house.read(str(other / "a.txt")), "workspace")
    strict = rail()
    assert code(strict.read(str(other / "a.txt"))) == "OUTSIDE_WORKSPACE"
    assert [folder.path for folder in strict.opened_folders()] == [str(other)]
    strict.close_folder(other)
    assert house.opened_folders() == ()


def test_a_question_can_be_answered_after_a_restart(asks: Make, other: Path) -> None:
    house = asks(session="one")
    request = asked(house.read(str(other / "a.txt")))
    house.close()
    again = asks(session="one")
    outcome = again.answer(request["id"], "session")
    assert isinstance(outcome, Done)
    assert "secret text" in outcome.results[0].content
    granted = [event for event in again.events() if isinstance(event, ToolCallPermissionGranted)]
    assert granted[0].answer.kind == "session"
    assert granted[0].permission_request.pattern == (str(other), f"{other}/*")


def test_a_person_who_is_called_back_opens_it_too(asks: Make, other: Path) -> None:
    requests: list[PermissionRequest] = []

    def say(request: PermissionRequest) -> Any:
        requests.append(request)
        return "session"

    house = asks(on_permission=say)
    assert house.read(str(other / "a.txt")).ok
    assert house.read(str(other / "b.txt")).ok
    assert len(requests) == 1


# What it is open for


def test_what_is_opened_for_reading_is_written_only_after_another_yes(asks: Make, other: Path) -> None:
    house = asks()
    answered(house, house.read(str(other / "a.txt")), "session")
    second = house.write(str(other / "a.txt"), "new\n")
    assert asked(second)["access"] == "write"
    assert answered(house, second, "session").ok
    assert (other / "a.txt").read_text() == "new\n"
    assert house.write(str(other / "b.txt"), "new\n").ok
    assert [(folder.path, folder.access) for folder in house.opened_folders()] == [(str(other), "write")]


def test_a_root_that_the_settings_open_for_reading_is_never_asked_about(rail: Make, other: Path) -> None:
    house = rail(settings=Settings(paths=Paths(read_only=(str(other),), outside="ask")))
    assert code(house.write(str(other / "a.txt"), "x")) == "POLICY_DENIED"


def test_of_a_folder_opened_twice_the_stronger_counts(asks: Make, other: Path) -> None:
    house = asks()
    answered(house, house.write(str(other / "a.txt"), "x\n"), "session")
    other_session = asks(session="two")
    answered(other_session, other_session.read(str(other / "b.txt")), "workspace")
    assert house.write(str(other / "b.txt"), "y\n").ok


def test_a_new_file_in_new_folders_opens_the_nearest_folder_there_is(asks: Make, other: Path) -> None:
    house = asks()
    first = house.write(str(other / "new" / "deep" / "x.txt"), "x\n")
    assert asked(first)["pattern"][0] == str(other)
    assert answered(house, first, "once").ok
    assert (other / "new" / "deep" / "x.txt").read_text() == "x\n"


def test_writes_in_an_opened_folder_ask_as_elsewhere(asks: Make, other: Path) -> None:
    house = asks(mode="ask")
    answered(house, house.write(str(other / "a.txt"), "x\n"), "session")
    request = asked(house.write(str(other / "b.txt"), "y\n"))
    assert (request["rule"], "kind" in request) == ("fs.write", False)
    assert "-text of b" in request["preview"]["text"]


def test_a_deletion_opens_the_folder_of_the_name(asks: Make, other: Path) -> None:
    (other / "link").symlink_to("/etc/hosts")
    house = asks(settings=Settings(paths=Paths(outside="ask"), tools=Tools(enable=("delete",))))
    first = house.delete(str(other / "link"))
    assert asked(first)["pattern"][0] == str(other)
    assert answered(house, first, "once").ok
    assert not (other / "link").is_symlink()


@pytest.mark.parametrize("name", ["missing", "sub/..", "sub/../missing"])
def test_a_deletion_of_what_is_no_name_or_not_there_deletes_nothing(asks: Make, other: Path, name: str) -> None:
    house = asks(settings=Settings(paths=Paths(outside="ask"), tools=Tools(enable=("delete",))))
    result = house.delete(f"{other}/{name}")
    if code(result) == "PERMISSION_REQUIRED":
        result = answered(house, result, "once")
    assert not result.ok
    assert sorted(path.name for path in other.iterdir()) == ["a.txt", "b.txt", "sub"]


# What stays shut


@pytest.mark.parametrize("name", [".env", "server.pem", ".ssh/config", ".aws/credentials", ".config/gh/hosts.yml"])
def test_credentials_are_refused_without_a_question_and_in_an_opened_folder(asks: Make, other: Path, name: str) -> None:
    (other / name).parent.mkdir(parents=True, exist_ok=True)
    (other / name).write_text("TOKEN=1")
    house = asks()
    assert code(house.read(str(other / name))) == "POLICY_DENIED"
    answered(house, house.read(str(other / "a.txt")), "session")
    assert code(house.read(str(other / name))) == "POLICY_DENIED"
    assert "TOKEN" not in house.grep("TOKEN", str(other)).content


@pytest.mark.parametrize("path", ["/etc/hosts", "/hosts", "/proc/self/environ", "/sys/kernel/x", "/dev/null", "/"])
def test_some_folders_are_never_opened(asks: Make, path: str) -> None:
    result = asks().read(path)
    assert code(result) == "OUTSIDE_WORKSPACE"
    assert "; " in result.content


def test_home_folders_are_never_opened(asks: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / ".cargo").mkdir(parents=True)
    (home / "project").mkdir()
    for name in ("x.txt", ".cargo/config.toml", "project/x.txt"):
        (home / name).write_text("x")
    monkeypatch.setenv("HOME", str(home))
    house = asks()
    assert code(house.read(str(home / "x.txt"))) == "OUTSIDE_WORKSPACE"
    assert code(house.read(str(tmp_path / "x.txt"))) == "OUTSIDE_WORKSPACE"
    assert code(house.ls("/home/somebody")) == "OUTSIDE_WORKSPACE"
    assert "credentials are kept there" in house.read(str(home / ".cargo" / "config.toml")).content
    asked(house.read(str(home / "project" / "x.txt")))


def test_what_must_stay_shut_by_now_is_not_opened_again(
    asks: Make, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = asks(session="one")
    answered(house, house.read(str(other / "a.txt")), "session")
    house.close()
    monkeypatch.setenv("HOME", str(other))
    assert code(asks(session="one").read(str(other / "a.txt"))) == "OUTSIDE_WORKSPACE"


def test_what_handrail_keeps_for_itself_is_never_opened(
    asks: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings" / "config.toml"
    settings.parent.mkdir()
    settings.write_text("")
    monkeypatch.setenv("HANDRAIL_CONFIG", str(settings))
    house = asks(session="one")
    for path in (
        tmp_path / "state" / "audit.jsonl",
        next((tmp_path / "state").glob("workspaces/*/one/journal.db")),
        settings,
        tmp_path / "state",
    ):
        result = house.read(str(path))
        assert code(result) == "OUTSIDE_WORKSPACE", path
        assert "it has handrail's own files" in result.content
    assert code(house.ls(str(tmp_path))) == "OUTSIDE_WORKSPACE"


def test_a_name_that_cannot_be_shown_is_not_asked_about(asks: Make, tmp_path: Path) -> None:
    folder = tmp_path / "a\u202eb"
    folder.mkdir()
    (folder / "x").write_text("x")
    assert code(asks().read(str(folder / "x"))) == "OUTSIDE_WORKSPACE"


# Ways in


@pytest.mark.parametrize("resolver", ["kernel", "walk"])
def test_paths_that_go_up_and_links_lead_into_an_opened_folder(
    asks: Make, other: Path, workspace: Path, resolver: str
) -> None:
    (workspace / "absolute").symlink_to(other)
    (workspace / "relative").symlink_to("../other")
    house = asks(resolver=resolver)
    for path in ("../other/a.txt", "absolute/a.txt", "relative/a.txt", "relative/../other/sub/../a.txt"):
        first = house.read(path)
        assert asked(first)["pattern"][0] == str(other), path
        assert "secret text" in answered(house, first, "once").content, path
    assert code(house.read("../workspace/x.txt")) == "OUTSIDE_WORKSPACE"


def test_a_folder_named_through_a_link_is_opened_where_it_is(asks: Make, other: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(other)
    house = asks(session="one")
    first = house.read(str(tmp_path / "alias" / "a.txt"))
    assert asked(first)["pattern"][0] == str(other)
    assert answered(house, first, "session").ok
    assert house.read(str(tmp_path / "alias" / "b.txt")).ok
    assert house.read(str(other / "b.txt")).ok
    house.close()
    assert asks(session="one").read(str(tmp_path / "alias" / "b.txt")).ok


def test_a_file_that_is_a_link_to_elsewhere_is_to_be_named_by_its_own_path(
    asks: Make, other: Path, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "link").symlink_to(other / "a.txt")
    result = asks().read(str(tmp_path / "more" / "link"))
    assert code(result) == "OUTSIDE_WORKSPACE"
    assert f"it leads to {other}/a.txt" in result.content


def test_what_leads_back_into_the_workspace_is_to_be_named_there(asks: Make, workspace: Path) -> None:
    (workspace / "x.txt").write_text("x")
    (workspace.parent / "back").symlink_to(workspace)
    result = asks().read(str(workspace.parent / "back" / "x.txt"))
    assert code(result) == "OUTSIDE_WORKSPACE"
    assert "leads back" in result.content


def test_links_in_an_opened_folder_do_not_lead_further(asks: Make, other: Path, tmp_path: Path) -> None:
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "x.txt").write_text("hidden")
    (other / "way").symlink_to(tmp_path / "third")
    house = asks()
    answered(house, house.read(str(other / "a.txt")), "session")
    assert "hidden" not in str(house.read(str(other / "way" / "x.txt")))
    assert "hidden" not in str(house.grep("hidden", str(other)))


def test_a_folder_that_is_another_one_by_the_time_of_the_yes_is_not_opened(
    asks: Make, other: Path, tmp_path: Path
) -> None:
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "a.txt").write_text("hidden")
    house = asks()
    first = house.read(str(other / "a.txt"))
    other.rename(tmp_path / "moved")
    other.symlink_to(tmp_path / "third")
    result = answered(house, first, "session")
    assert code(result) == "CONFLICT"
    assert "hidden" not in str(result)
    assert house.opened_folders() == ()


@pytest.mark.parametrize("kind", ["once", "session"])
def test_where_one_of_two_folders_is_gone_the_other_is_not_left_open(
    asks: Make, other: Path, tmp_path: Path, kind: str
) -> None:
    @tool(permissions=("fs.read",), read_only=True, auto_execute=True)
    def compare(one: str, two: str) -> str:
        """Compare two files."""
        return "the same"

    def paths(arguments: Any) -> Touches:
        return Touches(reads=(arguments.one, arguments.two))

    (third := tmp_path / "third").mkdir()
    (third / "a.txt").write_text("a")
    house = asks(tools=[msgspec.structs.replace(compare, touches=paths)])
    first = house.call("compare", {"one": str(other / "a.txt"), "two": str(third / "a.txt")})
    third.rename(tmp_path / "moved")
    assert code(answered(house, first, kind)) == "CONFLICT"
    descriptors = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    assert str(other) not in [os.readlink(one) for one in descriptors if os.path.lexists(one)]


def test_a_path_that_leads_elsewhere_by_the_time_of_the_yes_is_refused(
    asks: Make, other: Path, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "third").mkdir()
    (tmp_path / "third" / "a.txt").write_text("hidden")
    (workspace / "link").symlink_to(other)
    house = asks()
    first = house.read("link/a.txt")
    (workspace / "link").unlink()
    (workspace / "link").symlink_to(tmp_path / "third")
    result = answered(house, first, "once")
    assert code(result) == "OUTSIDE_WORKSPACE"
    assert "hidden" not in str(result)


def test_a_command_never_opens_a_folder_and_may_read_what_is_open(asks: Make, other: Path, workspace: Path) -> None:
    """No mode and no answer lets a command write outside the roots."""
    house = asks(session="one")
    answered(house, house.read(str(other / "a.txt")), "workspace")
    with Workspace(str(workspace)) as roots:
        before = build_command_fact(roots, str(other / "a.txt"), "read")
        assert (before.real, before.folder) == (None, None)
        opened = open_root(str(other), writable=False)
        assert opened is not None
        roots.root_sets.replace("person", [opened])
        assert build_command_fact(roots, str(other / "a.txt"), "read").real == str(other / "a.txt")
        assert not build_command_fact(roots, str(other / "a.txt"), "write").writable


# Closing


def test_a_closed_folder_is_closed_at_once_in_every_session_and_process(asks: Make, other: Path) -> None:
    house, second = asks(session="one"), asks(session="two")
    answered(house, house.read(str(other / "a.txt")), "workspace")
    assert second.read(str(other / "a.txt")).ok
    house.close_folder(str(other))
    asked(second.read(str(other / "a.txt")))
    asked(house.read(str(other / "a.txt")))
    assert house.opened_folders() == ()
    assert [event.text for event in house.events() if isinstance(event, Notice)] == [f"The folder {other} was closed."]
    with pytest.raises(UsageError, match="was not opened"):
        house.close_folder(other)


def test_undo_in_a_closed_folder_is_refused_and_changes_nothing(asks: Make, other: Path) -> None:
    house = asks()
    answered(house, house.write(str(other / "a.txt"), "new\n"), "session")
    house.close_folder(other)
    result = house.undo()
    assert code(result) == "OUTSIDE_WORKSPACE", result.content
    assert "is not in a root of this session." in result.content
    assert (other / "a.txt").read_text() == "new\n"
    answered(house, house.write(str(other / "b.txt"), "new\n"), "session")
    assert house.undo(1).ok
    assert (other / "a.txt").read_text() == "secret text of a\n"


def test_the_folder_that_was_opened_may_be_gone(asks: Make, other: Path, tmp_path: Path) -> None:
    house = asks(session="one")
    answered(house, house.read(str(other / "a.txt")), "session")
    house.close()
    other.rename(tmp_path / "moved")
    again = asks(session="one")
    assert again.write("x.txt", "x").ok
    assert [folder.path for folder in again.opened_folders()] == [str(other)]


def test_folders_that_come_and_go_disturb_no_call_on_its_way(asks: Make, other: Path, workspace: Path) -> None:
    (workspace / "x.txt").write_text("inside\n")
    house = asks(on_permission=lambda _: "session")
    wrong: list[str] = []
    over = threading.Event()

    def read_all_the_time() -> None:
        while not over.is_set():
            inside, outside = house.read("x.txt"), house.read(str(other / "a.txt"))
            if "inside" not in inside.content or (outside.ok and "secret text of a" not in outside.content):
                wrong.append(inside.content + outside.content)

    readers = [threading.Thread(target=read_all_the_time) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(30):
        house.read(str(other / "a.txt"))
        with contextlib.suppress(UsageError):
            house.close_folder(other)
    over.set()
    for reader in readers:
        reader.join()
    assert wrong == []


def test_descriptors_of_once_are_given_back(asks: Make, other: Path) -> None:
    house = asks(on_permission=lambda _: "once")
    house.read(str(other / "a.txt"))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        assert house.read(str(other / "a.txt")).ok
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_async_library_lists_and_closes_too(other: Path, workspace: Path, tmp_path: Path) -> None:
    async def work() -> list[str]:
        options: dict[str, Any] = {"settings": ASK, "state_dir": tmp_path / "state", "mode": "auto"}
        async with AsyncHandrail(workspace, on_permission=lambda _: "workspace", **options) as house:
            await house.read(str(other / "a.txt"))
            listed = [folder.path for folder in await house.opened_folders()]
            await house.close_folder(other)
            return listed + [folder.path for folder in await house.opened_folders()]

    assert asyncio.run(work()) == [str(other)]
