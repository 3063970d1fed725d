"""Which tools a session offers, and what calling another one comes to."""

from collections.abc import Callable
from typing import Any

import pytest

from handrail import Handrail, Tool, UsageError, tool, tool_from_definition
from handrail.protocol.event import Warning as WarningEvent
from handrail.protocol.tool import BASE_NAMES
from handrail.runtime.registry import Offer, Registry
from handrail.settings import Settings
from handrail.settings.model import Tools

Open = Callable[..., Handrail]

PARAMETERS = {
    "read": ({"path"}, {"offset", "limit"}),
    "write": ({"path", "content"}, set()),
    "ls": ({"path"}, {"depth"}),
}
RETIRED = (
    "read_file write_file list_directory create_directory move_files edit_text glob_search directory_tree "
    "get_file_info grep_search text_replace edit_file execute_command"
).split()


@tool(read_only=True, auto_execute=True)
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


def names(rail: Handrail) -> list[str]:
    return [spec.name for spec in rail.specs()]


def test_read_write_and_ls_have_exactly_their_parameters(rail: Open) -> None:
    for entry in rail().anthropic_tools():
        schema: dict[str, Any] = entry["input_schema"]
        required, optional = PARAMETERS[entry["name"]]
        assert set(schema["required"]) == required
        assert set(schema["properties"]) == required | optional
        assert schema["additionalProperties"] is False


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


@pytest.mark.parametrize("name", ["nope", "Read", "READ", "read_file", "mcp__x__read", "", "read\n", "r" * 1_000_000])
def test_an_unknown_name_runs_nothing_and_names_the_tools_there_are(rail: Open, name: str) -> None:
    one = rail()
    result = one.call(name, {"path": "."})
    assert result.error is not None
    assert result.error.code == "UNKNOWN_TOOL"
    assert result.error.message.startswith("Unknown Agent tool: ")
    assert result.error.details == ["read", "write", "ls"]
    warnings = [event for event in one.events() if isinstance(event, WarningEvent)]
    assert [warning.code for warning in warnings] == ["UNKNOWN_TOOL"]


def test_case_is_repaired_only_on_request_and_said(rail: Open) -> None:
    one = rail(repair="case")
    result = one.call("LS", {"path": "."})
    assert result.ok
    assert result.name == "ls"
    assert [event.text for event in one.events() if isinstance(event, WarningEvent)] == ["LS was taken for ls."]
    assert one.call("list", {"path": "."}).error is not None


@pytest.mark.parametrize("name", [*BASE_NAMES, "Read", "EXEC"])
def test_a_custom_tool_never_shadows_a_base_tool(rail: Open, name: str) -> None:
    with pytest.raises(UsageError, match="shadow"):
        rail(tools=[tool_from_definition({"name": name, "description": "x"}, lambda _: "x")])


def test_two_tools_of_one_name_are_refused(rail: Open) -> None:
    with pytest.raises(UsageError, match="registered already"):
        rail(tools=[shout, shout])


def test_a_disabled_tool_is_in_no_list_and_unknown_when_called(rail: Open) -> None:
    one = rail(settings=Settings(tools=Tools(disable=("write",))))
    assert names(one) == ["read", "ls"]
    assert "write" not in repr((one.openai_tools(), one.anthropic_tools()))
    result = one.write("a.txt", "x")
    assert result.error is not None
    assert (result.error.code, result.error.details) == ("UNKNOWN_TOOL", ["read", "ls"])


def test_a_permission_denied_outright_hides_the_tools_that_need_it(rail: Open) -> None:
    assert names(rail(deny=["fs.write"])) == ["read", "ls"]
    assert names(rail(settings=Settings(tools=Tools(deny=("fs.read",))))) == ["write"]


def test_a_tool_that_is_off_by_default_is_offered_when_enabled(rail: Open) -> None:
    quiet: Tool = tool(enabled=False, read_only=True, name="quiet", description="x")(lambda: "x")
    assert names(rail(tools=[quiet])) == ["read", "write", "ls"]
    assert names(rail(tools=[quiet], settings=Settings(tools=Tools(enable=("quiet",))))) == [
        "read",
        "write",
        "ls",
        "quiet",
    ]


def test_an_offer_can_be_narrowed_to_allowed_names() -> None:
    registry = Registry([shout, tool(name="whisper", description="x", read_only=True)(lambda: "x")])
    assert Offer(registry, allowed=("whisper",)).names == ("whisper",)


def test_custom_tools_keep_their_own_names(rail: Open) -> None:
    result = rail(tools=[shout]).call("shout", {"text": "hello"})
    assert (result.name, result.content) == ("shout", "HELLO")


@pytest.mark.parametrize(("version", "code"), [(None, None), ("1.0.0", None), ("1.9", None), ("1", None)])
def test_a_version_of_the_same_major_runs(rail: Open, version: str | None, code: str | None) -> None:
    result = rail().call("ls", {"path": "."}, version=version)
    assert result.ok
    assert result.version == "1.0.0"


@pytest.mark.parametrize(
    ("version", "code"),
    [
        ("2.0.0", "UNSUPPORTED_VERSION"),
        ("0.1", "UNSUPPORTED_VERSION"),
        ("x", "INVALID_ARGUMENT"),
        ("", "INVALID_ARGUMENT"),
    ],
)
def test_another_major_version_is_refused_and_the_current_one_named(rail: Open, version: str, code: str) -> None:
    result = rail().call("ls", {"path": "."}, version=version)
    assert result.error is not None
    assert result.error.code == code
    assert "1.0.0" in result.error.message
