"""Nothing of a model, a tool or a file reaches the terminal raw."""

import os
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.document import Document
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import TransformationInput
from tests.chat.conftest import DEEP, Chat
from tests.chat.payloads import INVISIBLE, PAYLOADS, SEQUENCES
from tests.chat.window import Window

from handrail.chat.composer import VisibleText
from handrail.chat.viewer import build_card_pages
from handrail.models.base import CallPiece
from handrail.protocol import events
from handrail.protocol.calls import ToolCall
from handrail.protocol.results import Artifacts, Meta, ToolResult
from handrail.protocol.text import escape_control
from handrail.terminal.glyphs import Glyphs, SpoofGuard
from handrail.terminal.markdown import MarkdownStream
from handrail.terminal.session_view import SessionView
from handrail.terminal.style import paint_text

SGR = re.compile(r"\x1b\[[0-9;]*m")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP: dict[str, Any] = {"event_id": "s:1", "seq": 1, "session_id": "s", "time": NOW}
CALL: dict[str, Any] = {**STAMP, "tool_call_id": "c1", "tool_call_name": "exec"}


class Rows:
    """Keeps the rows."""

    width = 90

    def __init__(self) -> None:
        self.rows: list[str] = []

    def write(self, rows: list[str]) -> None:
        self.rows += rows


def is_clean(row: str) -> bool:
    text = SGR.sub("", row)
    return "\n" not in text and escape_control(text) == text


def result(payload: str, name: str = "exec", **more: Any) -> ToolResult[Any]:
    given: dict[str, Any] = {
        "tool_call_id": "c1",
        "name": name,
        "version": "1.0.0",
        "ok": True,
        "title": payload,
        "summary": payload,
        "content": payload,
        "data": {"output": f"{payload}\n{payload}", "exitCode": 1, "diff": f"-{payload}\n+{payload}\n"},
        "error": None,
        "meta": Meta(truncated=False),
        "artifacts": Artifacts(),
        "attachments": (),
        "warnings": (payload,),
        "duration_ms": 1.0,
    }
    return ToolResult(**(given | more))


def everything_that_shows(payload: str) -> Iterator[events.Event]:
    yield events.Text(
        **STAMP, message_id="m", text=f"{payload}\n# {payload}\n- {payload}\n```\n{payload}\n```\n{payload}"
    )
    yield events.Reasoning(**STAMP, message_id="m", text=payload)
    yield events.Display(**STAMP, content=payload, title=payload, thought=payload, evidence=(payload,))
    yield events.Warning(**STAMP, code="X", text=payload)
    yield events.Notice(**STAMP, text=payload)
    yield events.Network(**STAMP, host=payload, port=1, allowed=False, reason=payload)
    yield events.Process(**STAMP, process=payload, state="ended", command=payload, reason=payload)
    yield events.ToolCallStart(**CALL, args={"command": payload}, trace_id="t")
    yield events.ToolCallUpdate(**CALL, output=payload)
    yield events.ToolCallEnd(**CALL, result=result(payload))
    edit = {**CALL, "tool_call_name": payload}
    yield events.ToolCallStart(**edit, args={"path": payload}, trace_id="t")
    yield events.ToolCallEnd(
        **edit, result=result(payload, name="edit", data={"diff": f"+{payload}\n", "replacements": 2})
    )
    todo = {"items": [{"text": payload, "status": payload}]}
    yield events.ToolCallStart(**CALL, args=todo, trace_id="t")
    yield events.ToolCallEnd(**CALL, result=result(payload, name="todo"))


def shown_for(payload: str) -> list[str]:
    """Every row that a session shows of a payload: finished, live, and in the viewer."""
    rows = Rows()
    view = SessionView(Glyphs(paint=paint_text), rows)
    view.begin_turn(payload)
    live = view.render_live()
    for event in everything_that_shows(payload):
        view.show(event)
        live += view.render_live()
    view.show_piece(CallPiece(payload))
    view.show_preview(
        ToolCall(tool_call_id="c9", name=payload, args={"command": payload}, trace_id="t", timestamp=NOW), payload
    )
    live += view.render_live()
    view.write_note(payload)
    view.end_turn()
    pages = build_card_pages([*view.cards], paint_text)
    return [*rows.rows, *live, *(row for page in pages for row in (page.name, *page.rows(80)))]


def test_there_are_enough_payloads() -> None:
    assert len(PAYLOADS) >= 40
    assert all(escape_control(payload) != payload for payload in PAYLOADS.values())


@pytest.mark.parametrize("name", PAYLOADS)
def test_no_payload_reaches_a_row_raw_and_each_is_visible(name: str) -> None:
    payload = PAYLOADS[name]
    shown = shown_for(payload)
    assert [row for row in shown if not is_clean(row)] == []
    if name != "carriage return":
        assert sum("\\u" in row or "\\n" in row for row in shown) >= 8


@given(payload=st.text(st.characters(codec="utf-8"), min_size=1, max_size=30))
def test_no_text_at_all_reaches_a_row_raw(payload: str) -> None:
    assert [row for row in shown_for(payload) if not is_clean(row)] == []


@given(text=st.text(max_size=60), cuts=st.lists(st.integers(0, 60), max_size=4))
def test_it_does_not_matter_where_a_message_was_cut(text: str, cuts: list[int]) -> None:
    whole = MarkdownStream(paint_text, SpoofGuard(Glyphs()))
    expected = [*whole.feed(text, 80), *whole.end(80)]
    pieces = MarkdownStream(paint_text, SpoofGuard(Glyphs()))
    edges = [0, *sorted(cuts), len(text)]
    rows = [row for start, end in pairwise(edges) for row in pieces.feed(text[start:end], 80)]
    assert [*rows, *pieces.end(80)] == expected


