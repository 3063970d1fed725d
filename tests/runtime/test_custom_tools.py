"""Tools of one's own: by decorator, by definition, from a folder, from an installed package."""

import asyncio
import inspect
import os
import pydoc
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_type_hints

import pytest

import handrail
from handrail import AsyncHandrail, Context, Handrail, Output, ToolError, UsageError, tool, tool_from_definition
from handrail.runtime import registry
from handrail.runtime.registry import load_folder_tools, load_installed_tools
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.testing import TemporarySession

Open = Callable[..., Handrail]
TOOL_FILE = '''
from handrail import tool

@tool(read_only=True, auto_execute=True)
def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"
'''


@tool(read_only=True, auto_execute=True)
def repeat(text: str, times: int = 2) -> str:
    """Repeat a text."""
    return text * times


def test_a_function_is_a_tool_its_signature_the_schema(rail: Open) -> None:
    schema = rail(tools=[repeat]).openai_tools()[-1]["function"]
    assert schema["description"] == "Repeat a text."
    assert schema["parameters"] == {
        "type": "object",
        "properties": {"text": {"type": "string"}, "times": {"type": "integer", "default": 2}},
        "required": ["text"],
        "additionalProperties": False,
    }


def test_arguments_of_a_custom_tool_are_checked_like_all_others(rail: Open) -> None:
    result = rail(tools=[repeat]).call("repeat", {"text": 3, "time": 1})
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENT"
    assert {problem["field"] for problem in result.error.details} == {"text", "time"}


@pytest.mark.parametrize(
    ("value", "content"), [("text", "text"), (3, "3"), ({"a": [1]}, '{"a":[1]}'), (None, "null"), ([], "[]")]
)
def test_whatever_json_it_returns_is_content_and_data(rail: Open, value: Any, content: str) -> None:
    give = tool(name="give", description="x", read_only=True, auto_execute=True)(lambda: value)
    result = rail(tools=[give]).call("give", {})
    assert (result.ok, result.content) == (True, content)
    assert result.data.value == value


def test_an_output_is_taken_as_it_is(rail: Open) -> None:
    @tool(read_only=True, auto_execute=True)
    def rich() -> Output:
        """Return everything."""
        return Output(summary="done", content="text", data=None, title="A title", warnings=("careful",))

    result = rail(tools=[rich]).call("rich", {})
    assert (result.title, result.summary, result.warnings) == ("A title", "done", ("careful",))


def test_a_parameter_called_context_gets_the_calls_own_and_nothing_else(rail: Open, workspace: Path) -> None:
    seen: list[Context] = []

    @tool(read_only=True, auto_execute=True)
    def look(context: Context, word: str) -> str:
        """Look around."""
        seen.append(context)
        return word

    one = rail(tools=[look])
    result = one.call("look", {"word": "x"}, trace_id="t", message_id="m")
    (context,) = seen
    fields = {
        "session_id", "message_id", "tool_call_id", "trace_id", "workspace", "cancelled", "limits", "metadata",
    }  # fmt: skip
    assert type(context) is Context
    assert set(context.__struct_fields__) == fields
    assert (context.session_id, context.tool_call_id) == (one.session_id, result.tool_call_id)
    assert (context.trace_id, context.message_id) == ("t", "m")
    assert context.workspace.main.path == str(workspace)
    assert "context" not in one.openai_tools()[-1]["function"]["parameters"]["properties"]


def test_a_parameter_of_the_type_context_gets_it_whatever_its_name(rail: Open) -> None:
    @tool(read_only=True, auto_execute=True)
    def name_call(word: str, ctx: Context) -> str:
        """Name the call."""
        return f"{word} {ctx.tool_call_id}"

    one = rail(tools=[name_call])
    assert one.call("name_call", {"word": "call"}, tool_call_id="c1").content == "call c1"
    assert list(one.openai_tools()[-1]["function"]["parameters"]["properties"]) == ["word"]


def optional(ctx: Context | None = None) -> str:
    """Name the call."""
    return ctx.tool_call_id if ctx else "none"


