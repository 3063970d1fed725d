"""Declaring tools: what is wrong is said when the tool is declared, not when a model calls it."""

import asyncio
import functools
import os
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail import AsyncHandrail, Context, Handrail, Tool, UsageError, tool, tool_from_definition
from handrail.protocol.events import ToolCallEnd
from handrail.protocol.schema import describe
from handrail.runtime.registry import load_folder_tools, load_installed_tools
from handrail.settings import Settings

Make = Callable[..., Handrail]


def harmless(function: Callable[..., Any], **options: Any) -> Tool:
    return tool(function, read_only=True, auto_execute=True, **{"name": "it", "description": "x", **options})


def code(result: Any) -> str | None:
    return result.error.code if result.error else None


# By decorator


def test_the_decorator_works_with_and_without_arguments() -> None:
    @tool
    def plain_one() -> str:
        """Plain."""
        return "x"

    @tool()
    def called_one() -> str:
        """Called."""
        return "x"

    @tool(name="named", title="Its Title", version="2.1.0", permissions=("fs.read",), read_only=True)
    def other(some_path: str, *, last: bool = False) -> str:
        """Not this."""
        return "x"

    assert [one.spec.name for one in (plain_one, called_one, other)] == ["plain_one", "called_one", "named"]
    assert (plain_one.spec.title, plain_one.spec.description) == ("Plain one", "Plain.")
    assert plain_one.spec.category == "custom"
    assert plain_one.spec.side_effects != ()
    assert (other.spec.title, other.spec.version, other.spec.side_effects) == ("Its Title", "2.1.0", ())
    schema = describe(other.spec).input_schema
    assert list(schema["properties"]) == ["somePath", "last"]
    assert (schema["required"], schema["additionalProperties"]) == (["somePath"], False)


def positional(word: str, /) -> str:
    return word


def unresolved(word: "NoSuchType") -> str:  # type: ignore[name-defined]  # noqa: F821
    return str(word)


def unsupported(connection: socket.socket) -> str:
    return str(connection)


def colliding(some_word: str, someWord: str) -> str:  # noqa: N803
    return some_word + someWord


def changeable(words: list[str] = ["a"]) -> str:  # noqa: B006
    return "".join(words)


def two_of_a_kind(value: float | list[int] | list[str]) -> str:
    return str(value)


@pytest.mark.parametrize("function", [positional, unresolved, unsupported, colliding, changeable, two_of_a_kind])
def test_a_signature_that_no_schema_can_express_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match="the tool 'it'"):
        tool(function, name="it", description="x")


@pytest.mark.parametrize(
    "options",
    [
        {"version": "latest"},
        {"version": ""},
        {"permissions": ("fs.chat",)},
        {"permissions": "fs.read"},
        {"description": "\ud800"},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="the tool 'it'"):
        harmless(lambda: "x", **options)


def test_a_callable_without_a_name_needs_one(rail: Make) -> None:
    def add(first: int, second: int) -> int:
        return first + second

    partial = functools.partial(add, second=2)
    with pytest.raises(UsageError, match="name"):
        tool(partial, description="x")
    one = rail(tools=[harmless(partial)])
    assert one.call("it", {"first": 1}).content == "3"
    assert one.call("it", {"first": 1}).summary == "it is done"


def test_context_may_stand_anywhere_and_need_no_type(rail: Make) -> None:
    seen: list[Any] = []

    @tool(read_only=True, auto_execute=True)
    def last(word: str, context: Context) -> None:
        """Has it last."""
        seen.append(context)

    untyped = harmless(lambda *, context: seen.append(context))
    one = rail(tools=[last, untyped])
    assert one.call("last", {"word": "x"}).ok
    assert one.call("it", {}).ok
    assert [type(context) for context in seen] == [Context, Context]
    assert code(one.call("last", {"word": "x", "context": {}})) == "INVALID_ARGUMENT"


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("a\ud800b", "a\\ud800b"),
        (["\udcff"], '["\\\\udcff"]'),
        ({"a": float("inf")}, '{"a":null}'),
        ((1, 2), "[1,2]"),
        ({1: 2}, '{"1":2}'),
    ],
)
def test_what_is_nearly_json_is_made_json(rail: Make, value: Any, content: str) -> None:
    result = rail(tools=[harmless(lambda: value)]).call("it", {})
    assert (result.ok, result.content) == (True, content)
    msgspec.json.encode(result)


