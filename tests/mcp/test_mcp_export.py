"""The tool list for MCP: what it says of each tool, and that results are as it says."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp_types.methods import validate_server_result

from handrail import AsyncHandrail, Handrail, ToolResult, tool
from handrail.mcp.protocol import SUPPORTED
from handrail.mcp.results import build_call_result
from handrail.protocol.wire import encode
from handrail.settings import Settings
from handrail.settings.model import Tools

Open = Callable[..., Handrail]

OPTIONAL = (
    *("apply_patch", "multi_edit", "delete"),
    *("display", "question", "todo", "memory", "skill_list", "skill_control"),
)
ALL = Settings(tools=Tools(enable=OPTIONAL))

# Read-only, destructive, idempotent, open world: why, says mcp_hints.
LOOKS = (True, False, True, False)
CHANGES = (False, True, False, False)
CHANGES_ONCE = (False, True, True, False)
RUNS = (False, True, False, True)
SAYS = (False, False, False, False)
SAYS_ONCE = (False, False, True, False)
HINTS = {
    "read": LOOKS,
    "write": CHANGES_ONCE,
    "edit": CHANGES,
    "find": LOOKS,
    "grep": LOOKS,
    "ls": LOOKS,
    "exec": RUNS,
    "process": RUNS,
    "apply_patch": CHANGES,
    "multi_edit": CHANGES,
    "delete": CHANGES_ONCE,
    "display": SAYS,
    "question": SAYS,
    "todo": SAYS_ONCE,
    "memory": CHANGES,
    "skill_list": LOOKS,
    "skill_control": SAYS_ONCE,
}

PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n"
WORKS: dict[str, dict[str, Any]] = {
    "read": {"path": "a.txt"},
    "write": {"path": "new/b.txt", "content": "b\n"},
    "edit": {"path": "a.txt", "oldText": "one", "newText": "two"},
    "find": {"pattern": "*.txt"},
    "grep": {"pattern": "one", "contextLines": 1},
    "ls": {"path": "."},
    "exec": {"command": "cat a.txt"},
    "process": {"action": "list"},
    "apply_patch": {"patch": PATCH},
    "multi_edit": {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]},
    "delete": {"path": "a.txt"},
    "display": {"content": "Half way."},
    "question": {"question": "Which?", "options": ["this", "that"]},
    "todo": {"items": [{"text": "look", "status": "active"}]},
    "memory": {"action": "create", "title": "Tests", "content": "make test"},
    "skill_list": {},
    "skill_control": {"action": "activate", "name": "tidy"},
}
FAILS: dict[str, dict[str, Any]] = {
    "read": {"path": "missing.txt"},
    "write": {"path": "a.txt/b", "content": ""},
    "edit": {"path": "a.txt", "oldText": "three", "newText": "two"},
    "find": {"pattern": "*", "path": "missing"},
    "grep": {"pattern": "("},
    "ls": {"path": "missing"},
    "exec": {"command": "cat a.txt", "cwd": "missing"},
    "process": {"action": "log", "sessionId": "p-none"},
    "apply_patch": {"patch": "nothing"},
    "multi_edit": {"path": "a.txt", "edits": [{"oldText": "three", "newText": "two"}]},
    "delete": {"path": "missing.txt"},
    "display": {"content": ""},
    "todo": {"items": "look"},
    "question": {"question": " ", "options": []},
    "memory": {"action": "delete", "id": "m-none"},
    "skill_list": {"nonsense": 1},
    "skill_control": {"action": "activate", "name": "none"},
}
ASKS: dict[str, dict[str, Any]] = {
    "exec": {"command": "touch b.txt"},
    **{name: WORKS[name] for name in ("write", "edit", "apply_patch", "multi_edit", "delete", "memory")},
}


@pytest.fixture
def one(rail: Open, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """A session with every tool there is, over a workspace with a file and a skill."""
    monkeypatch.setenv("HOME", str(workspace.parent))
    (workspace / "a.txt").write_text("one\n")
    skill = workspace / "skills" / "tidy" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: tidy\ndescription: Tidies up.\n---\nTidy up.\n")
    settings = Settings.from_values({"tools.enable": OPTIONAL, "skills.folders": [str(workspace / "skills")]})
    return lambda **options: rail(settings=settings, **options)


def entries(one: Handrail) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in one.mcp_tools()}


@cache
def validator(schema: str) -> Draft202012Validator:
    loaded = json.loads(schema)
    Draft202012Validator.check_schema(loaded)
    return Draft202012Validator(loaded)


def assert_as_promised(one: Handrail, result: ToolResult[Any]) -> None:
    """Validates what a client gets by the schema that it was given."""
    told = json.loads(encode(build_call_result(result)["structuredContent"]))
    validator(json.dumps(entries(one)[result.name]["outputSchema"])).validate(told)


@pytest.mark.parametrize("name", HINTS)
def test_every_tool_says_what_kind_of_thing_it_does(rail: Open, name: str) -> None:
    entry = entries(rail(settings=ALL))[name]
    read_only, destructive, idempotent, open_world = HINTS[name]
    assert entry["annotations"] == {
        "title": entry["title"],
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": open_world,
    }


def test_no_tool_of_ours_is_missing_in_these_tables(rail: Open) -> None:
    names = {spec.name for spec in rail(settings=ALL).specs()}
    assert names == set(HINTS) == set(WORKS)
    assert names == set(FAILS)


def test_a_tool_of_somebody_elses_is_taken_to_do_anything_unless_it_says_that_it_only_looks(rail: Open) -> None:
    @tool
    def act(word: str) -> str:
        """Acts."""
        return word

    @tool(read_only=True)
    def look(word: str) -> str:
        """Looks."""
        return word

    found = {name: entry["annotations"] for name, entry in entries(rail(tools=(act, look))).items()}
    assert (found["act"]["destructiveHint"], found["act"]["openWorldHint"]) == (True, True)
    assert (found["look"]["readOnlyHint"], found["look"]["idempotentHint"]) == (True, True)


def test_both_schemas_of_every_tool_are_json_schema_of_an_object(rail: Open) -> None:
    for entry in rail(settings=ALL).mcp_tools():
        for schema in (entry["inputSchema"], entry["outputSchema"]):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert "$ref" not in json.dumps(schema)


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_sdk_takes_the_list_in_every_version(rail: Open, version: str) -> None:
    listed: dict[str, Any] = {"tools": rail(settings=ALL).mcp_tools()}
    if version == "2026-07-28":
        listed |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    validate_server_result("tools/list", version, listed)


@pytest.mark.parametrize("name", WORKS)
def test_what_a_call_gives_is_as_its_schema_promises(one: Open, name: str) -> None:
    session = one(mode="full")
    if name in {"edit", "multi_edit", "apply_patch", "delete"}:
        session.call("read", {"path": "a.txt"})
    result = session.call(name, WORKS[name])
    assert result.ok or name == "question", result.content  # that one has nobody to ask here
    assert_as_promised(session, result)


@pytest.mark.parametrize("name", FAILS)
def test_a_failure_is_as_its_schema_promises(one: Open, name: str) -> None:
    session = one()
    for result in (session.call(name, FAILS[name]), session.call(name, {"nonsense": 1})):
        assert not result.ok
        assert_as_promised(session, result)


@pytest.mark.parametrize("name", ASKS)
def test_an_interim_answer_is_as_the_schema_of_its_tool_promises(one: Open, name: str) -> None:
    session = one(mode="ask", on_permission=lambda _: None)
    session.call("read", {"path": "a.txt"})
    result = session.call(name, ASKS[name])
    assert result.error is not None
    assert result.error.code == "PERMISSION_REQUIRED"
    assert_as_promised(session, result)


def test_a_schema_refuses_data_of_another_tool(one: Open) -> None:
    session = one()
    listing = build_call_result(session.call("ls", {"path": "."}))["structuredContent"]
    assert not validator(json.dumps(entries(session)["read"]["outputSchema"])).is_valid(json.loads(encode(listing)))


def test_who_changes_an_exported_list_changes_nobody_elses(rail: Open) -> None:
    one = rail()
    before = json.dumps(one.mcp_tools())
    for entry in one.mcp_tools():
        entry["inputSchema"].clear()
        entry["outputSchema"]["properties"].clear()
    assert json.dumps(one.mcp_tools()) == before


def test_library_and_asyncio_library_list_the_same(rail: Open) -> None:
    one = rail(settings=ALL)
    assert one.mcp_tools() == AsyncHandrail(one).mcp_tools()


def test_the_page_about_it_says_the_same_of_every_tool() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "add-to-your-agent.md").read_text()
    table = page.partition("| read-only | destructive | idempotent | open world |\n")[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[1:]]
    assert {
        name: tuple(cell.startswith("yes") for cell in said) for names, *said in cells for name in names.split(", ")
    } == HINTS