def quoted(ctx: "Context") -> str:
    """Name the call."""
    return ctx.tool_call_id


def untyped(context) -> str:
    """Name the call."""
    return context.tool_call_id


@pytest.mark.parametrize("function", [optional, quoted, untyped])
def test_a_context_may_be_optional_quoted_or_untyped(rail: Open, function: Callable[..., str]) -> None:
    one = rail(tools=[tool(function, read_only=True, auto_execute=True)])
    assert one.call(function.__name__, {}, tool_call_id="c1").content == "c1"
    assert one.openai_tools()[-1]["function"]["parameters"]["properties"] == {}


def test_a_context_that_only_type_checkers_import_is_found(rail: Open, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "from handrail import tool\n"
        "if TYPE_CHECKING:\n    from handrail import Context\n"
        "@tool(read_only=True, auto_execute=True)\n"
        "def late(ctx: Context) -> str:\n"
        "    'Name the call.'\n"
        "    return ctx.tool_call_id\n"
    )
    one = rail(tools=load_folder_tools(str(tmp_path)))
    assert one.call("late", {}, tool_call_id="c1").content == "c1"


def test_a_parameter_called_context_with_a_type_of_its_own_is_an_argument(rail: Open) -> None:
    @tool(read_only=True, auto_execute=True)
    def quote(context: str) -> str:
        """Quote the context."""
        return context

    assert rail(tools=[quote]).call("quote", {"context": "said"}).content == "said"


def test_a_coroutine_function_is_a_tool(rail: Open) -> None:
    @tool(read_only=True, auto_execute=True)
    async def fetch(word: str, ctx: Context) -> str:
        """Fetch a word."""
        await asyncio.sleep(0)
        return f"{word} {ctx.tool_call_id}"

    one = rail(tools=[fetch])
    assert one.call("fetch", {"word": "a"}, tool_call_id="c1").content == "a c1"

    async def story() -> str:
        async with AsyncHandrail(one) as later:
            return (await later.call("fetch", {"word": "b"}, tool_call_id="c2")).content

    assert asyncio.run(story()) == "b c2"


@pytest.mark.parametrize("name", ["Context", "Output", "Tool", "Handrail", "tool"])
def test_what_tool_authors_use_can_be_inspected(name: str) -> None:
    public = getattr(handrail, name)
    assert inspect.signature(public)
    assert name in pydoc.render_doc(public)
    assert isinstance(get_type_hints(public), dict)


def test_a_tool_error_keeps_its_code(rail: Open) -> None:
    @tool(read_only=True, auto_execute=True)
    def fail() -> str:
        """Fail."""
        raise ToolError("TIMEOUT", "It took too long.", details={"seconds": 3})

    error = rail(tools=[fail]).call("fail", {}).error
    assert error is not None
    assert (error.code, error.message, error.details, error.retryable) == (
        "TIMEOUT",
        "It took too long.",
        {"seconds": 3},
        True,
    )


def test_a_tool_that_says_nothing_about_its_effects_asks() -> None:
    @tool
    def launch() -> str:
        """Launch it."""
        return "gone"

    with TemporarySession(tools=[launch], mode="ask", approve="once") as session:
        assert session.call("launch").ok
        session.assert_asked("launch", rule="tool.custom")
    with TemporarySession(tools=[launch], mode="plan", approve="once") as session:
        session.call("launch")
        session.assert_refused("launch")
    with TemporarySession(tools=[launch], mode="full") as session:
        assert session.call("launch").ok
        session.assert_not_asked()


def bad_star(*words: str) -> str:
    """Take many."""
    return ""


def bad_untyped(word) -> str:
    """Take anything."""
    return ""


def bad_silent(word: str) -> str:
    return ""


def bad_unnamed(context: Context, /) -> str:
    """Take a context that cannot be given by name."""
    return ""


@pytest.mark.parametrize("function", [bad_star, bad_untyped, bad_silent, bad_unnamed])
def test_a_function_that_cannot_be_a_tool_is_refused_when_declared(function: Callable[..., str]) -> None:
    with pytest.raises(UsageError, match="bad_"):
        tool(function)


