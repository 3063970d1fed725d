"""What a session offers, and what calling anything else comes to."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from other_server import OtherServer, listed

from handrail import Handrail, Tool, UsageError, tool, tool_from_definition
from handrail.protocol import events as event_kinds
from handrail.protocol.events import ToolCallError
from handrail.protocol.results import render_for_model
from handrail.protocol.tool_spec import BASE_NAMES, ToolSpec
from handrail.runtime.registry import ToolRegistry, ToolSet
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.tools.custom import CustomData

Make = Callable[..., Handrail]


@tool(read_only=True, auto_execute=True)
def weather(city: str) -> str:
    """What the weather is."""
    return f"sunny in {city}"


@tool(name="deploy", permissions=("net.connect",))
def deploy() -> str:
    """Puts it out."""
    return "done"


@tool(enabled=False, read_only=True, auto_execute=True)
def rare() -> str:
    """Offered only when it is asked for."""
    return "here"


def names(rail: Handrail) -> list[str]:
    """The offered names, the same in every list there is."""
    listed = [spec.name for spec in rail.specs()]
    assert [entry["function"]["name"] for entry in rail.openai_tools()] == listed
    assert [entry["name"] for entry in rail.anthropic_tools()] == listed
    return listed


def assert_unknown(rail: Handrail, name: str) -> None:
    """Nothing runs: one result, one warning, the names that would do."""
    before = len(list(rail.events()))
    result = rail.call(name, {})
    assert result.error is not None
    assert (result.ok, result.error.code, result.error.retryable) == (False, "UNKNOWN_TOOL", False)
    assert result.error.message == f"Unknown Agent tool: {name}"
    assert result.error.details == [spec.name for spec in rail.specs()]
    events = list(rail.events(before))
    assert [type(event).__name__ for event in events] == ["ToolCallStart", "Warning", "ToolCallError"]
    warning, end = events[1:]
    assert isinstance(warning, event_kinds.Warning)
    assert isinstance(end, ToolCallError)
    assert (warning.code, warning.text, warning.tool_call_id) == (
        "UNKNOWN_TOOL",
        result.error.message,
        result.tool_call_id,
    )


def test_a_session_offers_the_base_layer_and_its_custom_tools(rail: Make) -> None:
    assert names(rail(tools=[weather])) == ["read", "write", "edit", "find", "grep", "ls", "exec", "process", "weather"]


@pytest.mark.parametrize("name", ["exec_command", "Read", "READ", "read ", "read_file", "", "ls\n", "rеad", "x" * 150])
def test_a_name_that_is_not_offered_runs_nothing(rail: Make, name: str) -> None:
    assert_unknown(rail(), name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("exce", "exec"), ("Read", "read"), ("weahter", "weather"), ("mcp__a__get_isue", "mcp__a__get_issue")],
)
def test_a_misspelt_name_is_answered_with_the_nearest(rail: Make, name: str, meant: str) -> None:
    one = rail(tools=[weather], sources=[OtherServer("a", listed("get_issue"))])
    result = one.call(name, {})
    assert result.error is not None
    assert result.error.details == [*BASE_NAMES, "weather", "mcp__a__get_issue"]
    assert result.warnings == (f"Did you mean {meant}?",)
    assert render_for_model(result).endswith(f"[Did you mean {meant}?]\n")


def test_a_long_unknown_name_is_cut(rail: Make) -> None:
    result = rail().call("x" * 5_000, {})
    assert result.error is not None
    assert result.error.message == "Unknown Agent tool: " + "x" * 200
    assert len(result.name) <= 200


def test_repair_takes_a_name_that_differs_in_case_only_and_says_so(rail: Make, workspace: Any) -> None:
    one = rail(repair="case", tools=[weather])
    (workspace / "a.txt").write_text("text\n")
    result = one.call("Read", {"path": "a.txt"})
    assert (result.ok, result.name, result.content) == (True, "read", "text\n")
    [warning] = [event for event in one.events() if isinstance(event, event_kinds.Warning)]
    assert warning.text == "Read was taken for read."
    assert one.call("WEATHER", {"city": "x"}).ok
    assert_unknown(one, "reed")


def test_repair_does_not_guess_between_two(rail: Make) -> None:
    @tool(name="Weather", read_only=True, auto_execute=True)
    def another() -> str:
        """Another one."""
        return "x"

    one = rail(repair="case", tools=[weather, another])
    assert_unknown(one, "WEATHER")
    assert one.call("Weather", {}).ok


@pytest.mark.parametrize(
    "settings",
    [Settings(tools=Tools(disable=("weather",))), Settings(tools=Tools(disable=("weather",), enable=("weather",)))],
)
def test_a_disabled_tool_is_not_offered(rail: Make, settings: Settings) -> None:
    one = rail(settings=settings, tools=[weather])
    assert names(one) == ["read", "write", "edit", "find", "grep", "ls", "exec", "process"]
    assert_unknown(one, "weather")


def test_a_base_tool_can_be_disabled(rail: Make) -> None:
    one = rail(settings=Settings(tools=Tools(disable=("write",))))
    assert names(one) == ["read", "edit", "find", "grep", "ls", "exec", "process"]
    assert_unknown(one, "write")


def test_a_tool_that_is_off_is_offered_when_it_is_enabled(rail: Make) -> None:
    one = rail(tools=[rare])
    assert_unknown(one, "rare")
    other = rail(tools=[rare], settings=Settings(tools=Tools(enable=("rare",))))
    assert other.call("rare", {}).content == "here"


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        (Tools(enable=("aply_patch",)), "there is no tool 'aply_patch' ([tools] enable); did you mean apply_patch?"),
        (Tools(enable=("ls", "Delete")), "there is no tool 'Delete' ([tools] enable); did you mean delete?"),
        (Tools(disable=("wheather",)), "there is no tool 'wheather' ([tools] disable); did you mean weather?"),
    ],
)
def test_settings_that_misspell_a_tool_are_refused_with_the_nearest_name(rail: Make, tools: Tools, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        rail(tools=[weather], settings=Settings(tools=tools))
    assert str(caught.value) == told


def test_settings_may_name_tools_that_only_other_programs_bring(rail: Make) -> None:
    tools = Tools(enable=("forecast", "a\nb" + "x" * 5_000), disable=("nope",))
    assert "forecast" not in [spec.name for spec in rail(settings=Settings(tools=tools)).specs()]


def test_a_setting_that_names_no_tool_is_on_the_record(rail: Make) -> None:
    """A disable that does nothing leaves a tool there that somebody wanted gone."""
    one = rail(settings=Settings(tools=Tools(enable=("apply_patch",), disable=("bash", "weather"))), tools=[weather])
    [warning] = [event for event in one.events() if isinstance(event, event_kinds.Warning)]
    assert warning.code == "UNKNOWN_TOOL"
    assert warning.text == (
        "[tools] disable: there is no tool 'bash' here, so nothing was disabled. handrail tools lists the tools."
    )


def test_every_tool_can_be_named_also_one_that_is_not_made_yet(rail: Make) -> None:
    every = (*BASE_NAMES, "apply_patch", "multi_edit", "delete", "weather", "rare")
    assert "rare" in names(rail(tools=[weather, rare], settings=Settings(tools=Tools(enable=every))))
    assert names(rail(tools=[weather, rare], settings=Settings(tools=Tools(disable=every)))) == []


@pytest.mark.parametrize(
    ("tools", "name", "told"),
    [
        (Tools(), "apply_patch", 'apply_patch is off; [tools] enable = ["apply_patch"] offers it.'),
        (Tools(), "rare", 'rare is off; [tools] enable = ["rare"] offers it.'),
        (Tools(disable=("read",)), "read", "read is off: [tools] disable names it."),
        (Tools(enable=("delete",), disable=("delete",)), "delete", "delete is off: [tools] disable names it."),
        (
            Tools(enable=("apply_patch",), deny=("fs.delete",)),
            "apply_patch",
            "apply_patch is off: it needs fs.delete, which is denied here ([tools] deny).",
        ),
        (
            Tools(deny=("fs.read", "fs.write")),
            "edit",
            "edit is off: it needs fs.read and fs.write, which are denied here ([tools] deny).",
        ),
        (Tools(), "ls", None),
        (Tools(), "nope", None),
    ],
)
def test_a_person_is_told_why_a_tool_is_off(rail: Make, tools: Tools, name: str, told: str | None) -> None:
    assert rail(tools=[rare], settings=Settings(tools=tools)).why_off(name) == told


def test_what_a_host_denies_is_told_like_what_the_settings_deny(rail: Make) -> None:
    assert rail(deny=["fs.write"]).why_off("write") == (
        "write is off: it needs fs.write, which is denied here ([tools] deny)."
    )


@pytest.mark.parametrize(
    ("denied", "left"),
    [
        (("fs.write",), ["read", "find", "grep", "ls", "deploy"]),
        (("fs.read",), ["write", "deploy"]),
        (("net.connect",), ["read", "write", "edit", "find", "grep", "ls", "exec", "process"]),
        (("fs.read", "fs.write", "net.connect"), []),
        (("proc.exec",), ["read", "write", "edit", "find", "grep", "ls", "deploy"]),
    ],
)
def test_a_tool_that_needs_a_denied_permission_is_not_offered(rail: Make, denied: Any, left: list[str]) -> None:
    one = rail(tools=[deploy], deny=denied)
    assert names(one) == left
    for name in {"read", "write", "deploy"} - set(left):
        assert_unknown(one, name)
    other = rail(tools=[deploy], settings=Settings(tools=Tools(deny=denied)))
    assert names(other) == left


def test_who_may_not_read_has_no_tool_that_tells_the_model_what_was_in_a_file(rail: Make, workspace: Any) -> None:
    (workspace / "a.txt").write_text("the words of a file\n")
    every = ("apply_patch", "multi_edit", "delete")
    one = rail(mode="full", settings=Settings(tools=Tools(enable=every, deny=("fs.read",))))
    assert names(one) == ["write", "delete"]
    for result in (one.call("write", {"path": "a.txt", "content": "other words\n"}), one.delete("a.txt")):
        assert result.ok
        assert "words" not in f"{result.title} {result.summary} {result.content} {result.warnings}"


def test_only_what_skills_allow_is_offered() -> None:
    registry = ToolRegistry(None)
    for one in (weather, deploy, rare):
        registry.add(one)
    assert ToolSet(registry).names == ("weather", "deploy")
    assert ToolSet(registry, allowed=("deploy", "rare", "unknown")).names == ("deploy",)
    assert ToolSet(registry, allowed=()).names == ()
    assert ToolSet(registry, allowed=()).why_off("deploy") == "deploy is off: no active skill allows it."


@pytest.mark.parametrize("name", [*BASE_NAMES, *(name.upper() for name in BASE_NAMES), "Read", "eXec"])
def test_a_custom_tool_cannot_take_the_name_of_a_base_tool(rail: Make, name: str) -> None:
    with pytest.raises(UsageError, match="would shadow a base tool"):
        tool(lambda: "x", name=name, description="Pretends to be another.")
    made = Tool(msgspec.structs.replace(weather.spec, name=name), weather.run)
    with pytest.raises(UsageError, match="would shadow a base tool"):
        rail(tools=[made])


def test_a_custom_tool_cannot_pass_for_a_builtin(rail: Make) -> None:
    """The category is what policy trusts: only the base layer itself has it."""

    def run(*_: Any) -> Any:
        raise AssertionError

    for name in ("exec", "harmless"):
        spec = ToolSpec(name=name, title="x", description="x", arguments=weather.spec.arguments, data=CustomData)
        with pytest.raises(UsageError, match=r"shadow|builtin"):
            rail(tools=[Tool(spec, run)])


def test_two_tools_of_one_name_are_refused(rail: Make) -> None:
    with pytest.raises(UsageError, match="registered already"):
        rail(tools=[weather, weather])


@pytest.mark.parametrize(
    "name",
    ["", "two words", "ünïcode", "ｒead", "x" * 65, "x" * 129, "a/b", "new\nline", "@tool", "jira.search", "3d", "-x"],
)
def test_a_name_that_no_model_could_call_is_refused(rail: Make, name: str) -> None:
    rule = "name has letters, digits, _ and - only, at most 64"
    with pytest.raises(UsageError, match=rule):
        tool(lambda: "x", name=name or " ", description="x")
    with pytest.raises(UsageError, match=rule):
        tool_from_definition({"name": name or " ", "description": "x"}, lambda _: None)
    with pytest.raises(UsageError, match=rule):
        rail(tools=[Tool(msgspec.structs.replace(weather.spec, name=name), weather.run)])


def test_a_tool_with_the_longest_name_that_providers_take_is_offered(rail: Make) -> None:
    long = tool(lambda: "x", name=f"a-B_9{'x' * 59}", description="x")
    assert rail(tools=[long]).spec(long.spec.name) == long.spec


def test_a_refused_tool_leaves_nothing_open(rail: Make, tmp_path: Any) -> None:
    for _ in range(3):
        with pytest.raises(UsageError):
            rail(session="s", tools=[weather, weather])
    assert not list((tmp_path / "state").rglob("*.runner*"))
    with rail(session="s") as one:
        assert one.ls().ok


@pytest.mark.parametrize("version", [None, "1", "1.0", "1.0.0", "1.9.3", "1.x"])
def test_any_version_of_the_same_major_will_do(rail: Make, version: str | None) -> None:
    result = rail().call("ls", {"path": "."}, version=version)
    assert (result.ok, result.version) == (True, "1.0.0")


def test_another_major_version_is_answered_with_what_is_there(rail: Make) -> None:
    result = rail().call("ls", {"path": "."}, version="2.1.0")
    assert result.error is not None
    assert result.error.code == "UNSUPPORTED_VERSION"
    assert result.error.details == {"current": "1.0.0", "asked": "2.1.0"}
    assert "1.0.0" in result.error.message
    assert "2.1.0" in result.error.message


@pytest.mark.parametrize("version", ["", "latest", "-1", "v1", "١"])
def test_a_version_that_is_none_is_refused(rail: Make, version: str) -> None:
    result = rail().call("ls", {"path": "."}, version=version)
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENT"
    assert "1.0.0" in result.error.message


@pytest.mark.parametrize(
    ("requested", "code"),
    [(None, None), (("fs.write",), None), (("fs.read", "fs.write"), None), ((), "POLICY_DENIED"),
     (("fs.read",), "POLICY_DENIED"), (("proc.exec", "net.connect"), "POLICY_DENIED")],
)  # fmt: skip
def test_requested_permissions_only_narrow(rail: Make, requested: Any, code: str | None) -> None:
    one = rail(mode="full")
    result = one.call("write", {"path": "a.txt", "content": "x"}, requested_permissions=requested)
    assert (result.error.code if result.error else None) == code
    # They cannot widen: what the mode asks about is asked about.
    one.set_mode("plan")
    result = one.call("write", {"path": "a.txt", "content": "y"}, requested_permissions=("fs.write", "fs.read"))
    assert result.error is not None
    assert result.error.code == "POLICY_DENIED"


def test_an_unknown_mode_is_refused(rail: Make) -> None:
    with pytest.raises(UsageError, match="no mode 'yolo'"):
        rail(mode="yolo")
    one = rail()
    with pytest.raises(UsageError, match="no mode 'yolo'"):
        one.set_mode("yolo")  # type: ignore[arg-type]
    assert one.mode == "auto"


def test_a_tool_can_be_registered_in_a_running_session(rail: Make) -> None:
    one = rail(sources=[OtherServer("a", listed("x"))])
    before = one.tool_names()
    one.register(weather)
    assert one.tool_names() == (*before, "weather")
    assert one.tool_names() is one.tool_names()
    assert one.spec("weather") == weather.spec
    assert one.call("weather", {"city": "Rome"}).content == "sunny in Rome"
    assert one.mcp_tools()[-1]["name"] == "weather"


def test_a_registered_tool_stays_when_servers_change_their_tools(rail: Make) -> None:
    server = OtherServer("a", listed("x"))
    one = rail(sources=[server])
    one.register(weather)
    server.now_lists(listed("y"))
    assert one.tool_names()[-2:] == ("weather", "mcp__a__y")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Tool(msgspec.structs.replace(weather.spec, name="Read"), weather.run), "would shadow a base tool"),
        (Tool(msgspec.structs.replace(weather.spec, name="todo"), weather.run), "'todo' is registered already"),
        (Tool(msgspec.structs.replace(weather.spec, name="a b"), weather.run), "name has letters"),
        (Tool(msgspec.structs.replace(weather.spec, category="builtin"), weather.run), "category builtin"),
        (deploy, "'deploy' is registered already"),
        (weather.run, "is not a tool; declare a function with @tool"),
    ],
)
def test_a_tool_that_cannot_be_registered_changes_nothing(rail: Make, given: Any, told: str) -> None:
    one = rail(tools=[deploy])
    before = one.tool_names()
    with pytest.raises(UsageError, match=told):
        one.register(given)
    assert one.tool_names() is before


def test_a_tool_cannot_take_the_name_of_a_tool_of_the_dialect(rail: Make) -> None:
    one = rail(dialect="claude-code")
    with pytest.raises(UsageError, match="'Bash' would shadow a tool of the dialect"):
        one.register(tool(lambda: "x", name="Bash", description="Pretends to be another."))
    one.register(weather)
    assert one.call("weather", {"city": "Rome"}).ok


def test_the_settings_and_the_permissions_of_a_session_hold_for_a_registered_tool(rail: Make) -> None:
    one = rail(deny=["net.connect"])
    one.register(deploy)
    assert "deploy" not in one.tool_names()
    assert "it needs net.connect" in str(one.why_off("deploy"))
