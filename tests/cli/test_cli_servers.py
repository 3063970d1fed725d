"""Other MCP servers from the shell: what is listed, called, asked about and checked."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

SERVERS = Path(__file__).parent.parent / "mcp" / "servers"
PYTHON = os.path.realpath(sys.executable)


@pytest.fixture
def brings(workspace: Path, environment: dict[str, str]) -> dict[str, object]:
    """A workspace with a server in it and a .mcp.json that names it, and a person with much patience."""
    own = Path(environment["HOME"], ".config", "handrail")
    own.mkdir(parents=True)
    (own / "config.toml").write_text('[mcp]\nwait = "50s"\n')
    shutil.copy(SERVERS / "plain.py", workspace)
    entry = {"command": PYTHON, "args": ["plain.py"], "env": {"A_TOKEN": "${THEIR_TOKEN:-none}"}}
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"plain": entry}}))
    return entry


def test_trust_shows_what_a_project_would_start_and_what_it_would_be_told(run, brings) -> None:
    done = run("trust", "--yes")
    first, server, file, last = done.out.splitlines()
    assert first == ".mcp.json starts these servers, in a sandbox, when a session needs them:"
    assert server == f"  plain: runs {PYTHON} plain.py; with A_TOKEN; gets your THEIR_TOKEN"
    told = "is in the workspace, so an agent that changes it changes the server."
    assert file == f"    plain.py {told}"
    assert last.startswith("  (SHA-256 ")


def test_a_file_that_cannot_be_read_is_not_trusted(run, workspace: Path) -> None:
    (workspace / ".mcp.json").write_text("{")
    done = run("trust", "--yes")
    assert done.code == 2
    assert ".mcp.json cannot be used: it is not JSON" in done.err


def test_nothing_of_an_untrusted_project_is_started(run, brings) -> None:
    done = run("tools")
    assert "mcp__" not in done.out
    assert ".mcp.json brings a server (plain), not used until you trust this project: handrail trust" in done.err


def test_the_tools_of_a_trusted_project_are_listed_called_and_checked(run, brings) -> None:
    run("trust", "--yes")
    assert "mcp__plain__echo" in [one["name"] for one in json.loads(run("tools", "--json").out)]
    called = run("call", "mcp__plain__echo", '{"text": "hello"}', "--mode", "full")
    assert (called.code, called.out) == (0, "hello")
    wrong = run("call", "mcp__plain__nothing", "{}", "--mode", "full")
    assert (wrong.code, "UNKNOWN_TOOL" in wrong.err) == (1, True)
    misspelt = run("call", "mcp_plain_echo", "{}", "--mode", "full").err
    assert "Did you mean mcp__plain__echo?" in misspelt
    assert "Did you mean mcp__plain__echo?" in misspelt
    assert "✓ plain: 4 tools" in run("doctor").out


def test_a_call_that_asks_is_answered_from_another_shell(run, brings) -> None:
    run("trust", "--yes")
    asked = run("call", "mcp__plain__echo", '{"text": "hello"}')
    assert asked.code == 3
    (waiting,) = json.loads(run("approvals", "--json").out)["waiting"]
    answered = run("approvals", "allow", waiting["id"])
    assert (answered.code, answered.out) == (0, "hello")


def test_a_server_that_does_not_start_is_an_error_of_doctor_and_of_nothing_else(run, brings, workspace: Path) -> None:
    (workspace / "plain.py").write_text("raise SystemExit('it will not')")
    brought = {"plain": brings, "unset": {"command": "a", "args": ["${NOT_SET_ANYWHERE}"]}}
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": brought}))
    run("trust", "--yes")
    doctor = run("doctor")
    assert doctor.out.count("the variable NOT_SET_ANYWHERE") == 1
    assert "✗ plain: it ended with exit code 1: it will not" in doctor.out
    tools = run("tools")
    assert (tools.code, "plain: it ended with exit code 1: it will not" in tools.err) == (0, True)
    assert tools.err.count("the variable NOT_SET_ANYWHERE") == 1


def test_what_a_server_lacks_is_said_once_with_what_to_do(here, workspace: Path) -> None:
    entry = {"command": "run", "env": {"TOKEN": "${NOT_SET_HERE}"}}
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"mine": entry}}))
    here("trust", "--yes")
    told = "The MCP server mine cannot be used: the variable NOT_SET_HERE, which it asks for, is not set"
    err = here("tools").err
    assert (err.count("NOT_SET_HERE, which it asks for"), told in err) == (1, True)
    rows = [row for row in here("doctor", "--json").json["rows"] if row["group"] == "mcp"]
    assert [(row["status"], row["fix"]) for row in rows] == [("warning", "export NOT_SET_HERE=…")]


def test_config_says_which_servers_a_project_brings_and_whether_they_count(here, brings, environment) -> None:
    words = f"runs {PYTHON} plain.py; with A_TOKEN"
    assert f"plain   {words}; from .mcp.json, not used until you trust it\n" in here("config").out
    here("trust", "--yes")
    assert f"plain   {words}; from .mcp.json\n" in here("config").out
    own = Path(environment["HOME"], ".config", "handrail", "config.toml")
    own.write_text("[mcp.servers.plain]\nwritable = true\n[mcp.servers.plane]\nwritable = true\n")
    listed = here("config", "--json").json["servers"]
    assert listed["plain"] == f"{words}; changes the workspace; from .mcp.json"
    assert listed["plane"] == "adds to the server of .mcp.json; changes the workspace; this command does not exist here"
    own.unlink()
    assert here("config", "--json").json["servers"] == {"plain": f"{words}; from .mcp.json"}


def test_a_broken_file_of_servers_is_told_with_the_line(here, workspace: Path) -> None:
    (workspace / ".mcp.json").write_text('{"mcpServers": {\n  "a": {,}\n}}')
    (row,) = [row for row in here("doctor", "--json").json["rows"] if row["group"] == "mcp"]
    assert row["text"].startswith(".mcp.json cannot be used: it is not JSON: line 2, column 9: ")


def test_config_shows_servers_and_no_secret(run, workspace: Path, tmp_path: Path) -> None:
    text = '[mcp.servers.mine]\ncommand = "run"\nenv = { KEY = "sk-somethingnobodysees1" }\n'
    (tmp_path / "mine.toml").write_text(text)
    for form in ((), ("--json",)):
        done = run("config", *form, HANDRAIL_CONFIG=str(tmp_path / "mine.toml"))
        assert "runs run; with KEY" in done.out
        assert "somethingnobodysees" not in done.out


def test_without_the_extra_one_line_says_what_to_install(run, brings, tmp_path: Path) -> None:
    run("trust", "--yes")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import sys; sys.modules['mcp'] = None\n")
    paths = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    done = run("tools", PYTHONPATH=paths)
    assert (done.code, "read" in done.out, "mcp__" in done.out) == (0, True, False)
    assert done.err.count("pip install 'handrail[mcp]'") == 1


def test_a_call_of_ones_own_tools_starts_no_server_and_loads_nothing_of_them(run, brings, workspace: Path) -> None:
    run("trust", "--yes")
    done = run("call", "read", '{"path": "plain.py"}', PYTHONPROFILEIMPORTTIME="1")
    assert done.code == 0
    assert "handrail.mcp" not in done.err
    assert "asyncio" not in done.err
