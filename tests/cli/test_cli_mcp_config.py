"""mcp --config: shows what a client's files would become, writes it when asked, and loses nothing of them."""

import json
import os
import pty
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.mcp.hosts.hosts import CLAUDE_TOOLS, LaunchCommand, list_hosts

NAMES = ["claude-code", "cursor", "vscode", "zed", "codex", "opencode"]
FILES = {
    "claude-code": [".mcp.json", ".claude/settings.json"],
    "cursor": [".cursor/mcp.json", ".cursor/cli.json"],
    "vscode": [".vscode/mcp.json", ".github/agents/handrail.agent.md"],
    "zed": ["../home/.config/zed/settings.json"],
    "codex": [".codex/config.toml"],
    "opencode": ["opencode.json"],
}
SERVERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "claude-code": lambda said: said["mcpServers"]["handrail"],
    "cursor": lambda said: said["mcpServers"]["handrail"],
    "vscode": lambda said: said["servers"]["handrail"],
    "zed": lambda said: said["context_servers"]["handrail"],
    "codex": lambda said: said["mcp_servers"]["handrail"],
    "opencode": lambda said: said["mcp"]["handrail"],
}


@pytest.fixture
def run(here):
    """In this process: there are many."""
    return here


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """A PATH with our program on it, as an installation puts it there."""
    program = tmp_path / "bin" / "handrail"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m handrail "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def command_of(name: str, workspace: Path) -> list[str]:
    """The words that a client starts, as its file has them."""
    text = (workspace / FILES[name][0]).read_text()
    entry = SERVERS[name](tomllib.loads(text) if name == "codex" else json.loads(text))
    words = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    return [word.replace("${workspaceFolder}", str(workspace)) for word in words]


@pytest.mark.parametrize("name", NAMES)
def test_what_would_change_is_shown_and_nothing_is_written(run, tmp_path: Path, name: str) -> None:
    done = run("mcp", "--config", name)
    assert done.code == 0
    own = str(tmp_path / "home").lstrip("/")
    assert [line[6:] for line in done.out.splitlines() if line.startswith("+++ ")] == [
        path.replace("../home", own) for path in FILES[name]
    ]
    assert "Nothing was written." in done.err
    assert "Not disabled: " in done.err
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("name", NAMES)
def test_what_was_shown_is_written_and_a_second_time_nothing_is(run, workspace: Path, name: str) -> None:
    shown = run("mcp", "--config", name)
    written = run("mcp", "--config", name, "--write")
    assert (written.code, written.out) == (0, shown.out)
    assert "Written: " in written.err
    assert all((workspace / path).is_file() for path in FILES[name])
    before = contents(workspace.parent)
    again = run("mcp", "--config", name, "--write")
    assert (again.code, again.out) == (0, "")
    assert "already set up" in again.err
    assert contents(workspace.parent) == before


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_starts_a_server_that_lists_the_tools(
    run, workspace: Path, environment: dict[str, str], installed: str, name: str
) -> None:
    run("mcp", "--config", name, "--write", PATH=installed)
    asked = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    asked[0]["params"]["clientInfo"] = {"name": name, "version": "1"}
    lines = "".join(f"{json.dumps({'jsonrpc': '2.0', **message})}\n" for message in asked)
    words = command_of(name, workspace)
    assert words[0] == "handrail"
    server = subprocess.Popen(
        words, cwd=workspace, env={**environment, "PATH": installed}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with server:
        server.stdin.write(lines.encode())
        server.stdin.flush()
        answers = {}
        while 2 not in answers:
            answer = json.loads(server.stdout.readline())
            answers[answer.get("id")] = answer
        server.stdin.close()
    assert [tool["name"] for tool in answers[2]["result"]["tools"]][:2] == ["read", "write"]


def entered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An environment that has our program and is on no PATH but that of whoever entered it; the program's path."""
    program = folder / "bin" / "handrail"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "prefix", str(folder))
    return str(program)


