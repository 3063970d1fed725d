"""Lines that may be more than the screen has rows: shown a page at a time, below what there is."""

from handrail.terminal.screen import Screen


class Scroll:
    """What is to be seen of a question, and how much of it was."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._below: list[str] = []
        """What has not been shown yet."""
        self.seen = False
        """Whether the question itself was shown to its end."""

    @property
    def has_more(self) -> bool:
        """Whether there is something that was not shown yet."""
        return bool(self._below)

    def begin(self, lines: list[str]) -> None:
        """The question, for the first time or again."""
        self.seen = False
        self.more(lines)

    def more(self, lines: list[str]) -> None:
        """Something that was asked for, in the place of what is left."""
        self._below = lines
        self.page()

    def page(self) -> None:
        """The next page."""
        self.go_on(self._screen.size()[1] - 2)

    def go_on(self, count: int) -> None:
        """So many more lines."""
        self._screen.clear_status()
        self._screen.write(self._below[:count])
        self._below = self._below[count:]
        self.seen = self.seen or not self._below
        self.say_what_is_left()

    def leave(self) -> None:
        """Nothing more of what was asked for."""
        self._below = []
        self.go_on(0)

    def say_what_is_left(self) -> None:
        """How much there is, and how to see it."""
        if self._below:
            back = " · q back" if self.seen else ""
            self._screen.status(f"{len(self._below)} more lines · space or ↓ shows them{back} · n deny · l later")