class Socket:
    """A type that JSON does not have."""


def bad_type(word: str, connection: Socket) -> str:
    """Take an object."""
    return ""


def bad_default(word: str, times: int = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
    """Take no number."""
    return ""


def bad_reference(word: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821
    """Take an unknown type."""
    return ""


def bad_größe(größe: int) -> str:  # noqa: PLC2401
    """Take a name that providers reject."""
    return ""


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (
            bad_type,
            r"'connection' of the type .*Socket, which has no schema: JSON cannot express it; use str, int",
        ),
        (bad_default, r"'bad_default' has the parameter 'times' with the default null .*; use int \| None"),
        (bad_reference, r"'bad_reference' has a type .*'Nowhere' is not defined at the top of its module; import"),
        (bad_untyped, r"'bad_untyped' has the parameter 'word' without a type; use str, int"),
        (bad_star, r"'bad_star' has the parameter \*words: str; name each argument instead"),
        (bad_größe, r"'größe', which model providers reject; use letters"),
    ],
)
def test_a_signature_that_has_no_schema_is_explained(function: Callable[..., str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        tool(function, name=function.__name__ if function.__name__.isascii() else "bad_size")


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"properties": {"size": {"type": "string", "minLength": "x"}}}, "size"),
        ({"properties": {"size": {"type": "string", "pattern": "("}}}, "size"),
        ({"properties": {"size": {"type": "word"}}}, "size is of type 'word', which JSON Schema does not have"),
        ({"properties": {"size": {"enum": [1.5]}}}, "size has the choices"),
        ({"type": "array"}, "not an object"),
        ({"required": ["size"]}, "'size' is required but not described"),
    ],
)
def test_a_definition_that_cannot_be_checked_is_explained(schema: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=f"the tool 'paint' has parameters that cannot be checked: .*{told}"):
        tool_from_definition({"name": "paint", "parameters": schema}, lambda _: None)


def test_a_definition_with_a_handler_is_a_tool(rail: Open) -> None:
    given: list[dict[str, Any]] = []
    definition = {
        "name": "paint",
        "description": "Paint a wall.",
        "parameters": {
            "type": "object",
            "properties": {
                "colour": {"type": "string", "enum": ["red", "blue"]},
                "coats": {"type": "integer", "minimum": 1, "maximum": 3},
                "walls": {"type": "array"},
            },
            "required": ["colour"],
        },
    }
    one = rail(tools=[tool_from_definition(definition, lambda args: given.append(args) or "done")], mode="full")
    assert one.call("paint", {"colour": "red", "coats": 2}).content == "done"
    assert given == [{"colour": "red", "coats": 2}]
    for wrong in (
        {},
        {"colour": "green"},
        {"colour": "red", "coats": 4},
        {"colour": "red", "walls": "x"},
        {"color": "red"},
    ):
        assert one.call("paint", wrong).error.code == "INVALID_ARGUMENT"  # type: ignore[union-attr]
    assert len(given) == 1


def takes_context(arguments: dict[str, Any], context: Any) -> str:
    return f"{arguments['word']} {context.tool_call_id}"


def takes_annotated(arguments: dict[str, Any], times: int = 1, *, ctx: Context | None = None) -> str:
    assert ctx is not None
    return f"{arguments['word'] * times} {ctx.tool_call_id}"


def takes_any_second(arguments: dict[str, Any], about: Any, /) -> str:
    return f"{arguments['word']} {about.tool_call_id}"


async def takes_later(arguments: dict[str, Any], context: Any) -> str:
    return f"{arguments['word']} {context.tool_call_id}"


def takes_no_context(arguments: dict[str, Any], suffix: str = "c1") -> str:
    return f"{arguments['word']} {suffix}"


def takes_all(*arguments: dict[str, Any]) -> str:
    return f"{arguments[0]['word']} c{len(arguments)}"


