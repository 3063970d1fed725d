"""Asks for permission on a terminal."""

import os
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO, cast

import msgspec

from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import HandrailError, ToolError
from handrail.protocol.permissions import Answer, ApproverReply, PermissionRequest, Question, Reply
from handrail.protocol.text import to_one_line, truncate_to_width
from handrail.protocol.wire import convert
from handrail.terminal.changes_text import describe_outdated, has_preview_run
from handrail.terminal.diff_view import ViewerPage, browse, build_diff_pages, build_output_page
from handrail.terminal.keyboard import KeyPress, KeyReader, KeyTiming, ask_reason, edit_command, enter_raw_mode
from handrail.terminal.question_prompt import ask_for_reply
from handrail.terminal.request_text import (
    KEEPING,
    KEYS,
    NUMBERS,
    PromptState,
    count_hidden_lines,
    describe_subject,
    is_kept,
    list_choices,
    render_answer_line,
    render_choices,
    render_kept_line,
    render_reasons,
    render_request,
    render_title,
)
from handrail.terminal.screen import Screen, Scroll

# § [terminal.question] One question on its way to its answer.

_HELD_UP = "A question waits: it appears when no key was pressed for a second."
_TRYING = "Trying it in a copy … your files are untouched; Ctrl-C leaves it for later"
_LATER = KeyPress("text", "l")


def _always(_: PermissionRequest) -> bool:
    return True


def _unchanged(_: PermissionRequest) -> tuple[str, ...]:
    return ()


class RequestHooks(msgspec.Struct, frozen=True):
    """Whether a request is still pending, which files changed since its preview, and how to retry it."""

    still_open: Callable[[PermissionRequest], bool] = _always
    outdated: Callable[[PermissionRequest], tuple[str, ...]] = _unchanged
    retry: Callable[[str, str | None], PermissionRequest] | None = None
    """Previews the request of this id again, also with another command. Returns the new request."""


NO_HOOKS = RequestHooks()
"""For a request that is answered only here and cannot be retried."""


