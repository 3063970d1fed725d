"""A change reports the problems that it causes."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from threading import Event as Signal
from typing import Any

import pytest
from projects import PYTHON_SERVERS, Make, choose, fake, succeed

from handrail import Handrail
from handrail.protocol.events import Event
from handrail.protocol.events import Warning as WarningEvent
from handrail.settings import Settings

FILES = {
    "pyproject.toml": "[project]\nname = 'sample'\nversion = '1'\n",
    "a.py": "def double(n: int) -> int:\n    return n * 2\n",
    "b.py": "from a import double\n\nold: int = 'wrong'\nprint(double(2))\n",
}
PATCH = "*** Begin Patch\n*** Update File: b.py\n-print(double(2))\n+print(double('2'))\n*** End Patch\n"
LONG = {"lsp__wait": "30s"}


def open_rail(rail: Make, workspace: Path, server: str = "ty", **settings: object) -> Handrail:
    for name, text in FILES.items():
        (workspace / name).write_text(text)
    return rail(settings=choose(server, **(LONG | settings)))


@pytest.mark.parametrize("server", PYTHON_SERVERS)
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("edit", {"path": "b.py", "oldText": "double(2)", "newText": "double('2')"}),
        ("multi_edit", {"path": "b.py", "edits": [{"oldText": "double(2)", "newText": "\n\n\ndouble('2')"}]}),
        ("write", {"path": "b.py", "content": FILES["b.py"].replace("(2)", "('2')")}),
        ("write", {"path": "new.py", "content": "x: int = 'new'\n"}),
        (
            "apply_patch",
            {"patch": PATCH},
        ),
    ],
    ids=["edit", "multi_edit", "write", "create", "apply_patch"],
)
def test_a_change_lists_the_errors_that_it_caused_and_no_older_ones(
    rail: Make, workspace: Path, server: str, tool: str, arguments: dict[str, object]
) -> None:
    opened = open_rail(rail, workspace, server)
    result = opened.call(tool, arguments)
    succeed(result)
    assert result.meta.diagnostics is not None
    assert result.meta.diagnostics.state == "checked"
    [added] = result.meta.diagnostics.added
    assert added.file == arguments.get("path", "b.py")
    [warning] = [one for one in result.warnings if one.startswith("New problem: ")]
    assert f"{added.file} line {added.line + 1}: error: " in warning


def test_a_change_that_mends_says_so(rail: Make, workspace: Path) -> None:
    result = open_rail(rail, workspace).call("edit", {"path": "b.py", "oldText": "'wrong'", "newText": "3"})
    assert result.meta.diagnostics is not None
    assert (result.meta.diagnostics.added, result.meta.diagnostics.fixed) == ((), 1)
    assert result.warnings == ()


def test_an_error_in_another_open_file_is_listed(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace)
    succeed(opened.call("lsp_diagnostics", {"paths": ["b.py"]}))
    result = opened.call("edit", {"path": "a.py", "oldText": "def double", "newText": "def triple"})
    assert result.meta.diagnostics is not None
    assert [one.file for one in result.meta.diagnostics.added] == ["b.py"]


def test_a_deletion_is_checked_too(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace)
    succeed(opened.call("lsp_diagnostics", {"paths": ["b.py"]}))
    result = opened.call("delete", {"path": "a.py"})
    assert result.meta.diagnostics is not None
    assert [one.file for one in result.meta.diagnostics.added] == ["b.py"]


def test_warnings_count_only_if_the_settings_say_so(rail: Make, workspace: Path) -> None:
    program = fake(workspace, "warns")
    (workspace / "a.fake").write_text("good\n")
    edit = {"path": "a.fake", "oldText": "good", "newText": "bad"}
    errors = rail(settings=choose(program, **LONG)).call("edit", edit)
    assert errors.meta.diagnostics is not None
    assert errors.meta.diagnostics.added == ()
    (workspace / "a.fake").write_text("good\n")
    warnings = rail(session="two", settings=choose(program, lsp__diagnostics="warnings", **LONG)).call("edit", edit)
    assert warnings.meta.diagnostics is not None
    assert {one.severity for one in warnings.meta.diagnostics.added} == {"warning"}


def test_a_check_that_takes_long_follows_as_an_event(rail: Make, workspace: Path) -> None:
    came = Signal()

    def listen(event: Event) -> None:
        if isinstance(event, WarningEvent) and event.code == "lsp.diagnostics":
            came.set()

    (workspace / "a.fake").write_text("good\n")
    opened = rail(settings=choose(fake(workspace, "slow"), lsp__wait="100ms"))
    opened.subscribe(listen)
    result = opened.call("write", {"path": "a.fake", "content": "bad\n"})
    assert result.meta.diagnostics is not None
    assert result.meta.diagnostics.state == "checking"
    assert any("still checks" in one for one in result.warnings)
    assert came.wait(60)
    [event] = [one for one in opened.events() if isinstance(one, WarningEvent)]
    assert event.text == "New problem: a.fake line 1: error: it is bad\\u001b[31m (fake)"


def test_a_listener_of_late_problems_may_ask_the_server(rail: Make, workspace: Path) -> None:
    answers: list[Any] = []
    came = Signal()

    def listen(event: Event) -> None:
        if isinstance(event, WarningEvent) and event.code == "lsp.diagnostics":
            answers.append(opened.call("lsp_definition", {"path": "a.fake", "line": 0, "character": 0}))
            came.set()

    opened = rail(settings=choose(fake(workspace, "slow"), lsp__wait="100ms"))
    opened.subscribe(listen)
    assert opened.call("write", {"path": "a.fake", "content": "bad\n"}).ok
    assert came.wait(60)
    assert [one.file for one in succeed(answers[0]).locations] == ["a.fake"]


@pytest.mark.parametrize("mode", ["slow", "silent"])
def test_a_session_closes_while_a_change_is_checked(rail: Make, workspace: Path, mode: str) -> None:
    threads = set(threading.enumerate())
    opened = rail(settings=choose(fake(workspace, mode), lsp__wait="100ms"))
    result = opened.call("write", {"path": "a.fake", "content": "bad\n"})
    assert result.meta.diagnostics is not None
    assert result.meta.diagnostics.state == "checking"
    began = time.monotonic()
    opened.close()
    assert time.monotonic() - began < 9, "less than handrail waits at most"
    assert set(threading.enumerate()) <= threads


@pytest.mark.parametrize(
    "settings",
    [
        choose("ty", lsp__diagnostics="off"),
        choose("ty", tools__enable=()),
        choose("clangd"),
    ],
    ids=["off", "no lsp tool", "no server for it"],
)
def test_nothing_is_checked_where_it_is_off(rail: Make, workspace: Path, settings: Settings) -> None:
    for name, text in FILES.items():
        (workspace / name).write_text(text)
    result = rail(settings=settings).call("edit", {"path": "b.py", "oldText": "(2)", "newText": "('2')"})
    assert result.ok
    assert result.meta.diagnostics is None
    assert result.warnings == ()


def test_a_session_without_the_tools_imports_nothing_of_it(workspace: Path, tmp_path: Path) -> None:
    program = f"""
import sys
from handrail import Handrail
with Handrail({str(workspace)!r}, mode="auto", state_dir={str(tmp_path / "state")!r}) as rail:
    assert rail.call("write", {{"path": "a.py", "content": "x = 1"}}).ok
    assert rail.call("lsp_hover", {{}}).error.code == "UNKNOWN_TOOL"
print([name for name in sys.modules if ".lsp" in name or name in ("lsprotocol", "pygls")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
