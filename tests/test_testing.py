"""`handrail.testing`: what people test their own tools, agents and policies with."""

import asyncio
import inspect
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import handrail.testing
from handrail import Agent, Answer, AsyncHandrail, tool
from handrail.models.base import ModelRequest, TextPiece
from handrail.testing import ModelError, ScriptedModel, ScriptedReply, TemporarySession, call


@tool(read_only=True, auto_execute=True)
def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


def failure(check: Any, *args: Any, **fields: Any) -> str:
    with pytest.raises(AssertionError) as raised:
        check(*args, **fields)
    return str(raised.value)


def test_a_session_has_its_files_and_leaves_nothing_behind() -> None:
    with TemporarySession({"a.txt": "one\n", "folder/b.bin": b"\0"}) as session:
        assert session.call("read", path="a.txt").content == "one\n"
        assert (session.workspace / "folder" / "b.bin").read_bytes() == b"\0"
        home = session.workspace.parent
    assert not home.exists()


def test_a_session_uses_nothing_of_the_person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('mode = "plan"\n')
    monkeypatch.setenv("HANDRAIL_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("HANDRAIL_MODE", "plan")
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    with TemporarySession(mode="auto") as session:
        assert session.rail.mode == "auto"
        assert session.call("write", path="a.txt", content="x").ok
    assert not (tmp_path / "state").exists()


def test_a_scripted_model_works_in_a_session() -> None:
    with TemporarySession({"a.txt": "one\n"}, tools=[greet], mode="auto") as session:
        turn = session.run(
            ["I look.", call("read", path="a.txt"), call("greet", name="Ada")],
            call("write", path="b.txt", content="two\n"),
            "Done.",
        )
        assert (turn.reason, turn.text) == ("done", "Done.")
        assert session.assert_called("greet", name="Ada").result.content == "hello Ada"  # type: ignore[union-attr]
        session.assert_called("read", times=1)
        session.assert_not_called("exec")
        session.assert_not_asked()
        session.assert_changed({"b.txt": "two\n"})
        assert session.run("Nothing is left.", prompt="More?").text == "Nothing is left."


def test_a_step_may_be_a_function_of_the_request_or_have_all_details() -> None:
    model = ScriptedModel([
        lambda request: f"{len(request.tools)} tools",
        ScriptedReply(fails=ModelError("UNAVAILABLE", "gone")),
    ])  # fmt: skip
    with TemporarySession() as session:
        agent = Agent(session.rail, model)
        assert asyncio.run(agent.run("How many?")).text == "8 tools"
        assert asyncio.run(agent.run("And now?")).reason == "error"
    assert [request.messages[-1].text for request in model.requests] == ["How many?", "And now?"]


@pytest.mark.parametrize(
    ("step", "pieces"),
    [
        ("two words", ["two ", "words"]),
        (["two wo", "rds"], ["two wo", "rds"]),
        (ScriptedReply(pieces=("tw", "o words")), ["tw", "o words"]),
    ],
)
def test_a_text_is_streamed_in_pieces(step: Any, pieces: list[str]) -> None:
    async def play() -> list[Any]:
        request = ModelRequest(system="", messages=())
        return [piece async for piece in ScriptedModel([step]).stream(request)]

    *found, completion = asyncio.run(play())
    assert [piece.text for piece in found if isinstance(piece, TextPiece)] == pieces
    assert completion.parts[0].text == "two words"


def test_an_approver_is_one_answer_or_several_or_a_function() -> None:
    for approve in ("once", ["once"], lambda request: Answer(kind="once"), Answer(kind="once")):
        with TemporarySession(approve=approve) as session:
            assert session.call("write", path="a.txt", content="x").ok
            request = session.assert_asked("write", paths=("a.txt",))
            assert session.requests == [request]
            session.assert_changed({"a.txt": "x"})
    with TemporarySession(approve="deny") as session:
        assert not session.call("write", path="a.txt", content="x").ok
        session.assert_refused("write", path="a.txt")
        session.assert_changed({})


def test_without_an_approver_a_call_waits() -> None:
    with TemporarySession() as session:
        assert session.call("write", path="a.txt", content="x").error.code == "PERMISSION_REQUIRED"  # type: ignore[union-attr]
        assert [str(one) for one in session.calls] == ["write(path='a.txt', content='x'): waits"]
        session.rail.answer(session.assert_asked("write"), "once")
        session.assert_changed({"a.txt": "x"})


def test_a_request_without_an_answer_fails_the_test() -> None:
    with TemporarySession(approve=["once"]) as session:
        session.call("write", path="a.txt", content="x")
        text = failure(session.call, "write", path="b.txt", content="x")
        assert text.startswith("`approve` has 1 answers, and this is request 2: write: ")


def test_a_failed_assertion_tells_what_happened_instead() -> None:
    with TemporarySession({"a.txt": "one\n", "old.txt": "x"}, approve="once", mode="ask") as session:
        assert failure(session.assert_called, "read") == "read() was not called. There was no call."
        assert failure(session.assert_asked, "exec").endswith("There was no request.")
        session.call("read", path="a.txt")
        session.call("write", path="b.txt", content="two\n")
        assert failure(session.assert_called, "read", path="b.txt") == (
            "read(path='b.txt') was not called. Calls:\n"
            "  1. read(path='a.txt'): ok\n"
            "  2. write(path='b.txt', content='two\\n'): ok"
        )
        assert failure(session.assert_called, "read", times=2).startswith("read() was called 1 times, not 2. Calls:")
        assert failure(session.assert_refused, "write").startswith("write() was not refused. Calls:")
        assert failure(session.assert_not_called, "read").startswith("read() was called 1 times, not 0. Calls:")
        assert failure(session.assert_asked, "exec", command="rm x").startswith(
            "nothing asked for approval of exec(command='rm x'). Requests:\n  1. write: "
        )
        assert failure(session.assert_not_asked).startswith("approval was needed. Requests:\n  1. write: ")
        (session.workspace / "old.txt").unlink()
        assert failure(session.assert_changed, {"b.txt": "three\n", "c.txt": ..., "a.txt": None}) == (
            "the changes differ:\n"
            "  a.txt was not changed\n"
            "  b.txt has 'two\\n', not 'three\\n'\n"
            "  c.txt was not changed\n"
            "  old.txt was deleted too"
        )
        session.assert_changed({"b.txt": ..., "old.txt": None})


def test_a_tool_that_lies_about_its_effects_is_found_out() -> None:
    with TemporarySession() as session:

        @tool(read_only=True, auto_execute=True)
        def lie() -> str:
            """Look around."""
            (session.workspace / "a.txt").write_text("x")
            return "looked"

        session.rail.register(lie)
        session.call("lie")
        assert failure(session.assert_changed, {}) == "the changes differ:\n  a.txt was changed too"


def test_the_session_works_with_asyncio_too() -> None:
    async def story() -> None:
        with TemporarySession(tools=[greet]) as session:
            rail = AsyncHandrail(session.rail)
            await Agent(rail, ScriptedModel([call("greet", name="Ada"), "Done."])).run("Greet.")
            session.assert_called("greet", name="Ada")

    asyncio.run(story())


def test_all_that_the_module_exports_has_types() -> None:
    for name in handrail.testing.__all__:
        public = getattr(handrail.testing, name)
        if inspect.isclass(public) or inspect.isfunction(public):
            assert isinstance(get_type_hints(public), dict)


PLUGIN_TEST = """
import sys

def test_without_the_fixture_nothing_is_loaded():
    assert "handrail.pytest_plugin" in sys.modules
    assert not {"msgspec", "handrail.api", "handrail.testing"} & set(sys.modules)

def test_with_it(handrail_session, tmp_path):
    with handrail_session({"a.txt": "x"}, approve="once") as session:
        session.call("write", path="b.txt", content="y")
        session.assert_changed({"b.txt": "y"})
        assert session.workspace.is_relative_to(tmp_path)
    assert handrail_session(mode="auto").rail.mode == "auto"
"""


def test_pytest_finds_the_fixtures_and_loads_nothing_for_other_tests(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(PLUGIN_TEST)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["handrail.pytest_plugin"]\n')
    environment = {**os.environ, "PYTHONPATH": str(Path(handrail.testing.__file__).parents[1])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_pytest_runs_in_an_environment_whose_sources_of_handrail_are_out_of_sight() -> None:
    entries = distribution("handrail").entry_points
    assert not [entry for entry in entries if entry.group == "pytest11"], "pytest ends if it cannot import one"
