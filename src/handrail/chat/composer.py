"""The composer: the text that a person types, its completions, its pasted blocks."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History, ThreadedHistory
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

from handrail.protocol.text import escape_char, escape_control, measure_width, to_one_line, truncate

_MAX_SHOWN = 6
"""Rows of the list of completions."""
_MAX_COMPLETIONS = 50
_MAX_PASTED_LINES, _MAX_PASTED_CHARS = 12, 2_000
"""A longer paste stands as one line in the composer."""
_MAX_MARKS = 4
"""Combining marks on one letter that are shown as such."""
_FILES_SECONDS = 20.0
"""How long a list of files is used."""


class Composer:
    """The buffer of the composer, with what its text stands for."""

    def __init__(
        self, commands: Mapping[str, str], list_files: Callable[[], Iterable[str]], history: "History"
    ) -> None:
        self._pastes: dict[str, str] = {}
        """The pasted blocks of the whole session by what stands for them: a prompt may come back."""
        self._has_pasted = False
        self.buffer = Buffer(
            multiline=True,
            history=history,
            completer=ThreadedCompleter(_ComposerCompleter(commands, list_files)),
            complete_while_typing=Condition(self._is_completable),
            tempfile_suffix=".md",
        )

    @property
    def was_typed(self) -> bool:
        """Whether nothing of the text was pasted, put there or taken from the history."""
        lines = self.buffer._working_lines  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001  the last is the new text
        typed = not self._has_pasted and self.text == self.buffer.text
        return typed and self.buffer.working_index == len(lines) - 1

    @property
    def text(self) -> str:
        """The text with its pasted blocks."""
        text = self.buffer.text
        for token, pasted in self._pastes.items():
            text = text.replace(token, pasted)
        return text

    def paste(self, data: str) -> None:
        """Inserts a pasted text. A long one is shown as one line."""
        data = data.replace("\r\n", "\n").replace("\r", "\n")
        self._has_pasted = True
        lines = data.count("\n") + 1
        if lines <= _MAX_PASTED_LINES and len(data) <= _MAX_PASTED_CHARS:
            self.buffer.insert_text(data)
            return
        size = f"{lines:,} lines" if lines > 1 else f"{len(data):,} characters"
        token = f"[Pasted text {len(self._pastes) + 1}: {size}]"
        self._pastes[token] = data
        self.buffer.insert_text(token)

    def take(self) -> str:
        """Returns the text, and empties the composer. The history gets it."""
        text = self.text
        self.buffer.append_to_history()
        self.clear()
        return text

    def clear(self) -> None:
        self.buffer.reset()
        self._has_pasted = False

    def put(self, text: str) -> None:
        """Replaces the text. It does not count as typed."""
        self.clear()
        self._has_pasted = bool(text)
        self.buffer.document = Document(text, len(text))

    def choose_completion(self) -> bool:
        """Inserts the chosen completion. Returns whether there was one."""
        state = self.buffer.complete_state
        if state is None or state.current_completion is None:
            return False
        self.buffer.apply_completion(state.current_completion)
        return True

    def render_completions(self) -> StyleAndTextTuples:
        """A few rows of completions around the chosen one."""
        state = self.buffer.complete_state
        rows: StyleAndTextTuples = [*_render_rows(state)] if state is not None else []
        return rows[:-1]  # without the last newline

    def _is_completable(self) -> bool:
        before = self.buffer.document.text_before_cursor
        return _find_token(before) is not None and "\n" not in before[-200:].rpartition("@")[2]


class PromptHistory(History):
    """The prompts of earlier sessions. The journal stores new ones."""

    def __init__(self, load: Callable[[], Iterable[str]]) -> None:
        super().__init__()
        self._load = load

    def load_history_strings(self) -> Iterable[str]:
        """The latest first."""
        return self._load()

    def store_string(self, string: str) -> None:
        """The journal has it when it is sent."""


def build_history(load: Callable[[], Iterable[str]]) -> History:
    """A history that is loaded in a thread."""
    return ThreadedHistory(PromptHistory(load))


class VisibleText(Processor):
    """Shows characters that control a terminal, or are invisible, as escapes."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        text = "".join(fragment[1] for fragment in fragments)
        if text.isascii() and text.isprintable():
            return Transformation(fragments)
        shown: StyleAndTextTuples = []
        starts: list[int] = [0]
        marks = 0
        for style, piece, *_ in fragments:
            for char in piece:
                marks = marks + 1 if measure_width(char) == 0 else 0
                visible = escape_char(char) if char == "\t" or marks > _MAX_MARKS else escape_control(char)
                shown.append((style, visible))
                starts.append(starts[-1] + len(visible))
        return Transformation(
            shown,
            source_to_display=lambda at: starts[min(at, len(starts) - 1)],
            display_to_source=lambda at: max(0, sum(start <= at for start in starts) - 1),
        )


