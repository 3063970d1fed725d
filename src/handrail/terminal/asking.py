"""Whether there is a person at a terminal to ask, and asking them. What it takes to ask is loaded when somebody is."""

import os
import sys
import threading
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from handrail.protocol.permissions import PermissionRequest, Question, Reply
    from handrail.protocol.results import ToolResult
    from handrail.terminal.keys import KeyTiming
    from handrail.terminal.source import PromptResult, RequestHooks


def is_person_present() -> bool:
    """Whether a question can be put here: keys come from a terminal, stderr goes to one, and nothing says that nobody
    looks (CI). Only the main thread asks: in any other one, two would ask at once."""
    if os.environ.get("CI") or threading.current_thread() is not threading.main_thread():
        return False
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr) and _is_in_front(sys.stdin)


def ask_on_terminal(
    request: "PermissionRequest",
    number: int = 1,
    of: int = 1,
    *,
    source: "RequestHooks | None" = None,
    plain: bool = False,
    timing: "KeyTiming | None" = None,
) -> "PromptResult":
    """Asks on stdin and stderr, which must be a terminal. Where there is no answer, `source.still_open` tells whether
    somebody else gave one. The answer is for `said.request`, which may have taken the place of the one given."""
    from handrail.terminal.prompt import PermissionPrompt  # noqa: PLC0415  only where somebody is asked
    from handrail.terminal.screen import Screen  # noqa: PLC0415
    from handrail.terminal.source import NO_HOOKS  # noqa: PLC0415

    screen = Screen(sys.stderr, os.environ, plain=plain)
    return PermissionPrompt(sys.stdin.fileno(), screen, timing).ask(request, number, of, source or NO_HOOKS)


def ask_question_on_terminal(question: "Question", *, plain: bool = False) -> "Reply | None":
    """Puts a question of the model's to the person, on stdin and stderr; None where it is left for later."""
    from handrail.terminal.replying import ask_for_reply  # noqa: PLC0415  only where somebody is asked
    from handrail.terminal.screen import Screen  # noqa: PLC0415

    return ask_for_reply(sys.stdin.fileno(), Screen(sys.stderr, os.environ, plain=plain), question)


def say_kept(said: "PromptResult", result: "ToolResult[Any] | None", *, plain: bool = False) -> None:
    """Tells a person who approved a preview what came of that; without a result, that more is to be answered."""
    from handrail.terminal.screen import Screen  # noqa: PLC0415  only where somebody was asked
    from handrail.terminal.told import is_kept, render_kept_line  # noqa: PLC0415

    if said.answer is not None and is_kept(said.request, said.answer):
        screen = Screen(sys.stderr, os.environ, plain=plain)
        width = screen.size()[0] - 1
        screen.write([render_kept_line(said.request, said.answer, result, width=width, plain=screen.plain)])


def say_answered_elsewhere(request: "PermissionRequest") -> None:
    """Tells the person who was asked that somebody else was faster."""
    from handrail.terminal.request import describe_subject  # noqa: PLC0415  hardly ever needed
    from handrail.terminal.screen import Screen  # noqa: PLC0415

    screen = Screen(sys.stderr, os.environ)
    screen.write([f"Answered elsewhere before you: {describe_subject(request)}"])


def _is_in_front(stream: TextIO) -> bool:
    """Whether the keys of a terminal are for this process, and not for another job of the shell."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:  # it is not the terminal that started us: nobody else has its keys
        return True


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty() and os.isatty(stream.fileno())
    except (OSError, ValueError):  # closed, or no stream of the system
        return False
