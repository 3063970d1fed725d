"""Typing steadily while a prompt arrives never answers it, whatever the keys and their times are."""

import asyncio
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from tests.chat.conftest import Chat

from handrail.chat.console import QuietClock
from handrail.protocol.permissions import ApproverReply
from handrail.terminal.keyboard import KeyTiming
from handrail.terminal.permission_prompt import PermissionPrompt
from handrail.terminal.screen import Screen
from people import Terminal, a_request

TIMING = KeyTiming(quiet=0.4, deaf=0.05, settle=0.01, poll=0.05)
"""The times of a person, faster."""
ANSWERS = b"ysnwoal123\r \x1b"


class Typing(NamedTuple):
    """What came of typing while a prompt arrived."""

    longest: float
    """The longest pause between two keys."""
    shown: str
    answers: list[ApproverReply]
    """Before the terminal went away."""
    last: ApproverReply | None
    """Once it was gone."""


def type_while_a_prompt_arrives(keys: list[int], pauses: list[float], timing: KeyTiming) -> Typing:
    """Presses the keys. The pauses are parts of the quiet time."""
    terminal, answers = Terminal(columns=100), list[ApproverReply]()
    with suppress(OSError), open(terminal.device, "w", closefd=False) as stream:  # it is gone when this closes
        prompt = PermissionPrompt(terminal.device, Screen(stream, {"TERM": "xterm"}), timing)
        asking = threading.Thread(target=lambda: answers.append(prompt.ask(a_request())), daemon=True)
        os.write(terminal.control, bytes([keys[0]]))
        asking.start()
        last, longest = time.monotonic(), 0.0
        for key, pause in zip(keys[1:], pauses, strict=False):
            time.sleep(pause * timing.quiet)
            os.write(terminal.control, bytes([key]))
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        shown, early = terminal.sees_whole(), [*answers]
        terminal.hang_up()
        asking.join(60)
    os.close(terminal.device)
    return Typing(longest, shown, early, answers[0] if answers else None)


@settings(max_examples=6, deadline=None)
@given(
    keys=st.lists(st.sampled_from(ANSWERS), min_size=3, max_size=6),
    pauses=st.lists(st.floats(0.0, 0.6), min_size=6, max_size=6),
    before=st.floats(0.5, 0.9),
)
def test_steady_typing_never_answers_a_prompt_that_arrives(keys: list[int], pauses: list[float], before: float) -> None:
    """`before`: for which part of the quiet time no key had been pressed when the prompt came."""
    for slower in (1, 2, 4, 8):  # a busy machine may need longer pauses to type steadily
        timing = TIMING._replace(quiet=TIMING.quiet * slower, quiet_before=before * TIMING.quiet * slower)
        typing = type_while_a_prompt_arrives(keys, pauses, timing)
        if typing.longest < timing.quiet * 0.8:
            break
    else:
        return
    assert "Permission ·" not in typing.shown
    assert typing.answers == []
    assert typing.last is not None
    assert typing.last.answer is None


EDIT = {"calls": [["edit", {"path": "a.txt", "oldText": "one", "newText": "two"}]]}
PHASES = (Phase.explicit,) if os.environ.get("HANDRAIL_DEEP", "") in {"", "0"} else (Phase.explicit, Phase.generate)


@settings(max_examples=30, phases=PHASES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(after=st.floats(0.93, 1.03), key=st.sampled_from("\x1byn"))
@example(after=0.98, key="\x1b")
def test_a_key_shortly_before_a_prompt_counts_before_it(chat: Chat, workspace: Path, after: float, key: str) -> None:
    """`after`: seconds after the last key. The prompt comes after a quiet second."""
    (workspace / "a.txt").write_text("one\n")
    window = chat(EDIT, {"text": "All is done."})
    window.press("begin")
    window.sees("› begin")
    window.press("\r")
    pressed = time.monotonic()
    while (left := pressed + after - time.monotonic()) > 0:
        window.program.terminal.look(left)
    was_early = "Permission ·" not in "\n".join(window.lines)
    window.press(key)
    window.waits_for(lambda: any(one in window.text for one in ("Permission ·", "Stopped ·")), "a prompt or the end")
    if "Stopped ·" not in window.text:
        window.answers(b"y", "✓ ")
        window.sees("Done ·")
        while window.program.terminal.look(0.5):  # a key that was held back would come now
            pass
        assert "Stopped" not in window.text
        assert "esc again" not in window.raw
        assert (workspace / "a.txt").read_text() == "two\n"
    else:
        assert was_early
        assert key == "\x1b"
        assert (workspace / "a.txt").read_text() == "one\n"
        assert " 0 denied" in window.text  # nobody denied it
        assert "The user denied" not in window.text
    window.close()


@settings(max_examples=8, deadline=None)
@given(pauses=st.lists(st.floats(0.0, 0.8), min_size=3, max_size=6))
def test_a_session_lends_its_terminal_only_after_a_quiet_second(pauses: list[float]) -> None:
    quiet = 0.1
    lent_at, pressed_at = asyncio.run(type_into_console(pauses, quiet))
    assert all(lent_at - at >= quiet for at in pressed_at)


async def type_into_console(pauses: list[float], quiet: float) -> tuple[float, list[float]]:
    """When the console lent its terminal, and when keys were pressed before."""
    clock, pressed = QuietClock(quiet), []

    async def press() -> None:
        for pause in pauses:
            pressed.append(time.monotonic())  # before the clock notes it, so that a pause here makes no difference
            clock.note_key()
            await asyncio.sleep(pause * quiet)

    typing = asyncio.ensure_future(press())
    await asyncio.sleep(0)
    await clock.wait(lambda: None)
    lent = time.monotonic()
    await typing
    return lent, [at for at in pressed if at <= lent]