@pytest.mark.parametrize(
    "handler", [takes_context, takes_annotated, takes_any_second, takes_later, takes_no_context, takes_all]
)
def test_the_signature_of_a_handler_decides_whether_it_gets_the_context(
    rail: Open, handler: Callable[..., Any]
) -> None:
    definition = {"name": "say", "parameters": {"properties": {"word": {"type": "string"}}}}
    one = rail(tools=[tool_from_definition(definition, handler)], mode="full")
    assert one.call("say", {"word": "a"}, tool_call_id="c1").content == "a c1"


@pytest.mark.parametrize("handler", [lambda: None, lambda a, b, c: None, lambda *, arguments: None])
def test_a_handler_that_cannot_be_called_is_refused(handler: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=r"'say' has a handler that cannot be called.*handler\(arguments, context\)"):
        tool_from_definition({"name": "say"}, handler)


@pytest.mark.parametrize(
    "definition", [{}, {"name": ""}, {"name": 3}, {"name": "x", "parameters": {"properties": {"a-b": {}}}}]
)
def test_a_definition_that_makes_no_sense_is_refused(definition: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        tool_from_definition(definition, lambda _: None)


def test_a_file_dropped_in_a_tool_folder_is_a_tool(rail: Open, tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "greeting.py").write_text(TOOL_FILE)
    (folder / "_private.py").write_text("raise SystemExit")
    (folder / "notes.txt").write_text("no code")
    one = rail(settings=Settings(tools=Tools(folders=(str(folder),))))
    assert one.call("greet", {"name": "Ada"}).content == "hello Ada"


DATACLASS_FILE = '''
from __future__ import annotations

import pickle
from dataclasses import dataclass

from handrail import Context, tool

@dataclass
class Greeting:
    word: str

@tool(read_only=True, auto_execute=True)
def NAME(ctx: Context, name: str) -> str:
    """Greet somebody."""
    return f"{pickle.loads(pickle.dumps(Greeting('WORD'))).word} {name}"
'''


def test_a_tool_file_may_have_dataclasses_and_postponed_annotations(rail: Open, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder, name, word in zip(folders, ("greet", "welcome"), ("hello", "welcome"), strict=True):
        folder.mkdir()
        (folder / "greeting.py").write_text(DATACLASS_FILE.replace("NAME", name).replace("WORD", word))
    one = rail(settings=Settings(tools=Tools(folders=tuple(map(str, folders)))))
    assert one.call("greet", {"name": "Ada"}).content == "hello Ada"
    assert one.call("welcome", {"name": "Ada"}).content == "welcome Ada"


def test_a_tool_file_that_does_not_load_leaves_no_module_behind(tmp_path: Path) -> None:
    (tmp_path / "broken_halfway.py").write_text("import sys\nHERE = sys.modules[__name__]\nraise RuntimeError")
    with pytest.raises(UsageError, match=r"broken_halfway\.py"):
        load_folder_tools(str(tmp_path))
    assert not [name for name in sys.modules if "broken_halfway" in name]


@pytest.mark.parametrize(
    "text",
    ["def (", "raise RuntimeError('no')", "import does_not_exist", "raise KeyboardInterrupt", "raise GeneratorExit"],
)
def test_a_tool_file_that_does_not_load_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(UsageError, match=r"broken\.py"):
        load_folder_tools(str(tmp_path))


def test_a_tool_file_that_hangs_while_it_loads_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_LOAD_SECONDS", 0.05)
    free = threading.Event()
    monkeypatch.setattr(sys, "free", free, raising=False)
    (tmp_path / "slow.py").write_text("import sys\nsys.free.wait(60)\n")
    with pytest.raises(UsageError, match=r"slow\.py' does not load within 0\.05 s"):
        load_folder_tools(str(tmp_path))
    free.set()


def test_a_tool_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        load_folder_tools(str(tmp_path / "nowhere"))


def test_nothing_is_loaded_from_the_workspace_itself(rail: Open, workspace: Path) -> None:
    for folder in (workspace / ".handrail" / "tools", workspace / "tools"):
        folder.mkdir(parents=True)
        (folder / "greeting.py").write_text(TOOL_FILE)
    assert rail().call("greet", {"name": "Ada"}).error.code == "UNKNOWN_TOOL"  # type: ignore[union-attr]


def test_a_file_dropped_in_the_projects_tool_folder_is_a_tool_once_the_project_is_trusted(
    rail: Open, workspace: Path
) -> None:
    assert len(rail(project_tools=True).specs()) == len(rail().specs())  # a workspace without any is fine
    folder = workspace / ".handrail" / "tools"
    folder.mkdir(parents=True)
    (folder / "greeting.py").write_text(TOOL_FILE)
    assert rail(project_tools=True).call("greet", {"name": "Ada"}).content == "hello Ada"
    # An agent that could put a file there would run in this process the next time.
    assert rail(project_tools=True).write(".handrail/tools/more.py", "x").error.code == "PERMISSION_REQUIRED"  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["folder above", "folder", "file", "pipe", "large"])
def test_tool_files_of_a_project_that_are_no_plain_files_below_it_are_refused(
    rail: Open, workspace: Path, kind: str
) -> None:
    # An agent may write lib/tools/greeting.py without approval.
    target = workspace / "lib" / "tools" / "greeting.py"
    target.parent.mkdir(parents=True)
    target.write_text(TOOL_FILE)
    own, folder = workspace / ".handrail", workspace / ".handrail" / "tools"
    if kind == "folder above":
        own.symlink_to("lib")
    elif kind == "folder":
        own.mkdir()
        folder.symlink_to("../lib/tools")
    else:
        folder.mkdir(parents=True)
        if kind == "file":
            (folder / "greeting.py").symlink_to("../../lib/tools/greeting.py")
        elif kind == "pipe":
            os.mkfifo(folder / "greeting.py")
        else:
            (folder / "greeting.py").write_text(f"{TOOL_FILE}{'#' * 2_000_000}")
    with pytest.raises(UsageError, match="handrail/tools cannot be used"):
        rail(project_tools=True)


def test_a_workspace_that_is_reached_by_a_link_has_its_tools(workspace: Path, tmp_path: Path) -> None:
    folder = workspace / ".handrail" / "tools"
    folder.mkdir(parents=True)
    (folder / "greeting.py").write_text(TOOL_FILE)
    (tmp_path / "link").symlink_to(workspace)
    with Handrail(tmp_path / "link", state_dir=tmp_path / "state", project_tools=True) as one:
        assert one.call("greet", {"name": "Ada"}).content == "hello Ada"


@pytest.mark.parametrize("target", ["package_with_tools", "package_with_tools:greet"])
def test_an_installed_package_announces_tools_by_entry_point(
    rail: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    site = tmp_path / "site"
    (site / "package_with_tools-1.0.dist-info").mkdir(parents=True)
    (site / "package_with_tools.py").write_text(TOOL_FILE)
    metadata = site / "package_with_tools-1.0.dist-info"
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: package-with-tools\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[handrail.tools]\ngreet = {target}\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "package_with_tools", raising=False)
    assert [found.spec.name for found in load_installed_tools()] == ["greet"]
    assert rail().call("greet", {"name": "Ada"}).error is not None
    one = rail(settings=Settings(tools=Tools(installed=True)))
    assert one.call("greet", {"name": "Ada"}).content == "hello Ada"


def test_types_of_all_kinds_become_schema_and_are_checked(rail: Open) -> None:
    @tool(read_only=True, auto_execute=True)
    def mix(kind: Literal["a", "b"], sizes: list[int], ratio: float = 0.5, note: str | None = None) -> str:
        """Mix."""
        return f"{kind}{sizes}{ratio}{note}"

    one = rail(tools=[mix])
    assert one.call("mix", {"kind": "a", "sizes": [1, 2], "note": None}).content == "a[1, 2]0.5None"
    assert one.call("mix", {"kind": "c", "sizes": [1, "x"]}).error.code == "INVALID_ARGUMENT"  # type: ignore[union-attr]