class RequestDialog:
    """A request on the screen. `shown` is the request in characters that the terminal has."""

    def __init__(
        self,
        request: PermissionRequest,
        shown: PermissionRequest,
        screen: Screen,
        keys: KeyReader,
        source: RequestHooks,
        which: tuple[int, int],
    ) -> None:
        self._request = request
        self._shown = shown
        self._screen = screen
        self._keys = keys
        self._source = source
        self._heading = render_title(shown, *which)
        self._scroll = Scroll(screen)
        self._possible = PromptState()
        self._offered: set[str] = set()
        self.hidden = True
        """Whether it has to be shown, for the first time or again."""
        self.replaced: PermissionRequest | None = None
        """The request that takes its place: it was tried again."""

    def wait_for_answer(self) -> Answer | None:
        """Takes keys until one is an answer, or another request takes its place."""
        while self.replaced is None:
            if self.hidden:
                self._keys.wait_until_quiet(lambda: self._screen.status(_HELD_UP))
                self._show()
            key = self._keys.next()
            if self.hidden:
                continue  # the process was stopped, and goes on: what was pressed was for nobody
            if key is None:
                if not self._source.still_open(self._request):
                    return self._left(f"Answered elsewhere: {describe_subject(self._shown)}")
            elif key.name == "gone":
                return None
            elif key == _LATER:
                return self._left(f"Left for later (handrail approvals lists it): {describe_subject(self._shown)}")
            elif (answer := self._answer_of(key)) is not None:
                return self._end(answer)
        return None

    def _show(self) -> None:
        """As much of it as the screen has room for; in its first moments it takes no key."""
        screen, width = self._screen, self._screen.width
        outdated = self._outdated()
        self._possible = PromptState(retry=self._source.retry is not None, outdated=outdated)
        self._offered = {choice.key for choice in list_choices(self._shown, self._possible)}
        self.hidden = False
        spelled = tuple(map(screen.to_encodable, outdated))
        lines = render_request(self._shown, width=width, outdated=spelled, plain=screen.plain)
        screen.clear_status()
        screen.mark()
        self._scroll.begin(screen.framed_lines(self._heading, [*lines, "", *self._choices()]))
        self._keys.drop_early()

    def _outdated(self) -> tuple[str, ...]:
        """What changed since it was tried. Where that cannot be found out, the commit finds it out."""
        with suppress(HandrailError):
            return self._source.outdated(self._request) if has_preview_run(self._request) else ()
        return ()

    def _choices(self) -> list[str]:
        screen = self._screen
        return render_choices(self._shown, width=screen.width, plain=screen.plain, possible=self._possible)

    def _left(self, line: str) -> None:
        """There is no answer, and this is why."""
        self._screen.take_away()
        self._screen.write([truncate_to_width(line, self._screen.size()[0] - 1)])

    def _end(self, answer: Answer) -> Answer:
        """Takes the question away. Of what is committed, the commit says what came of that."""
        self._screen.take_away()
        if not is_kept(self._request, answer):
            width = self._screen.size()[0] - 1
            self._screen.write([render_answer_line(self._shown, answer, width=width, plain=self._screen.plain)])
        return answer

    def _answer_of(self, key: KeyPress) -> Answer | None:
        """The answer that a key gives; None where it gives none, which it then says or shows something else."""
        letter = NUMBERS.get(key.text, key.text) if key.name == "text" else ""
        if letter == "n" or key.name == "esc":
            reason = ask_reason(self._keys, self._screen)
            if reason is not None:
                return Answer(kind="deny", reason=reason or None)
            self._go_back()
        elif letter in KEYS and letter in self._offered:
            if self._is_live(letter):
                return Answer(kind=KEYS[letter])
        elif key.name == "paste":
            self._screen.status("A pasted text is no answer. Press one key.")
        elif letter in {"e", "r"} and self._source.retry is not None and self._request.command is not None:
            self._again(letter)
        else:
            self._look(key.name, letter)
        return None

    def _is_live(self, letter: str) -> bool:
        """Whether a yes counts now; says why where it does not. What changed since is looked for once more."""
        if not self._scroll.seen:
            self._screen.status(f"Look at all of it first: space shows more, then {letter}.")
            return False
        if letter not in KEEPING or not has_preview_run(self._request):
            return True
        before, now = self._possible.outdated, self._outdated()
        if now and now != before:
            self._screen.take_away()
            self.hidden = True  # it is another question now
        elif now:
            self._screen.status(self._screen.to_encodable(describe_outdated(now)))
        return not now

    def _again(self, letter: str) -> None:
        """Has it tried again, as it is or in other words."""
        command = self._request.command or ""
        edited = edit_command(self._keys, self._screen, command) if letter == "e" else command
        if edited is None or self._source.retry is None:
            self._screen.take_away()
            self.hidden = True
            return
        self._screen.take_away()
        self._screen.status(_TRYING)
        try:
            self.replaced = self._source.retry(self._request.id, edited if letter == "e" else None)
            self._screen.clear_status()
        except (HandrailError, ToolError) as error:
            line = to_one_line(f"Not tried again: {error}")
            self._screen.write([truncate_to_width(line, self._screen.size()[0] - 1)])
            self.hidden = True

    def _look(self, name: str, letter: str) -> None:
        """Shows more: the next page or line, the whole change, what was printed, or why it is asked."""
        preview, width, scroll = self._shown.preview, self._screen.size()[0] - 1, self._scroll
        if name in {"space", "page down"} and scroll.has_more:
            scroll.page()
        elif name == "down" and scroll.has_more:
            scroll.go_on(1)
        elif letter == "x" and scroll.seen:
            self._more(render_reasons(self._shown, width))
        elif (
            letter == "d" and preview is not None and (has_preview_run(self._shown) or count_hidden_lines(self._shown))
        ):
            self._open(build_diff_pages(preview, plain=self._screen.plain))
        elif letter == "v" and preview is not None and has_preview_run(self._shown):
            self._open([build_output_page(preview)])
        elif letter == "q" and scroll.seen and scroll.has_more:
            scroll.leave()

    def _open(self, sheets: list[ViewerPage]) -> None:
        """On the whole screen; in plain form below what there is, where the question was seen to its end."""
        if not self._screen.plain:
            browse(self._screen, self._keys, sheets, self._is_on)
        elif self._scroll.seen:
            width = self._screen.size()[0] - 1
            self._more([line for sheet in sheets for line in (f"{sheet.name}:", *sheet.rows(width))])

    def _go_back(self) -> None:
        """To the question, after something else was typed; in plain form, where nothing is overwritten, it says again
        what can be answered."""
        if self._screen.plain and self._scroll.seen:
            self._more([])
        else:
            self._scroll.say_what_is_left()

    def _is_on(self, key: KeyPress | None) -> bool:
        """Whether the question is still what it was when somebody went to look at something."""
        return not self.hidden and (key is not None or self._source.still_open(self._request))

    def _more(self, lines: list[str]) -> None:
        self._scroll.more([*lines, "", *self._choices()])