@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_is_only_in_the_entered_environment_goes_in_by_its_path_and_that_is_said(
    run, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    program = entered(tmp_path / "environment", monkeypatch)
    done = run("mcp", "--config", name, "--write", PATH=f"{os.path.dirname(program)}:/usr/bin:/bin")
    assert command_of(name, workspace)[:2] == [program, "mcp"]
    assert f"{program} exists on this machine only" in done.err


def test_one_that_uvx_brought_is_fetched_by_uvx_again(
    run, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered(tmp_path / "cache" / "uv" / "archive-v0" / "x", monkeypatch)
    run("mcp", "--config", "claude-code", "--write", PATH="/usr/bin:/bin", UV_CACHE_DIR=str(tmp_path / "cache" / "uv"))
    assert command_of("claude-code", workspace) == ["uvx", "handrail", "mcp"]


def test_a_program_that_is_nowhere_is_not_fetched_under_its_name(
    run, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "empty"))
    done = run("mcp", "--config", "claude-code", "--write", PATH="/usr/bin:/bin")
    assert command_of("claude-code", workspace) == ["handrail", "mcp"]
    assert (
        "handrail is not on PATH, so the client will not find it. Install handrail, then repeat this command."
        in done.err
    )


def test_codex_passes_on_where_the_settings_the_state_and_the_desktop_are(run, workspace: Path) -> None:
    run("mcp", "--config", "codex", "--write")
    passed = tomllib.loads((workspace / ".codex/config.toml").read_text())["mcp_servers"]["handrail"]["env_vars"]
    assert {"HANDRAIL_CONFIG", "HANDRAIL_STATE_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "DISPLAY"} <= set(passed)


@pytest.mark.parametrize("name", ["claude-code", "zed", "codex", "opencode"])
def test_a_client_that_starts_it_in_the_home_does_not_make_all_of_that_the_workspace(
    run, workspace: Path, environment: dict[str, str], installed: str, name: str
) -> None:
    run("mcp", "--config", name, "--write", PATH=installed)
    asked = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"id": 2, "method": "tools/list"},
    ]
    asked[0]["params"]["clientInfo"] = {"name": name, "version": "1"}
    told = subprocess.run(
        command_of(name, workspace),
        cwd=environment["HOME"],
        env={**environment, "PATH": installed},
        input="".join(f"{json.dumps({'jsonrpc': '2.0', **message})}\n" for message in asked),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "is a whole home folder, so it needs --workspace" in told.stdout


def test_what_was_asked_for_besides_goes_along(run, workspace: Path) -> None:
    run("mcp", "--config", "claude-code", "--mode", "plan", "--session", "s", "--write")
    assert command_of("claude-code", workspace)[-4:] == ["--mode", "plan", "--session", "s"]


def test_the_command_that_is_named_writes_exactly_what_was_shown(run, workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "another place"
    folder.mkdir()
    shown = run("mcp", "--config", "claude-code", "--mode", "plan", "--session", "s", "--workspace", str(folder))
    words = shlex.split(shown.err.rpartition("To write it: ")[2])
    assert words[0] == "handrail"
    assert run(*words[1:]).out == shown.out
    assert (folder / ".mcp.json").exists()
    assert contents(workspace) == {}


def test_write_without_a_client_is_wrong_usage_and_starts_no_server(run) -> None:
    for words in [("--write",), ("--write", "--http", "127.0.0.1:0")]:
        done = run("mcp", *words)
        assert (done.code, done.out) == (2, "")
        assert "--write needs --config CLIENT" in done.err


def test_comments_order_and_what_else_is_there_stay(run, workspace: Path, installed: str) -> None:
    (workspace / "opencode.jsonc").write_text('{\n    // mine\n    "model": "x", // best\n    "mcp": {},\n}\n')
    run("mcp", "--config", "opencode", "--write", PATH=installed)
    assert not (workspace / "opencode.json").exists()
    assert (workspace / "opencode.jsonc").read_text() == (
        '{\n    // mine\n    "model": "x", // best\n    "mcp": {\n        "handrail": {\n            "type": "local",\n'
        '            "command": ["handrail", "mcp"],\n            "timeout": 120000\n'
        '        }\n    },\n    "permission": {\n        "bash": "deny",\n        "edit": "deny"\n    },\n}\n'
    )


def test_an_entry_that_says_otherwise_is_shown_as_a_change(run, workspace: Path, installed: str) -> None:
    (workspace / ".mcp.json").write_text('{"mcpServers": {"handrail": {"command": "old", "env": {"A": "1"}}}}\n')
    done = run("mcp", "--config", "claude-code", "--write", PATH=installed)
    assert '-{"mcpServers": {"handrail": {"command": "old"' in done.out
    said = json.loads((workspace / ".mcp.json").read_text())["mcpServers"]["handrail"]
    assert (said["command"], said["env"]) == ("handrail", {"A": "1"})


@pytest.mark.parametrize(
    ("said", "meant"),
    [("Claude Code", "claude-code"), ("claude", "claude-code"), ("VS_Code", "vscode"), ("ZED", "zed")],
)
def test_a_client_has_several_names(run, said: str, meant: str) -> None:
    assert f"handrail mcp --config {meant} --write" in run("mcp", "--config", said).err


def test_an_unknown_client_gets_the_nearest_name_and_all_there_are(run, tmp_path: Path) -> None:
    done = run("mcp", "--config", "claud-cod", "--write")
    assert done.code == 2
    assert "there is no client 'claud-cod'. Did you mean claude-code? Known clients: claude-code, cursor" in done.err
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "path", "text", "why"),
    [
        ("claude-code", ".claude/settings.json", "{", "line 1, column 2: a name in quotes was expected"),
        ("codex", ".codex/config.toml", "x = ", "not TOML"),
        ("cursor", ".cursor/mcp.json", b"\xff", "is not UTF-8"),
        ("zed", "../home/.config/zed/settings.json", '{"a" 1}', "a colon is missing"),
    ],
)
def test_a_file_that_cannot_be_read_stops_it_and_nothing_is_written(
    run, workspace: Path, name: str, path: str, text: str | bytes, why: str
) -> None:
    file = workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = contents(workspace.parent)
    done = run("mcp", "--config", name, "--write")
    assert done.code == 2
    assert why in done.err
    assert "Nothing was written." in done.err
    assert contents(workspace.parent) == before


