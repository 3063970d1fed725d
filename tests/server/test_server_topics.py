"""The topics of the API beside tasks and approvals: processes, audit, policy, calls."""

import json
from pathlib import Path

import pytest
from msgspec import structs
from tests.server.handlers import Api, open_api

from handrail.protocol.results import OVERLAY_TIER
from handrail.server import dispatch
from handrail.settings import Settings

# Processes


def test_a_process_is_listed_read_from_a_position_and_stopped(api: Api) -> None:
    command = "echo one; printf 'tw\\303\\266? '; read -r _; echo three; exec sleep 600"
    with api.open("dev", mode="full") as rail:
        started = rail.exec(command, background=True, yield_ms=0)
        assert started.data is not None
        process = started.data.session_id
        [listed] = api.get("/api/processes").body["processes"]
        assert (listed["id"], listed["state"], listed["sessionId"]) == (process, "running", "dev")
        path, text, after = f"/api/processes/{process}/output", "", 0
        while not text.endswith("twö? "):
            page = api.get(path, after=after).body
            text, after = text + page["text"], page["next"]
        assert text == "one\ntwö? "
        assert page["running"]
        assert api.get(path, after=after).body["text"] == ""
        [ended] = api.post(f"/api/processes/{process}/stop").body["processes"]
        assert (ended["state"], ended["reason"]) == ("ended", "stopped")
        assert not api.get(path, after=after).body["running"]
        assert api.post(f"/api/processes/{process}/stop").body["processes"] == [ended]


