"""The desktop is told of what waits, by a program of the system that nobody waits for."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interims import interim

from handrail.mcp.approval_watch import notify_desktop
from handrail.mcp.calls import UnansweredCall
from handrail.process import desktop
from handrail.process.desktop import show_on_desktop
from people import a_request

DEADLINE = 60.0


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a program that writes down what it was called with."""
    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "notify-send"
    told = tmp_path / "told"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        f"with open({str(told)!r} + '.new', 'w') as file:\n    file.write('\\0'.join(sys.argv[1:]))\n"
        f"os.rename({str(told)!r} + '.new', {str(told)!r})\n"
    )
    program.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A desktop that nobody was told on, whatever ran before."""
    monkeypatch.setattr(desktop, "_last", [-desktop._PAUSE_SECONDS])
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.delenv("HANDRAIL_NOTIFY", raising=False)
    yield
    for one in desktop._started:
        one.wait(DEADLINE)
    desktop._started.clear()


def told(tmp_path: Path) -> list[str]:
    until = time.monotonic() + DEADLINE
    while not (tmp_path / "told").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return (tmp_path / "told").read_text().split("\0")


def notify(call: UnansweredCall) -> bool:
    return notify_desktop(lambda title, text: desktop.notify_person(title, text, os.environ), call)


def waits(**fields: Any) -> UnansweredCall:
    return UnansweredCall(call_id="call-1", interim=interim("exec"), requests=(a_request(**fields),))


def test_the_program_is_called_with_the_text_as_it_is(programs: Path, tmp_path: Path) -> None:
    assert show_on_desktop("--help", "$(touch x); `id`\n--version", (str(programs),))
    assert told(tmp_path)[-3:] == ["--", "--help", "$(touch x); `id`\n--version"]


def test_what_waits_is_told_in_one_short_line_with_nothing_hidden_or_marked_up(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desktop, "FOLDERS", (str(programs),))
    assert notify(waits(command="echo <b>x</b>\n\x1b[31m\u202e" + "y" * 500))
    text = told(tmp_path)[-1]
    assert text.startswith("exec: echo &lt;b&gt;x&lt;/b&gt;\\n\\u001b[31m\\u202e")
    assert text.endswith("…\nhandrail approvals")
    assert len(text) < 300


def test_many_that_wait_together_are_told_once(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desktop, "FOLDERS", (str(programs),))
    assert [notify(waits()) for _ in range(20)] == [True] + [False] * 19


@pytest.mark.parametrize("value", ["off", "0", "OFF"])
def test_it_can_be_switched_off(programs: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setattr(desktop, "FOLDERS", (str(programs),))
    monkeypatch.setenv("HANDRAIL_NOTIFY", value)
    assert not notify(waits())


def test_without_a_desktop_or_a_program_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not show_on_desktop("a", "b", (str(tmp_path),))
    broken = tmp_path / "notify-send"
    broken.write_text("no program")
    broken.chmod(0o755)
    assert not show_on_desktop("a", "b", (str(tmp_path),))
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not notify(waits())


def test_a_program_that_hangs_holds_up_nobody(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    program = tmp_path / "notify-send"
    program.write_text(f"#!/bin/sh\nread line < {gate}\n")
    program.chmod(0o755)
    began = [show_on_desktop("a", "b", (str(tmp_path),)) for _ in range(10)]
    assert began.count(True) < 10, "of those that hang there are few"
    for one in desktop._started:
        one.kill()
