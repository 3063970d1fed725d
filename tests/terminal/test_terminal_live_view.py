"""What runs is shown at the bottom of the terminal, redrawn in place, and erased when it is over."""

import fcntl
import os
import struct
import termios
import threading
from collections.abc import Iterator
from typing import NamedTuple, TextIO

import pytest

from handrail.terminal.call_lines import render_running_line
from handrail.terminal.glyphs import Glyphs
from handrail.terminal.live_view import LiveView, RunningCalls
from handrail.terminal.screen import Screen
from handrail.terminal.style import paint_nothing
from people import Terminal


class Live(NamedTuple):
    terminal: Terminal
    stream: TextIO
    view: LiveView


@pytest.fixture(params=["xterm"])
def live(request: pytest.FixtureRequest) -> Iterator[Live]:
    terminal = Terminal(columns=40, rows=20)
    with open(os.dup(terminal.device), "w", encoding="utf-8") as stream:
        view = LiveView(Screen(stream, {"TERM": request.param}))
        yield Live(terminal, stream, view)
        view.stop()
    terminal.hang_up()
    os.close(terminal.device)


def test_rows_are_drawn_over_the_rows_before(live: Live) -> None:
    rows = ["one", "two"]
    live.view.start(lambda: list(rows), 0)
    live.terminal.sees("\rone\x1b[K\ntwo\x1b[K\x1b[J")
    with live.view.lock:
        rows[:] = ["three"]
    live.terminal.sees("\r\x1b[1Athree\x1b[K\x1b[J")


def test_other_output_stands_above_and_the_rows_come_back(live: Live) -> None:
    live.view.start(lambda: ["one", "two"], 0)
    live.terminal.sees("two")
    with live.view.lock:
        live.view.clear()
        live.stream.write("a line\n")
        live.stream.flush()
    live.terminal.sees("\r\x1b[1A\x1b[Ja line\n\rone\x1b[K\ntwo\x1b[K\x1b[J")


def test_the_end_erases_everything(live: Live) -> None:
    live.view.start(lambda: ["one", "two"], 0)
    live.terminal.sees("two")
    with live.view.lock:  # the drawing is over
        assert live.view.erasure == b"\r\x1b[A\x1b[J"
    live.view.stop()
    live.terminal.ends_with("\r\x1b[1A\x1b[J")
    assert live.view.erasure == b""


def test_what_ends_before_its_delay_is_never_shown(live: Live) -> None:
    drawn = threading.Event()
    live.view.start(lambda: [drawn.set() or "late"], 30)
    live.view.start(lambda: ["now"], 0)
    live.terminal.sees("now")
    assert not drawn.is_set()


def test_a_row_is_never_wider_than_the_terminal_also_after_a_resize(live: Live) -> None:
    live.view.start(lambda: ["x" * 100], 0)
    live.terminal.sees(f"{'x' * 38}…\x1b[K")
    fcntl.ioctl(live.terminal.device, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 60, 0, 0))
    live.terminal.sees(f"\r{'x' * 58}…\x1b[K\x1b[J")
    fcntl.ioctl(live.terminal.device, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 30, 0, 0))
    live.terminal.sees(f"\n\r{'x' * 28}…\x1b[K\x1b[J")  # the terminal wrapped the wide row: it stays


@pytest.mark.parametrize("live", ["dumb"], indirect=True)
def test_a_plain_terminal_gets_the_first_row_once(live: Live) -> None:
    live.view.start(lambda: ["one", "two"], 0)
    live.terminal.sees("one\n")
    live.view.stop()
    assert live.terminal.sees_whole() == "one\n"


def test_a_call_shows_its_last_five_lines_of_output() -> None:
    calls = RunningCalls(paint_nothing)
    calls.begin("c1", "● exec  make …")
    calls.add_output("c1", "".join(f"line {number}\n" for number in range(8)) + "10 %\r20 %\r")
    calls.add_output("c1", "90 %\x1b[2J")
    rows = calls.render()
    assert rows[0] == "● exec  make … 0.00 s"
    assert rows[1:] == ["    line 4", "    line 5", "    line 6", "    line 7", "    90 %\\u001b[2J"]
    calls.end("c1")
    assert not calls
    assert calls.render() == []


def test_of_many_calls_the_first_are_shown_and_the_output_that_came_last() -> None:
    calls = RunningCalls(paint_nothing)
    for number in range(5):
        calls.begin(f"c{number}", f"● call {number} …")
    calls.add_output("c1", "early\n")
    calls.add_output("c0", "late\n")
    assert calls.render() == [
        "● call 0 … 0.00 s",
        "● call 1 … 0.00 s",
        "● call 2 … 0.00 s",
        "    and 2 more",
        "    late",
    ]


def test_a_long_command_leaves_room_for_its_time() -> None:
    running = RunningCalls(paint_nothing)
    running.begin("c", render_running_line("exec", {"command": "make every part of it " * 10}, Glyphs(width=60)))
    [row] = running.render()
    assert (len(row) < 60, row.endswith("… 0.00 s")) == (True, True), row