# § [terminal.approver] The person at the terminal, as an approver.

_TAKE_PASTES, _TAKE_PASTES_RAW = "\x1b[?2004h", "\x1b[?2004l"


class TerminalApprover:
    """Asks on stdin and stderr."""

    def __init__(self, hooks: RequestHooks = NO_HOOKS, *, plain: bool = False) -> None:
        self._hooks, self._plain = hooks, plain

    def is_available(self) -> bool:
        return is_person_present()

    def ask(self, request: PermissionRequest, number: int = 1, total: int = 1) -> ApproverReply:
        screen = Screen(sys.stderr, os.environ, plain=self._plain)
        return PermissionPrompt(sys.stdin.fileno(), screen).ask(request, number, total, self._hooks)

    def ask_question(self, question: Question) -> Reply | None:
        """The reply to a question of the model. None: it is left for later."""
        return ask_for_reply(sys.stdin.fileno(), Screen(sys.stderr, os.environ, plain=self._plain), question)

    def report(self, reply: ApproverReply, outcome: Done | Parked | None) -> None:
        request, answer = reply.subject, reply.answer
        if isinstance(request, PermissionRequest) and isinstance(answer, Answer):
            if outcome is None:
                text = f"Answered elsewhere before you: {describe_subject(request)}"
                Screen(sys.stderr, os.environ).write([text])
            elif is_kept(request, answer):
                self._report_commit(request, answer, outcome)

    def _report_commit(self, request: PermissionRequest, answer: Answer, outcome: Done | Parked) -> None:
        results = outcome.results if isinstance(outcome, Done) else ()
        result = next((one for one in results if one.tool_call_id == request.tool_call_id), None)
        screen = Screen(sys.stderr, os.environ, plain=self._plain)
        width = screen.size()[0] - 1
        screen.write([render_kept_line(request, answer, result, width=width, plain=screen.plain)])


def is_person_present() -> bool:
    """Whether stdin and stderr are a terminal with a person at it. False in CI. Only the main thread asks: otherwise
    two threads could ask at once."""
    if os.environ.get("CI") or threading.current_thread() is not threading.main_thread():
        return False
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr) and _is_in_front(sys.stdin)


def _is_in_front(stream: TextIO) -> bool:
    """Whether this process is in the foreground of the terminal."""
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:  # not the controlling terminal, so no other job reads its keys
        return True


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty() and os.isatty(stream.fileno())
    except (OSError, ValueError):  # closed, or no stream of the system
        return False


class PermissionPrompt:
    """Asks on one terminal: reads keys from the descriptor and writes to the screen."""

    def __init__(self, descriptor: int, screen: Screen, timing: KeyTiming | None = None) -> None:
        self._descriptor = descriptor
        self._screen = screen
        self._timing = timing or KeyTiming()

    def ask(
        self, request: PermissionRequest, number: int = 1, of: int = 1, source: RequestHooks = NO_HOOKS
    ) -> ApproverReply:
        """Asks until there is an answer, or there will be none. If the person retries the request, asks about the new
        one."""
        screen, keys = self._screen, KeyReader(self._descriptor, self._timing)
        question: RequestDialog | None = None

        def begin() -> None:
            screen.control(_TAKE_PASTES)
            if question is not None:
                question.hidden = True

        def end() -> None:
            screen.close_page()
            screen.control(f"\r\x1b[K{_TAKE_PASTES_RAW}")

        try:
            with enter_raw_mode(self._descriptor, begin, end):
                while True:
                    question = RequestDialog(
                        request, _to_encodable(request, screen), screen, keys, source, (number, of)
                    )
                    answer = question.wait_for_answer()
                    if question.replaced is None:
                        return ApproverReply(request, answer)
                    request = question.replaced
        except (OSError, termios.error):  # the terminal is gone
            return ApproverReply(request)


def _to_encodable(request: PermissionRequest, screen: Screen) -> PermissionRequest:
    """The request in characters that the terminal can show."""

    def convert_texts(value: Any) -> Any:
        if isinstance(value, str):
            return screen.to_encodable(value)
        if isinstance(value, dict):
            return {name: convert_texts(one) for name, one in cast("dict[str, Any]", value).items()}
        return [convert_texts(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value

    return request if screen.shows_all else convert(convert_texts(msgspec.to_builtins(request)), PermissionRequest)