def test_what_cannot_be_put_in_its_place_is_shown_to_be_pasted_and_nothing_is_written(run, workspace: Path) -> None:
    (workspace / "opencode.json").write_text('{"permission": "ask"}')
    done = run("mcp", "--config", "opencode", "--write")
    assert done.code == 1
    assert "opencode.json was not changed: its permission is a text and not an object." in done.err
    assert json.loads(done.out)["permission"] == {"bash": "deny", "edit": "deny"}
    assert (workspace / "opencode.json").read_text() == '{"permission": "ask"}'


def test_a_rule_for_everything_that_would_undo_ours_is_told(run, workspace: Path) -> None:
    file = workspace / "opencode.json"
    file.write_text('{"permission": {"bash": "ask", "*": "allow"}}')
    done = run("mcp", "--config", "opencode", "--write")
    assert (done.code, "has * behind what is more exact" in done.err) == (1, True)
    file.write_text('{"permission": {"*": "allow", "bash": "ask"}}')
    assert run("mcp", "--config", "opencode", "--write").code == 0
    assert json.loads(file.read_text())["permission"] == {"*": "allow", "bash": "deny", "edit": "deny"}


def test_where_one_file_cannot_be_changed_the_others_are_not_either(run, workspace: Path) -> None:
    (workspace / ".claude").mkdir()
    (workspace / ".claude" / "settings.json").write_text('{"permissions": []}')
    done = run("mcp", "--config", "claude-code", "--write")
    assert done.code == 1
    assert not (workspace / ".mcp.json").exists()


def test_an_agent_of_the_same_name_that_is_somebodys_stays(run, workspace: Path) -> None:
    file = workspace / ".github" / "agents" / "handrail.agent.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: handrail\n---\nClimb stairs.\n")
    done = run("mcp", "--config", "vscode", "--write")
    assert done.code == 1
    assert "it already exists with other content" in done.err
    assert "Climb stairs." in file.read_text()
    file.write_text("---\ntools: ['handrail/*']\n---\nMine now.\n")
    assert run("mcp", "--config", "vscode", "--write").code == 0
    assert "Mine now." in file.read_text()