class _ComposerCompleter(Completer):
    """Completes slash commands at the start, and the names of files behind an at sign."""

    def __init__(self, commands: Mapping[str, str], list_files: Callable[[], Iterable[str]]) -> None:
        self._commands, self._list_files = commands, list_files
        self._files: list[str] = []
        self._files_until = 0.0

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
        before = document.text_before_cursor
        token = _find_token(before)
        if token is None:
            return
        if token.startswith("/"):
            for name, description in self._commands.items():
                if name.startswith(token[1:]):
                    yield Completion(f"/{name}", -len(token), f"/{name}", description)
            return
        for path in match_fuzzy(token[1:], self._refresh_files()):
            yield Completion(f"@{path} ", -len(token), to_one_line(path))

    def _refresh_files(self) -> list[str]:
        if time.monotonic() > self._files_until:
            self._files = list(self._list_files())
            self._files_until = time.monotonic() + _FILES_SECONDS
        return self._files


def _find_token(before: str) -> str | None:
    """The slash command or the file that the text before the cursor begins. None if it is neither."""
    if before.startswith("/") and not any(char.isspace() for char in before):
        return before
    at = before.rfind("@")
    if at < 0 or (at > 0 and not before[at - 1].isspace()) or any(char.isspace() for char in before[at:]):
        return None
    return before[at:]


def match_fuzzy(typed: str, paths: Iterable[str]) -> list[str]:
    """The paths that have the typed characters in this order. Closer matches come first."""
    wanted = typed.casefold()
    ranked: list[tuple[tuple[int, int, int], str]] = []
    for path in paths:
        score = _rate_match(wanted, path.casefold())
        if score is not None:
            ranked.append(((*score, len(path)), path))
    return [path for _, path in sorted(ranked)[:_MAX_COMPLETIONS]]


def _rate_match(wanted: str, path: str) -> tuple[int, int] | None:
    """The kind of the match and the columns that it spans. Lower is better. None if a character is missing."""
    name = path.rpartition("/")[2]
    if name.startswith(wanted):
        return 0, 0
    if wanted in path:
        return (1 if wanted in name else 2), 0
    start = at = -1
    for char in wanted:
        at = path.find(char, at + 1)
        if at < 0:
            return None
        start = at if start < 0 else start
    return 3, at - start


def _render_rows(state: CompletionState) -> Iterator[tuple[str, str]]:
    chosen = state.complete_index or 0
    first = max(0, min(chosen - _MAX_SHOWN // 2, len(state.completions) - _MAX_SHOWN))
    columns = max(20, get_app().output.get_size().columns - 4)
    for number, one in enumerate(state.completions[first : first + _MAX_SHOWN], first):
        style = "class:chosen" if number == state.complete_index else "class:completion"
        line = f"{one.display_text:<16}  {one.display_meta_text}".rstrip()
        yield style, f"{'>' if number == state.complete_index else ' '} {truncate(line, columns)}"
        yield "", "\n"