def test_processes_of_other_workspaces_are_out_of_reach(api: Api, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with api.open("dev", mode="full") as rail, open_api(tmp_path / "elsewhere", tmp_path / "state") as other:
        started = rail.exec("sleep 600", background=True, yield_ms=0)
        assert started.data is not None
        assert other.get("/api/processes").body["processes"] == []
        assert other.post(f"/api/processes/{started.data.session_id}/stop").status == 404
        rail.process("kill", started.data.session_id)


# Audit


def test_the_audit_is_listed_and_checked(api: Api) -> None:
    with api.open("dev", mode="auto") as rail:
        rail.write("a.txt", "a\n")
        rail.write("b.txt", "b\n")
    assert [one["files_changed"] for one in api.get("/api/audit", limit=1).body["records"]] == [["b.txt"]]
    assert len(api.get("/api/audit").body["records"]) == 2
    found = api.post("/api/audit/verify").body
    assert (found["intact"], found["records"], found["problems"]) == (True, 2, [])


def test_a_changed_audit_is_found(api: Api) -> None:
    with api.open("dev", mode="auto") as rail:
        rail.write("a.txt", "a\n")
        rail.write("b.txt", "b\n")
    audit = Path(api.state.audit)
    audit.write_bytes(audit.read_bytes().replace(b'"b.txt"', b'"c.txt"'))
    assert api.get("/api/audit").body["records"][-1] is None
    found = api.post("/api/audit/verify").body
    assert not found["intact"]
    assert found["problems"]


# Policy


def test_a_decision_is_explained_with_the_text_of_the_command_line(api: Api) -> None:
    found = api.post("/api/policy/explain", {"command": "ls && rm -rf build", "mode": "auto"}).body
    assert found["mode"] == "auto"
    assert [part["subject"] for part in found["decision"]["parts"]] == ["ls", "rm -rf build"]
    assert found["text"][0] == "$ ls && rm -rf build"
    assert found["text"][1].startswith("├ ls")
    assert any(line.startswith("= ") for line in found["text"])
    assert found["facts"]["command"]["text"] == "ls && rm -rf build"


def test_a_tool_is_explained_too_and_an_invalid_call_is_refused(api: Api) -> None:
    found = api.post("/api/policy/explain", {"tool": "read", "args": {"path": "a.txt"}}).body
    assert found["decision"]["decision"] == "allow"
    refused = api.post("/api/policy/explain", {"tool": "read", "args": {"pth": "a.txt"}})
    assert refused.body["code"] == "INVALID_ARGUMENT"
    assert api.post("/api/policy/explain", {"tool": "none"}).body["code"] == "UNKNOWN_TOOL"


def test_a_rule_is_tried_on_past_calls(api: Api) -> None:
    with api.open("dev", mode="auto") as rail:
        rail.exec("ls")
        rail.exec("cat missing")
        rail.read("missing")
    rule = {"id": "no-ls", "deny": "ls", "because": 'say "why"\u007f', "match": ["ls -l"]}
    effect = api.post("/api/policy/try-rule", {"rule": rule}).body
    assert effect["calls"] == 3
    [one] = effect["different"]
    assert (one["task"], one["tool"], one["before"], one["after"]) == ("dev", "exec", "allow", "deny")
    assert "ls" in one["subject"]
    layer = api.state.path + ".toml"
    Path(layer).write_text(effect["toml"])
    from handrail.settings import load

    [loaded] = load({"HANDRAIL_CONFIG": layer, "HOME": api.workspace}, {}).rules
    assert (loaded.id, loaded.pattern, loaded.because) == ("no-ls", "ls", 'say "why"\u007f')


def test_a_rule_counts_by_its_difference_to_the_present_rules(api: Api) -> None:
    from handrail.settings.toml_file import parse_rules

    with api.open("dev", mode="auto") as rail:
        rail.exec("ls")
    rules, _ = parse_rules([{"id": "own", "deny": "ls"}], "user", "")
    api.host.loaded = structs.replace(api.host.loaded, rules=rules)
    assert api.post("/api/policy/try-rule", {"rule": {"id": "other", "deny": "cat"}}).body["different"] == []
    assert api.post("/api/policy/try-rule", {"rule": {"id": "same", "deny": "ls"}}).body["different"] == []


@pytest.mark.parametrize(
    "rule", [{}, {"id": "a"}, {"id": "a", "deny": "ls", "allow": "ls"}, {"id": "a", "deny": "ls", "match": ["cat"]}]
)
def test_an_unusable_rule_is_refused(api: Api, rule: dict[str, object]) -> None:
    refused = api.post("/api/policy/try-rule", {"rule": rule})
    assert (refused.status, refused.body["code"]) == (400, "INVALID_ARGUMENT")
    assert refused.body["details"]["problems"]


# Calls


def test_the_tools_have_their_schemas(api: Api) -> None:
    tools = {one["name"]: one for one in api.get("/api/tools").body["tools"]}
    assert tools["read"]["inputSchema"]["properties"]["path"]
    assert json.dumps(tools["exec"]["outputSchema"])


def test_a_call_is_checked_without_an_effect(api: Api, workspace: Path) -> None:
    checked = api.post("/api/call/check", {"name": "write", "args": {"path": "a.txt", "content": "a\n"}}).body
    assert checked["problems"] == []
    assert checked["decision"]["decision"] == "confirm"
    assert "+a\n" in checked["request"]["preview"]["text"]
    assert api.get("/api/inbox").body["requests"] == []
    assert api.get("/api/audit").body["records"] == []
    assert [*workspace.iterdir()] == []


def test_a_check_lists_the_problems(api: Api) -> None:
    checked = api.post("/api/call/check", {"name": "write", "args": {"path": 1, "content": "x", "mode": 3}}).body
    assert {one["field"] for one in checked["problems"]} == {"path", "mode"}
    assert checked["decision"] is None
    [unknown] = api.post("/api/call/check", {"name": "none", "args": {}}).body["problems"]
    assert "none" in unknown["problem"]


def test_a_direct_call_runs_by_the_policy(api: Api, workspace: Path) -> None:
    (workspace / "a.txt").write_text("a\n")
    read = api.post("/api/call", {"name": "read", "args": {"path": "a.txt"}}).body
    assert (read["task"], read["result"]["ok"]) == ("server-owner", True)
    asked = api.post("/api/call", {"name": "write", "args": {"path": "b.txt", "content": "b\n"}}).body
    assert asked["result"]["error"]["code"] == "PERMISSION_REQUIRED"
    [waiting] = api.get("/api/inbox").body["requests"]
    assert waiting["task"] == "server-owner"
    answer = {"kind": "once", "revision": 0}
    assert api.post(f"/api/requests/{waiting['request']['id']}/answer", answer).status == 200
    assert api.get("/api/audit").body["records"][0]["name"] == "read"


def test_direct_calls_are_off_unless_the_operator_allows_them(workspace: Path, tmp_path: Path) -> None:
    with open_api(workspace, tmp_path / "state") as closed:
        refused = closed.post("/api/call", {"name": "ls", "args": {"path": "."}})
    assert (refused.status, refused.body["code"]) == (403, "FORBIDDEN")


def test_a_checked_command_shows_its_preview(api: Api, workspace: Path) -> None:
    with api.open("dev", settings=Settings()) as rail:
        if rail.sandbox_tier < OVERLAY_TIER:
            pytest.skip("no overlay here")
    checked = api.post("/api/call/check", {"name": "exec", "args": {"command": "touch made; echo done"}}).body
    assert checked["request"]["preview"]["output"] == "done\n"
    assert not (workspace / "made").exists()


def test_a_server_with_too_much_work_is_busy(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_MAX_WAITING", 0)
    assert (api.get("/api/info").status, api.get("/api/info").body["code"]) == (503, "BUSY")