@pytest.mark.parametrize("name", PAYLOADS)
def test_the_composer_shows_what_is_in_its_text(name: str) -> None:
    payload = PAYLOADS[name].replace("\n", "")
    given = TransformationInput(BufferControl(), Document(payload), 0, lambda at: at, [("", payload)], 80, 24)
    shown = VisibleText().apply_transformation(given)
    text = "".join(fragment[1] for fragment in shown.fragments)
    assert escape_control(text) == text
    for at in range(len(payload)):
        assert shown.display_to_source(shown.source_to_display(at)) == at


def shows_all(window: Window) -> None:
    """Turns the pages of a request to its end."""
    more = "· space or ↓ shows them ·"
    while True:
        window.waits_for(lambda: more in window.lines[-1] or window.lines[-1].startswith("└"), "the end of a page")
        if more not in window.lines[-1]:
            return
        window.program.press_until(b" ", "\n")


def test_on_a_real_terminal_none_is_raw_and_all_are_visible_in_the_prompt(chat: Chat, workspace: Path) -> None:
    payloads = [payload for payload in PAYLOADS.values() if "\x00" not in payload and "/" not in payload]
    content = "\n".join(payloads)
    names = [payload.replace("\r", "") for payload in INVISIBLE.values()]
    (workspace / f"{names[0]}.txt").write_text("x\n")
    command = " ".join(f"'{payload}'" for payload in payloads)
    window = chat(
        {"text": content, "calls": [["write", {"path": f"{names[7]}.txt", "content": content}]]},
        {"text": "", "calls": [["exec", {"command": f"printf '%s\\n' {command} > out.txt; cat out.txt"}]]},
        {"text": content},
    )
    window.sends("begin")
    window.sees("Permission · write")
    shows_all(window)
    window.answers(b"y", "✓ ")
    window.sees("Permission · exec")
    shows_all(window)
    window.answers(b"y", "✓ exec")
    window.sees("Done ·")
    raw = window.raw
    for payload in (*SEQUENCES.values(), *INVISIBLE.values()):
        if payload not in {SEQUENCES[name] for name in ("alternate screen", "paste off", "hide cursor", "bell")}:
            assert payload not in raw, payload
    squeezed = re.sub(r"[\s│]+", "", SGR.sub("", raw))
    for payload in payloads:
        visible = re.sub(r"\s+", "", escape_control(payload))
        assert visible in squeezed, (payload, visible)


PLACES = ("command", "name", "content", "model text", "tool output")
SHARE = len(PAYLOADS) if os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"} else 3
PICKED = random.Random(27).sample(sorted(PAYLOADS), SHARE)
"""The payloads of today."""


@pytest.mark.parametrize("place", [pytest.param(place, marks=() if place == "name" else DEEP) for place in PLACES])
def test_each_place_of_a_real_terminal_shows_payloads_as_escapes(chat: Chat, workspace: Path, place: str) -> None:
    payloads = [PAYLOADS[name] for name in PICKED if name != "null"]  # a journal keeps none
    if place in {"command", "name"}:  # what a file or an argument cannot have
        payloads = [one for one in payloads if not set(one) & {"/", "\r"}]
    text = "".join(f"<{at}|{payload}|>" + "\n" * (at % 3 == 2) for at, payload in enumerate(payloads))
    words = "; ".join(f"echo '<{number}|{payload}|>'" for number, payload in enumerate(payloads))
    if place == "tool output":
        (workspace / "out.txt").write_bytes(text.encode())
    parts = ["".join(payloads[at : at + 3]) for at in range(0, len(payloads), 3)]
    names = [["write", {"path": f"n{at}{part}.txt", "content": "x"}] for at, part in enumerate(parts)]
    calls: dict[str, list[Any]] = {
        "command": [["exec", {"command": f"{words}; touch made"}]],
        "name": names,
        "content": [["write", {"path": "b.txt", "content": text}]],
        "model text": [],
        "tool output": [["exec", {"command": "cat out.txt; exit 3"}]],
    }
    first: dict[str, Any] = {"text": text} if place == "model text" else {"calls": calls[place]}
    window = chat(first, {"text": "All is done."})
    window.sends("begin")
    for number in range(len(names) if place == "name" else place in {"command", "content"}):
        several = place == "name" and len(names) > 1
        window.sees(f"Permission {number + 1} of {len(names)}" if several else "Permission ·")
        last = re.compile("why do you ask|more lines")
        window.waits_for(lambda last=last: bool(last.search("\n".join(window.lines[-8:]))), "the end of a page")
        shows_all(window)
        window.answers(b"y", "Approval needed" if several and number + 1 < len(names) else "✓ ")
    if place == "tool output":
        window.sees("All is done.")
        window.press("\x0f")  # every call with its output
        window.sees("output")
        window.press("q")
    window.sees("All is done." if place != "model text" else "Done ·")
    raw = window.raw
    squeezed = re.sub(r"[\s│]+", "", SGR.sub("", raw))
    for at, payload in enumerate(payloads):  # with its mark: handrail sends some of the sequences itself
        mark = f"|{payload}" if place != "name" else parts[at // 3]
        assert mark not in raw, payload
        if place != "tool output":
            assert re.sub(r"\s+", "", escape_control(payload)) in squeezed, payload
