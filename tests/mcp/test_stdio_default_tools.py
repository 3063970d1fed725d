"""A client has the tools before there is a session, and is told where the session has others."""

from pathlib import Path
from typing import Any

from stdio_process import Server

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools

EIGHT = ["read", "write", "edit", "find", "grep", "ls", "exec", "process"]


def listed(server: Server) -> list[str]:
    return [tool["name"] for tool in server.asks("tools/list")["result"]["tools"]]


def test_the_list_is_the_same_before_and_after_the_session_is_opened(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        server.initialize()
        before: Any = server.asks("tools/list")["result"]
        assert server.asks("tools/list")["result"] == before
        assert [tool["name"] for tool in before["tools"]] == EIGHT
        assert server.told("notifications/tools/list_changed") == []


def test_a_session_that_has_other_tools_than_were_told_says_so(tmp_path: Path) -> None:
    skill = tmp_path / "workspace" / ".claude" / "skills" / "look" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: look\ndescription: Only looks.\nallowed-tools: Read\n---\nLook.\n")
    settings = Settings(mode="full", tools=Tools(enable=("skill_control",)))
    place = {"session": "mcp-test-client", "state_dir": tmp_path / "state", "settings": settings}
    with Handrail(tmp_path / "workspace", **place) as rail:  # a skill that stays active when the tool is off again
        assert rail.call("skill_control", {"name": "look", "action": "activate"}).ok
    with Server(tmp_path) as server:
        server.initialize()
        assert listed(server) == EIGHT
        server.sees(lambda message: message.get("method") == "notifications/tools/list_changed")
        assert listed(server) == ["read"]


def test_where_the_settings_speak_of_tools_the_session_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "home" / ".config" / "handrail" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[tools]\nenable = ["todo"]\ndisable = ["exec", "process"]\n')
    with Server(tmp_path) as server:
        server.initialize()
        assert listed(server) == [*EIGHT[:-2], "todo"]
        assert server.told("notifications/tools/list_changed") == []


def test_a_session_that_cannot_be_opened_behind_the_list_is_told_to_the_first_call(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    with Server(tmp_path) as server:
        server.initialize()
        assert listed(server) == EIGHT
        error = server.error(server.call("ls", {"path": "."}))
        assert error["code"] == -32603
        assert str(tmp_path / "state") in error["message"]
        (tmp_path / "state").unlink()
        assert server.result(server.call("ls", {"path": "."}))["isError"] is False
    assert str(tmp_path / "state").encode() in server.errors
