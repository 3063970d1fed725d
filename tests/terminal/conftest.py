"""A question on a terminal of its own."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

from handrail.protocol.permissions import PermissionRequest
from handrail.terminal.keyboard import KeyTiming
from handrail.terminal.permission_prompt import PermissionPrompt
from handrail.terminal.screen import Screen
from people import QUICK, Ask, Asked, Terminal, a_request


@pytest.fixture
def ask() -> Iterator[Ask]:
    """Puts a question on a terminal; it is hung up in the end."""
    opened: list[tuple[Asked, Any]] = []

    def ask(
        request: PermissionRequest | None = None,
        *,
        columns: int = 80,
        rows: int = 50,
        term: str = "xterm",
        environ: dict[str, str] | None = None,
        encoding: str = "utf-8",
        timing: KeyTiming = QUICK,
        typed: bytes = b"",
        plain: bool = False,
        **more: Any,
    ) -> Asked:
        terminal = Terminal(columns, rows)
        terminal.press(typed)
        stream = open(os.dup(terminal.device), "w", encoding=encoding)  # noqa: SIM115  the prompt has it
        screen = Screen(stream, {"TERM": term, **(environ or {})}, plain=plain)
        asked = Asked(terminal, PermissionPrompt(terminal.device, screen, timing), request or a_request(), **more)
        opened.append((asked, stream))
        return asked

    yield ask
    for asked, stream in opened:
        asked.end()
        with contextlib.suppress(OSError):
            stream.close()
        os.close(asked.terminal.device)
