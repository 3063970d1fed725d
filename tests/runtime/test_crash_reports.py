"""Defects become results, and nothing that is written about them holds data."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Context, Handrail, Output, Tool, ToolError, tool
from handrail.protocol.changes import Change, ChangeSet
from handrail.protocol.errors import CODES
from handrail.protocol.events import Event
from handrail.protocol.results import Attachment
from handrail.state import StoredState
from handrail.tools.tool import Touches

Make = Callable[..., Handrail]
SPEC = tool(lambda: "x", name="odd", description="Is odd.", read_only=True, auto_execute=True).spec


def code(result: Any) -> str | None:
    return result.error.code if result.error else None


def crashes(tmp_path: Path) -> list[str]:
    return [path.read_text() for path in sorted((tmp_path / "state" / "crashes").glob("*"))]


def check_memory(rail: Handrail, tmp_path: Path, calls: int) -> None:
    assert all(isinstance(event, Event) for event in rail.events())
    rail.close()
    verification = StoredState(str(tmp_path / "state")).verify()
    assert (verification.problems, verification.records) == ((), calls)


def test_a_defect_in_a_tool_is_internal_with_a_report_that_holds_no_data(rail: Make, tmp_path: Path) -> None:
    @tool
    def breaks(text: str) -> str:
        """Breaks."""
        raise ValueError(f"canary {text}")

    one = rail(mode="full", tools=[breaks])
    result = one.call("breaks", {"text": "canary-argument"})
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("INTERNAL", False)
    assert "ValueError" in result.error.message
    assert "canary" not in result.error.message
    assert "breaks" in result.error.message
    [report] = crashes(tmp_path)
    assert report.startswith("ValueError\n")
    assert "test_crash_reports.py" in report
    assert "canary" not in report
    assert os.sep not in report
    assert one.ls().ok
    check_memory(one, tmp_path, 2)


@pytest.mark.parametrize(
    "kind", [ZeroDivisionError, RecursionError, MemoryError, StopIteration, AssertionError, OSError]
)
def test_every_kind_of_exception_becomes_a_result(rail: Make, tmp_path: Path, kind: type[Exception]) -> None:
    @tool(read_only=True, auto_execute=True)
    def breaks() -> str:
        """Breaks."""
        raise kind

    one = rail(tools=[breaks])
    assert code(one.call("breaks", {})) == "INTERNAL"
    check_memory(one, tmp_path, 1)


def test_an_endless_recursion_becomes_a_result(rail: Make, tmp_path: Path) -> None:
    @tool(read_only=True, auto_execute=True)
    def recurses(depth: int = 0) -> Any:
        """Recurses."""

        def deeper() -> Any:
            return deeper()

        return deeper()

    one = rail(tools=[recurses])
    assert code(one.call("recurses", {})) == "INTERNAL"
    check_memory(one, tmp_path, 1)


def test_where_no_report_can_be_written_the_result_is_the_same(rail: Make, tmp_path: Path) -> None:
    one = rail(tools=[Tool(SPEC, lambda *_: 1 / 0)])  # type: ignore[arg-type, return-value]
    (tmp_path / "state" / "crashes").write_text("a file in the way")
    assert code(one.call("odd", {})) == "INTERNAL"
    check_memory(one, tmp_path, 1)


@pytest.mark.parametrize("code_given", CODES)
def test_a_tool_error_keeps_its_code(rail: Make, code_given: Any) -> None:
    @tool(read_only=True, auto_execute=True)
    def refuses() -> str:
        """Refuses."""
        raise ToolError(code_given, "because", details={"a": [1]})

    result = rail(tools=[refuses]).call("refuses", {})
    assert result.error is not None
    assert (result.error.code, result.error.message, result.error.details) == (code_given, "because", {"a": [1]})
    assert result.content == result.summary == "because"


@pytest.mark.parametrize(
    "error",
    [
        ToolError("MY_OWN_CODE", "x"),  # type: ignore[arg-type]
        ToolError(None, "x"),  # type: ignore[arg-type]
        ToolError("NOT_FOUND", "\ud800"),
        ToolError("NOT_FOUND", 5),  # type: ignore[arg-type]
        ToolError("NOT_FOUND", "x", details=object()),
        ToolError("NOT_FOUND", "x", details={"\ud800": {1, 2}}),
        ToolError("NOT_FOUND", "x" * 10_000_000),
    ],
)
def test_a_tool_error_that_no_result_could_hold_is_made_fit(rail: Make, tmp_path: Path, error: ToolError) -> None:
    def run(*_: Any) -> Output:
        raise error

    one = rail(tools=[Tool(SPEC, run)])
    result = one.call("odd", {})
    assert code(result) in {"NOT_FOUND", "INTERNAL"}
    assert len(result.summary) <= 10_000
    check_memory(one, tmp_path, 1)


GOOD: dict[str, Any] = {"summary": "s", "content": "c", "data": None}


@pytest.mark.parametrize(
    "output",
    [
        None,
        "a string",
        Output(**{**GOOD, "summary": None}),
        Output(**{**GOOD, "content": 5}),
        Output(**{**GOOD, "content": "\ud800"}),
        Output(**{**GOOD, "data": object()}),
        Output(**{**GOOD, "data": {"\ud800": 1}}),
        Output(**GOOD, meta={"no_such_field": 1}),
        Output(**GOOD, meta={"total": "many"}),
        Output(**GOOD, meta={"limits": (1,)}),
        Output(**GOOD, meta=None),  # type: ignore[arg-type]
        Output(**GOOD, files_changed=(1,)),  # type: ignore[arg-type]
        Output(**GOOD, files_changed="abc"),  # type: ignore[arg-type]
        Output(**GOOD, commands_run=({},)),  # type: ignore[arg-type]
        Output(**GOOD, warnings=(None,)),  # type: ignore[arg-type]
        Output(**GOOD, attachments=(Attachment(type="sound", path="x", mime="y"),)),  # type: ignore[arg-type]
        Output(**GOOD, changes=ChangeSet(changes=(Change(path=5, action="eaten"),))),  # type: ignore[arg-type]
        Output(**GOOD, changes="everything"),  # type: ignore[arg-type]
        Output(**GOOD, truncated="maybe"),  # type: ignore[arg-type]
        Output(**GOOD, title=["x"]),  # type: ignore[arg-type]
    ],
)
def test_an_output_that_is_no_result_reaches_neither_journal_nor_audit(rail: Make, tmp_path: Path, output: Any) -> None:
    one = rail(tools=[Tool(SPEC, lambda *_: output)])
    result = one.call("odd", {})
    assert code(result) == "INTERNAL"
    assert result.name == "odd"
    assert one.ls().ok
    check_memory(one, tmp_path, 2)


@pytest.mark.parametrize("touched", [None, Touches(reads=(5,)), Touches(writes=("\0",)), Touches(reads=("\ud800",))])  # type: ignore[arg-type]
def test_a_tool_that_declares_nonsense_has_a_result(rail: Make, tmp_path: Path, touched: Any) -> None:
    one = rail(mode="full", tools=[Tool(SPEC, lambda *_: Output(**GOOD), lambda _: touched)])
    assert code(one.call("odd", {})) is not None
    check_memory(one, tmp_path, 1)


def test_a_preview_that_is_none_has_a_result(rail: Make, tmp_path: Path) -> None:
    spec = tool(lambda: "x", name="odd", description="Is odd.").spec
    for preview in (lambda *_: object(), lambda *_: 1 / 0):
        one = rail(mode="ask", tools=[Tool(spec, lambda *_: Output(**GOOD), preview=preview)])  # type: ignore[arg-type]
        assert code(one.call("odd", {})) == "INTERNAL"
        assert one.waiting() == ()
        one.close()


@pytest.mark.parametrize("link", ["link", "link/file.txt"])
def test_a_name_that_is_not_unicode_is_refused_in_words(rail: Make, tmp_path: Path, workspace: Path, link: str) -> None:
    odd = os.fsencode(workspace) + b"/\xff"
    if "/" in link:
        os.mkdir(odd)
        Path(os.fsdecode(odd + b"/file.txt")).write_text("text")
    else:
        Path(os.fsdecode(odd)).write_text("text")
    os.symlink(b"\xff", os.fsencode(workspace) + b"/link")
    one = rail(mode="full")
    for result in (one.read(link), one.write(link, "x"), one.read("missing"), one.ls(), one.ls("link")):
        assert code(result) != "INTERNAL", result.summary
    check_memory(one, tmp_path, 5)


# Canaries


def test_no_canary_leaves_the_journal(
    rail: Make, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Secrets in a file, in arguments, in the environment and in an exception: only journal and blobs may hold them."""
    monkeypatch.setenv("SECRET_TOKEN", "canary-environment")
    (workspace / "a.txt").write_text("canary-file\n" * 2_000)
    (workspace / "c.json").write_text('{"a": "canary-file"}')

    @tool
    def breaks(context: Context, text: str) -> str:
        """Breaks, with all it knows."""
        context.metadata(title="canary-title", output=text)
        local = f"canary-local {text} {os.environ['SECRET_TOKEN']}"
        raise ValueError(local)

    @tool
    def refuses(text: str) -> str:
        """Refuses."""
        raise ToolError("CONFLICT", "canary-message", details=text)

    @tool
    def speaks(text: str) -> str:
        """Says a lot."""
        return f"canary-output {text}\n" * 5_000

    tools = [breaks, refuses, speaks]
    secret = "canary-argument"
    one = rail(mode="full", session="s", tools=tools)
    one.subscribe(lambda event: (_ for _ in ()).throw(ValueError(f"canary-listener {event}")))
    results = [
        one.read("a.txt"),
        one.write("b.txt", secret),
        one.write("a.txt", f"{secret}\n"),
        one.write("c.json", '{"a": canary-argument'),
        one.call("breaks", {"text": secret}),
        one.call("refuses", {"text": secret}),
        one.call("speaks", {"text": secret}),
        one.call("read", {"path": "a.txt", "offset": secret, secret: 1}),
        one.call("read", [secret]),
        one.call("read", {"path": {secret: secret}}),
        one.call("write", {"path": "b.txt", "content": secret, "a canary-name of an argument": secret}),
        one.call("unknown", {"text": secret}),
    ]
    one.set_mode("ask")
    one.write("b.txt", f"{secret} again")
    one.close()
    with rail(mode="ask", session="s", tools=tools) as one:
        one.answer(one.waiting()[0].id, "deny", reason="canary-reason")
    assert [code(result) for result in results if result.error] == [
        *("INTERNAL", "CONFLICT", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        "UNKNOWN_TOOL",
    ]
    internal = results[4]
    assert internal.error is not None
    assert "canary" not in internal.error.message

    state = tmp_path / "state"
    holders: list[str] = []
    searched = 0
    for path in state.rglob("*"):
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path
            searched += 1
            if b"canary-" in path.read_bytes():  # not the name of this test, which is in its folder
                holders.append(str(path.relative_to(state)))
    assert searched > 3
    assert {Path(holder).name if "journal" in holder else Path(holder).parts[0] for holder in holders} <= {
        *("journal.db", "journal.db-wal", "journal.db-shm", "blobs"),
    }
    assert any("journal" in holder for holder in holders), "the search finds canaries where they are"
    output = capfd.readouterr()
    assert "canary" not in output.out + output.err


def test_nothing_shown_to_the_model_names_the_machine(rail: Make, tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "outside.txt").write_text("x")
    (workspace / "link").symlink_to(tmp_path / "outside.txt")
    (workspace / "folder").mkdir()
    one = rail(mode="full", tools=[Tool(SPEC, lambda *_: 1 / 0)])  # type: ignore[arg-type, return-value]
    results = [
        *(one.read("link"), one.read("missing"), one.read("folder"), one.write("folder", "x"), one.ls("missing")),
        *(one.read("../outside.txt"), one.write("link", "x"), one.call("odd", {}), one.read("@output/x")),
        *(one.read("a\0b"), one.read("x" * 5_000), one.call("read", {}), one.write("a/b/../../../x", "x")),
    ]
    for result in results:
        assert not result.ok
        shown = f"{result.title} {result.summary} {result.content} {result.error}"
        assert str(tmp_path) not in shown
        assert os.uname().nodename not in shown