@pytest.mark.parametrize("value", [object(), lambda: 1, [object()], 1j, iter([])])
def test_what_is_not_json_is_the_tools_defect_and_named(rail: Make, value: Any) -> None:
    result = rail(tools=[harmless(lambda: value)]).call("it", {})
    assert code(result) == "INTERNAL"
    assert "it returned" in result.summary
    assert "JSON" in result.summary


def test_a_tool_words_the_problems_of_its_arguments_its_own_way(rail: Make) -> None:
    @tool(read_only=True, auto_execute=True, format_error=lambda problems: f"Oh no: {len(problems)} problems")
    def picky(first: int, second: int) -> str:
        """Is picky."""
        return "x"

    @tool(read_only=True, auto_execute=True, format_error=lambda problems: 1 / 0)  # type: ignore[arg-type, return-value]
    def broken(first: int) -> str:
        """Cannot even complain."""
        return "x"

    one = rail(tools=[picky, broken])
    result = one.call("picky", {"first": "x"})
    assert (code(result), result.summary) == ("INVALID_ARGUMENT", "Oh no: 2 problems")
    assert code(one.call("broken", {})) == "INTERNAL"


# By definition


def defined(schema: dict[str, Any], **more: Any) -> Tool:
    return tool_from_definition({"name": "it", "description": "x", "parameters": schema, **more}, lambda args: args)


def properties(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ({"type": "string"}, ["", "ä"], [1, None, []]),
        ({"type": "integer"}, [1, -5], ["1", 1.5, True]),
        ({"type": "number"}, [1, 1.5], ["1", None]),
        ({"type": "boolean"}, [True, False], [1, "true"]),
        ({"type": "array"}, [[], [1, "x"]], [{}, "x"]),
        ({"type": "object"}, [{}, {"a": 1}], [[], "x"]),
        ({"type": "null"}, [None], [1]),
        ({"type": ["string", "null"]}, ["x", None], [1]),
        ({"type": ["integer", "string"]}, ["x", 1], [None, []]),
        ({}, [1, "x", None, [], {}], []),
        ({"enum": ["a", "b"]}, ["a"], ["c", 1]),
        ({"enum": [1, 2, None]}, [1, None], [3, "1"]),
        ({"const": "x"}, ["x"], ["y"]),
        ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4]),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.5], [0, 1]),
        ({"type": "integer", "multipleOf": 5}, [10], [3]),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "abc"], ["a", "abcd"]),
        ({"type": "string", "pattern": "^a+$"}, ["aa"], ["b"]),
        ({"type": "string", "minimum": 5, "description": "bounds of numbers say nothing about texts"}, ["x"], []),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, [[1]], [[], ["x"], [1, 2, 3]]),
        ({**properties(a={"type": "integer"}), "required": ["a"]}, [{"a": 1}], [{}, {"a": "x"}, {"a": 1, "b": 2}]),
        ({"type": "array", "items": properties(a={"enum": ["x"]})}, [[{"a": "x"}, {}]], [[{"a": "y"}]]),
    ],
)  # fmt: skip
def test_what_a_schema_says_is_checked(rail: Make, field: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    one = rail(mode="full", tools=[defined(properties(value=field))])
    for value in good:
        result = one.call("it", {"value": value})
        assert result.ok, result.summary
        assert result.data.value == {"value": value}
    for value in bad:
        assert code(one.call("it", {"value": value})) == "INVALID_ARGUMENT", value
    assert one.call("it", {}).data.value == {}


def test_the_model_sees_the_schema_that_was_given() -> None:
    nested = {"type": "array", "items": properties(a={"type": "integer", "minimum": 1, "description": "How many."})}
    schema = describe(
        defined({**properties(deep=nested, word={"type": "string"}), "required": ["word"]}).spec
    ).input_schema
    assert schema["required"] == ["word"]
    assert schema["additionalProperties"] is False
    inner = schema["properties"]["deep"]["items"]
    assert inner["properties"]["a"] == {"type": "integer", "minimum": 1, "description": "How many."}
    assert inner["additionalProperties"] is False


@pytest.mark.parametrize(
    "schema",
    [
        properties(value={"enum": []}),
        properties(value={"enum": [1.5]}),
        properties(value={"enum": [[1]]}),
        properties(value={"type": "strin"}),
        properties(value={"type": ["string", "strin"]}),
        properties(value="string"),
        properties(__init__={"type": "string"}),
        properties(**{"two words": {}}),
        {"type": "object", "required": ["missing"]},
        {"type": "array"},
        {"properties": [1]},
        "object",
        properties(value={"type": "string", "pattern": "("}),
        properties(value={"type": "integer", "minimum": "low"}),
    ],
)
def test_a_schema_that_cannot_be_kept_is_refused(schema: Any) -> None:
    with pytest.raises(UsageError, match="the tool 'it'"):
        defined(schema)


def test_a_definition_may_say_its_version_and_title(rail: Make) -> None:
    spec = defined({}, version="3.0.0", title="Its Title").spec
    assert (spec.version, spec.title, spec.category) == ("3.0.0", "Its Title", "custom")
    assert describe(spec).input_schema["properties"] == {}
    assert defined({}).spec.side_effects != ()


def test_a_handler_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="the tool 'it'"):
        tool_from_definition({"name": "it", "description": "x"}, None)  # type: ignore[arg-type]


