"""Drawing on terminals that wrap their rows anew when they become narrower."""

import os
from collections.abc import Mapping
from typing import Any

from prompt_toolkit.data_structures import Point
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer


def can_reflow(environ: Mapping[str, str]) -> bool:
    """Whether the terminal wraps its rows anew. xterm, GNU screen and the console of Linux cut them off."""
    return environ.get("TERM") != "linux" and not ("XTERM_VERSION" in environ or "STY" in environ)


class ReflowOutput(Vt100_Output):
    """Erases rows so that tmux does not keep them in its scrollback, as it does if the whole screen is cleared."""

    def erase_down(self) -> None:
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")


class ReflowRenderer(Renderer):
    """Finds the first row of its last frame again after a resize, so that no part of the frame stays above."""

    def erase(self, leave_alternate_screen: bool = True) -> None:
        self._follow()
        super().erase(leave_alternate_screen)

    def render(self, *args: Any, **options: Any) -> None:
        self._follow()
        super().render(*args, **options)

    def _follow(self) -> None:
        """Moves the known place of the cursor to where the terminal has put it."""
        size, screen, cursor = self.output.get_size(), self._last_screen, self._cursor_pos
        if screen is None or self._last_size is None or size.columns >= self._last_size.columns:
            return
        self._last_size = size
        if can_reflow(os.environ):
            above = 0
            for row in range(cursor.y):
                cells = screen.data_buffer[row]
                width = max((at + cell.width for at, cell in cells.items() if cell.char.strip()), default=0)
                above += max(1, -(-width // size.columns))
            self._cursor_pos = Point(x=cursor.x % size.columns, y=above + cursor.x // size.columns)
        self._last_screen = None
