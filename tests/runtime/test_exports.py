"""The lists that models get."""

from collections.abc import Callable
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from other_server import OtherServer, listed

from handrail import Handrail, Output
from handrail.protocol.wire import encode
from handrail.settings import Settings
from handrail.settings.model import Tools

Open = Callable[..., Handrail]

PARAMETERS = {
    "read": ({"path"}, {"offset", "limit"}),
    "write": ({"path", "content"}, set()),
    "edit": ({"path", "oldText", "newText"}, {"replaceAll"}),
    "find": ({"pattern"}, {"path", "maxResults", "exclude"}),
    "grep": ({"pattern"}, {"path", "filePattern", "caseSensitive", "contextLines", "maxResults"}),
    "ls": ({"path"}, {"depth"}),
    "exec": ({"command"}, {"cwd", "timeoutMs", "background", "yieldMs"}),
    "process": ({"action"}, {"sessionId", "offset", "limit", "data", "eof"}),
}
OPTIONAL = {
    "apply_patch": ({"patch"}, set()),
    "multi_edit": ({"path", "edits"}, set()),
    "delete": ({"path"}, set()),
}
RETIRED = [
    "read_file",
    "write_file",
    "list_directory",
    "create_directory",
    "move_files",
    "edit_text",
    "glob_search",
    "directory_tree",
    "get_file_info",
    "grep_search",
    "text_replace",
    "edit_file",
    "execute_command",
]


def assert_parameters(one: Handrail, expected: dict[str, tuple[set[str], set[str]]]) -> None:
    assert {spec.name for spec in one.specs()} == set(expected)
    for entry in one.anthropic_tools():
        schema: dict[str, Any] = entry["input_schema"]
        required, optional = expected[entry["name"]]
        assert set(schema["required"]) == required
        assert set(schema["properties"]) == required | optional
        assert schema["additionalProperties"] is False


def test_every_base_tool_has_exactly_its_parameters(rail: Open) -> None:
    assert_parameters(rail(), PARAMETERS)


def test_every_optional_tool_has_exactly_its_parameters(rail: Open) -> None:
    assert_parameters(rail(settings=Settings(tools=Tools(enable=tuple(OPTIONAL)))), PARAMETERS | OPTIONAL)


def test_an_edit_of_several_is_described_down_to_its_fields(rail: Open) -> None:
    one = rail(settings=Settings(tools=Tools(enable=("multi_edit",))))
    [schema] = [entry["input_schema"] for entry in one.anthropic_tools() if entry["name"] == "multi_edit"]
    fields = schema["properties"]["edits"]["items"]
    assert set(fields["properties"]) == {"oldText", "newText", "occurrence"}
    assert set(fields["required"]) == {"oldText", "newText"}
    assert sorted(fields["properties"]["occurrence"]["enum"]) == ["all", "first", "unique"]


def test_no_retired_name_is_in_any_list_or_schema(rail: Open) -> None:
    one = rail()
    text = repr((one.openai_tools(), one.anthropic_tools(), one.specs()))
    assert [name for name in RETIRED if name in text] == []


def test_openai_and_anthropic_lists_come_from_the_same_spec(rail: Open) -> None:
    one = rail()
    for spec, openai, anthropic in zip(one.specs(), one.openai_tools(), one.anthropic_tools(), strict=True):
        assert openai["type"] == "function"
        function = openai["function"]
        assert (function["name"], function["description"]) == (spec.name, spec.description)
        assert (anthropic["name"], anthropic["description"]) == (spec.name, spec.description)
        assert function["parameters"] == anthropic["input_schema"]


def test_the_mcp_list_takes_the_same_arguments(rail: Open) -> None:
    one = rail()
    for anthropic, mcp in zip(one.anthropic_tools(), one.mcp_tools(), strict=True):
        assert (mcp["name"], mcp["description"]) == (anthropic["name"], anthropic["description"])
        assert mcp["inputSchema"] == anthropic["input_schema"]


def test_the_mcp_list_has_other_servers_tools_and_promises_nothing_of_their_data(rail: Open) -> None:
    promised = {"type": "object", "properties": {"id": {"$ref": "#/$defs/id"}}, "$defs": {"id": {"type": "integer"}}}
    tool = listed("look", output_schema=promised)
    server = OtherServer("github", tool, handler=lambda *_: Output(summary="ok", content="ok", data={"id": "lies"}))
    one = rail(sources=[server], mode="full")
    (entry,) = [entry for entry in one.mcp_tools() if entry["name"].startswith("mcp__github__")]
    assert entry["inputSchema"]["type"] == "object"
    assert (entry["annotations"]["readOnlyHint"], entry["annotations"]["openWorldHint"]) == (False, True)
    result = one.call(entry["name"], {})
    assert result.data == {"id": "lies"}
    Draft202012Validator(entry["outputSchema"]).validate(msgspec.json.decode(encode(result)))