# From folders and packages


def test_a_tool_that_a_module_has_under_two_names_is_one(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "from handrail import tool\n@tool(read_only=True)\ndef one() -> str:\n    'One.'\n    return 'x'\nalias = one\n"
    )
    assert [found.spec.name for found in load_folder_tools(str(tmp_path))] == ["one"]


def test_a_tool_file_that_ends_the_process_is_named(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("raise SystemExit(3)")
    with pytest.raises(UsageError, match=r"ends\.py"):
        load_folder_tools(str(tmp_path))


@pytest.mark.parametrize("target", ["no_such_module_here", "announced_module:missing", "announced_module:number"])
def test_an_entry_point_that_brings_no_tool_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    metadata = tmp_path / "announced-1.0.dist-info"
    metadata.mkdir()
    (tmp_path / "announced_module.py").write_text("number = 5\n")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: announced\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[handrail.tools]\nbroken_one = {target}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "announced_module", raising=False)
    with pytest.raises(UsageError, match="broken_one"):
        load_installed_tools()


# The async face


def test_closing_waits_without_holding_up_the_loop(workspace: Path, tmp_path: Path) -> None:
    go_on = threading.Event()

    async def play() -> None:
        loop, inside = asyncio.get_running_loop(), asyncio.Event()

        def wait() -> str:
            loop.call_soon_threadsafe(inside.set)
            assert go_on.wait(60)
            return "done"

        rail = AsyncHandrail(workspace, state_dir=tmp_path / "state", settings=Settings(), tools=[harmless(wait)])
        call = asyncio.create_task(rail.call("it", {}))
        await inside.wait()
        closing = asyncio.create_task(rail.close())
        await asyncio.sleep(0)
        assert not closing.done()
        go_on.set()
        assert (await call).ok
        await closing

    asyncio.run(asyncio.wait_for(play(), 60))


def test_a_cancelled_wait_leaves_the_call_its_result(workspace: Path, tmp_path: Path) -> None:
    go_on = threading.Event()

    async def play() -> None:
        loop, inside = asyncio.get_running_loop(), asyncio.Event()

        def wait() -> str:
            loop.call_soon_threadsafe(inside.set)
            assert go_on.wait(60)
            return "done"

        async with AsyncHandrail(
            workspace, state_dir=tmp_path / "state", settings=Settings(), tools=[harmless(wait)], session="s"
        ) as rail:
            call = asyncio.create_task(rail.call("it", {}, tool_call_id="x"))
            await inside.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            go_on.set()
            assert (await rail.call("it", {}, tool_call_id="x")).content == "done"

    asyncio.run(asyncio.wait_for(play(), 60))
    with Handrail(workspace, session="s", state_dir=tmp_path / "state", settings=Settings()) as one:
        assert len([event for event in one.events() if isinstance(event, ToolCallEnd)]) == 1


def test_cancel_ends_what_runs(workspace: Path, tmp_path: Path) -> None:
    async def play() -> str | None:
        loop, inside = asyncio.get_running_loop(), asyncio.Event()

        def spin(context: Context) -> str:
            loop.call_soon_threadsafe(inside.set)
            while True:
                context.check_cancelled()
                os.sched_yield()

        async with AsyncHandrail(
            workspace, state_dir=tmp_path / "state", settings=Settings(), tools=[harmless(spin)]
        ) as rail:
            call = asyncio.create_task(rail.call("it", {}))
            await inside.wait()
            rail.rail.cancel()
            return code(await call)

    assert asyncio.run(asyncio.wait_for(play(), 60)) == "CANCELLED"