def test_a_link_in_a_project_leads_nowhere_else(run, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json").write_text("{}")
    (workspace / ".mcp.json").symlink_to(tmp_path / "elsewhere.json")
    done = run("mcp", "--config", "claude-code", "--write")
    assert done.code == 2
    assert "leads out of the workspace" in done.err
    assert (tmp_path / "elsewhere.json").read_text() == "{}"


def test_a_folder_that_is_a_link_leads_nowhere_else_either(run, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (workspace / ".claude").symlink_to(tmp_path / "elsewhere")
    assert run("mcp", "--config", "claude-code", "--write").code == 2
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (workspace / ".mcp.json").exists()


def test_the_persons_own_settings_may_be_a_link_which_stays_one(run, workspace: Path, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles" / "zed.json"
    kept.parent.mkdir()
    kept.write_text('{\n  "theme": "One", // light\n}\n')
    link = tmp_path / "home" / ".config" / "zed" / "settings.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(kept)
    done = run("mcp", "--config", "zed", "--write")
    assert f"In your own settings, outside the workspace: {kept}" in done.err
    assert link.is_symlink()
    assert '"theme": "One", // light\n' in kept.read_text()


def test_a_session_that_could_never_be_opened_is_not_written(run, workspace: Path) -> None:
    done = run("mcp", "--config", "codex", "--session", "a/b", "--write")
    assert (done.code, contents(workspace)) == (2, {})
    assert "a session id is made of letters, digits, dot, dash and underscore" in done.err


def test_zed_is_told_what_its_agent_lacks(run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "choose handrail in the list of external agents." in run("mcp", "--config", "zed", "--write").err
    monkeypatch.setitem(sys.modules, "acp", None)
    written = run("mcp", "--config", "zed", "--mode", "plan", "--write").err
    assert f"external agents, once its extra is installed: {sys.executable} -m pip install 'handrail[acp]'." in written


def test_a_file_keeps_its_mode(run, workspace: Path) -> None:
    file = workspace / ".mcp.json"
    file.write_text("{}\n")
    file.chmod(0o600)
    run("mcp", "--config", "claude-code", "--write")
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in workspace.iterdir()) == [".claude", ".mcp.json"]


def test_a_file_that_is_write_protected_is_left_so(run, workspace: Path) -> None:
    file = workspace / ".mcp.json"
    file.write_text("{}\n")
    file.chmod(0o444)
    done = run("mcp", "--config", "claude-code", "--write")
    assert (done.code, contents(workspace)) == (2, {str(file): b"{}\n"})
    assert f".mcp.json is write-protected. Nothing was written.\nnext: chmod u+w {file}" in done.err


def test_what_is_no_file_stops_it(run, workspace: Path) -> None:
    os.mkfifo(workspace / ".mcp.json")
    done = run("mcp", "--config", "claude-code")
    assert (done.code, "is not a regular file" in done.err) == (2, True)
    (workspace / ".claude").write_text("")
    (workspace / ".mcp.json").unlink()
    assert run("mcp", "--config", "claude-code", "--write").code == 2
    assert not (workspace / ".mcp.json").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told_before_anything_is(run, workspace: Path) -> None:
    (workspace / ".claude").mkdir(mode=0o500)
    done = run("mcp", "--config", "claude-code", "--write")
    assert done.code == 2
    assert "you may not write to" in done.err
    assert not (workspace / ".mcp.json").exists()


def test_on_a_terminal_the_difference_has_colours_unless_nobody_wants_them(
    workspace: Path, environment: dict[str, str]
) -> None:
    def on_a_terminal(**more: str) -> bytes:
        ours, theirs = pty.openpty()
        words = [sys.executable, "-m", "handrail", "mcp", "--config", "codex"]
        with subprocess.Popen(
            words, cwd=workspace, env={**environment, "TERM": "xterm", **more}, stdout=theirs, stderr=subprocess.DEVNULL
        ):
            os.close(theirs)
            seen = b""
            try:
                while data := os.read(ours, 65536):
                    seen += data
            except OSError:  # how Linux says that nobody writes any more
                pass
            finally:
                os.close(ours)
        return seen

    assert b'\x1b[32m+sandbox_mode = "read-only"\x1b[0m' in on_a_terminal()
    assert b"\x1b" not in on_a_terminal(NO_COLOR="1")


def test_the_help_names_every_client(run) -> None:
    assert ",".join(NAMES) in "".join(run("mcp", "--help").out.split())  # wherever its lines are broken


def rows_of_clients(run, **changes: str) -> list[tuple[str, str, str | None]]:
    found = [row for row in run("doctor", "--json", **changes).json["rows"] if row["group"] == "clients"]
    return [(row["status"], row["text"], row["fix"]) for row in found]


def test_doctor_says_which_clients_are_told_and_which_go_round(run, workspace: Path, installed: str) -> None:
    def rows() -> list[tuple[str, str, str | None]]:
        return [(status, text.split(". ")[0], fix) for status, text, fix in rows_of_clients(run, PATH=installed)]

    [(status, text, _)] = rows()
    assert (status, text.startswith("not set up in any client")) == ("ok", True)
    run("mcp", "--config", "claude-code", "--write")
    run("mcp", "--config", "codex", "--write")
    assert rows() == [("ok", "Claude Code has handrail's tools", None), ("ok", "Codex has handrail's tools", None)]
    (workspace / ".claude" / "settings.json").write_text("{}")
    (workspace / ".codex" / "config.toml").write_text("[")
    (claude, codex) = rows()
    expected = "Claude Code has handrail's tools, but its own tools still bypass handrail"
    assert claude == ("warning", expected, "handrail mcp --config claude-code --write")
    assert codex[0] == "warning"
    assert codex[1].startswith("Codex: .codex/config.toml cannot be used: not TOML")


@pytest.mark.parametrize("name", NAMES)
def test_doctor_says_that_the_program_of_a_client_is_gone(run, workspace: Path, installed: str, name: str) -> None:
    run("mcp", "--config", name, "--write", PATH=installed)
    assert [row[0] for row in rows_of_clients(run, PATH=installed)] == ["ok"]
    file = workspace / FILES[name][0]
    written = file.read_text()
    file.write_text(
        written.replace('"handrail", "mcp"', '"/gone/handrail", "mcp"')
        .replace('d": "handrail"', 'd": "/gone/handrail"')
        .replace('d = "handrail"', 'd = "/gone/handrail"')
    )
    assert file.read_text() != written
    [(status, text, fix)] = rows_of_clients(run, PATH=installed)
    assert status == "error"
    assert "is to start /gone/handrail, which does not exist: it has none of handrail's tools" in text
    assert fix == f"handrail mcp --config {name} --write"
    run("mcp", "--config", name, "--write", PATH=installed)
    assert file.read_text() == written


def test_doctor_warns_where_the_name_of_the_program_is_on_no_path_here(run, installed: str) -> None:
    run("mcp", "--config", "codex", "--write", PATH=installed)
    [(status, text, _)] = rows_of_clients(run, PATH="/nowhere")
    assert (status, "Codex is to start handrail, which is not on PATH" in text) == ("warning", True)


def test_the_page_about_it_names_every_client_every_file_and_every_tool_that_is_off() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "add-to-your-agent.md").read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    found = list_hosts(LaunchCommand("handrail"), {"HOME": "~"})
    assert [host.name for host in found] == list(rows) == NAMES
    for host in found:
        for file in host.files:
            assert all(f"`{path}`" in rows[host.name] for path in file.paths)
    assert ", ".join(CLAUDE_TOOLS) in rows["claude-code"]
    tried = dict(zip(("Claude Code", "Codex", "opencode"), _versions_of_hosts(), strict=True))
    assert all(f"{name} {version}" in page for name, version in tried.items()), "the page says what is tried"


def _versions_of_hosts() -> list[str]:
    declared = Path(__file__).parents[1] / "mcp" / "node_hosts" / "package.json"
    pinned = json.loads(declared.read_text())["dependencies"].values()
    return [version.rpartition("@")[2].partition("-")[0] for version in pinned]
