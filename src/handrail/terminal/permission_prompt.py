"""Asks the person at the terminal for permission."""

import os
import sys
import termios
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TextIO, cast

import msgspec

from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import HandrailError, ToolError
from handrail.protocol.permissions import Answer, ApproverReply, PermissionRequest, Question, Reply
from handrail.protocol.text import escape_exact_line, to_one_line, truncate_to_width, wrap
from handrail.protocol.wire import convert
from handrail.terminal.changes_text import describe_outdated, has_preview_run
from handrail.terminal.diff_view import ViewerPage, browse, build_diff_pages, build_output_page
from handrail.terminal.keyboard import KeyPress, KeyReader, KeyTiming, ask_reason, edit_command, enter_raw_mode
from handrail.terminal.question_prompt import ask_for_reply
from handrail.terminal.request_text import (
    PromptChoice,
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
from handrail.terminal.style import paint_nothing

_HELD_UP = "Approval needed. Stop typing for a second to see it."
_EARLY = "Your key came too early and was ignored. Press it again."
_TRYING = "Running it in a disposable copy … Your files are untouched. Ctrl-C leaves it for later."
_LATER = KeyPress("text", "l")
_BACK = KeyPress("esc")
_GRANT_KEYS = "a number selects or deselects one · y grants them · Esc goes back"
_BRACKET_PASTES, _PLAIN_PASTES = "\x1b[?2004h", "\x1b[?2004l"


class RequestHooks(msgspec.Struct, frozen=True):
    """Functions that a prompt calls while a request is on the screen."""

    still_open: Callable[[PermissionRequest], bool] = lambda _: True
    outdated: Callable[[PermissionRequest], tuple[str, ...]] = lambda _: ()
    """The paths that changed since the preview."""
    retry: Callable[[str, str | None], PermissionRequest] | None = None
    """Previews the request of this id again, also with another command. Returns the new request."""
    silent: bool = False
    """Whether the prompt writes no line about an answer."""


_NO_HOOKS = RequestHooks()


class TerminalApprover:
    """Asks on stdin and stderr."""

    def __init__(self, hooks: RequestHooks = _NO_HOOKS, *, plain: bool = False, shows_results: bool = False) -> None:
        """`shows_results`: a view shows the result of each call, so an answer needs no line of its own."""
        self._plain, self._shows_results = plain, shows_results
        self._hooks = msgspec.structs.replace(hooks, silent=shows_results)

    def is_available(self) -> bool:
        return is_person_present()

    def ask(
        self, request: PermissionRequest, number: int = 1, total: int = 1, timing: KeyTiming | None = None
    ) -> ApproverReply:
        prompt = PermissionPrompt(sys.stdin.fileno(), self._open_screen(), timing)
        return prompt.ask(request, number, total, self._hooks)

    def ask_question(self, question: Question) -> Reply | None:
        """The reply to a question of the model. None: it is left for later."""
        return ask_for_reply(sys.stdin.fileno(), self._open_screen(), question)

    def report(self, reply: ApproverReply, outcome: Done | Parked | None) -> None:
        self._open_screen().write(self.render_report(reply, outcome))

    def render_report(self, reply: ApproverReply, outcome: Done | Parked | None) -> list[str]:
        """The outcome of an answer, if the prompt could not tell it. At most one line."""
        request, answer = reply.subject, reply.answer
        if not isinstance(request, PermissionRequest) or not isinstance(answer, Answer):
            return []
        if outcome is None:
            return [f"Answered elsewhere before you: {describe_subject(request)}"]
        if self._shows_results or not has_later_line(request, answer):
            return []
        results = outcome.results if isinstance(outcome, Done) else ()
        result = next((one for one in results if one.tool_call_id == request.tool_call_id), None)
        screen = self._open_screen()
        width = screen.size()[0] - 1
        return [render_kept_line(request, answer, result, width=width, plain=screen.plain, paint=screen.paint)]

    def _open_screen(self) -> Screen:
        return Screen(sys.stderr, os.environ, plain=self._plain)


def has_later_line(request: PermissionRequest, answer: Answer) -> bool:
    """Whether the line about the answer has the number for undo, so that it appears after the call."""
    is_edit = request.command is None and request.kind is None and "fs.write" in request.permissions
    return is_kept(request, answer) or (is_edit and answer.kind in {"once", "edits"})


def reload_subject(
    subject: PermissionRequest | Question, pending: Iterable[PermissionRequest]
) -> PermissionRequest | Question:
    """The subject as it is now: a person may have retried the request in the prompt that they interrupted."""
    return next((request for request in pending if request.tool_call_id == subject.tool_call_id), subject)


def is_person_present() -> bool:
    """Whether a person can answer on stdin and stderr. False in CI, and outside the main thread: two threads could ask
    at once."""
    if os.environ.get("CI") or threading.current_thread() is not threading.main_thread():
        return False
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr) and _is_in_foreground(sys.stdin)


def _is_in_foreground(stream: TextIO) -> bool:
    try:
        return os.tcgetpgrp(stream.fileno()) == os.getpgrp()
    except OSError:  # not the controlling terminal, so no other job reads its keys
        return True


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty() and os.isatty(stream.fileno())
    except (OSError, ValueError):  # closed, or without a descriptor
        return False


class PermissionPrompt:
    """Reads keys from a descriptor and writes to a screen."""

    def __init__(self, descriptor: int, screen: Screen, timing: KeyTiming | None = None) -> None:
        self._descriptor = descriptor
        self._screen = screen
        self._timing = timing or KeyTiming()

    def ask(
        self, request: PermissionRequest, number: int = 1, of: int = 1, hooks: RequestHooks = _NO_HOOKS
    ) -> ApproverReply:
        """Ask until there is an answer, or none can come. If the person retries the request, ask about the new one."""
        screen, keys = self._screen, KeyReader(self._descriptor, self._timing)
        dialog: _RequestDialog | None = None

        def begin() -> None:
            screen.control(_BRACKET_PASTES)
            if dialog is not None:
                dialog.hidden = True

        def end() -> None:
            screen.close_page()
            screen.control(f"\r\x1b[K{_PLAIN_PASTES}")

        try:
            with enter_raw_mode(self._descriptor, begin, end):
                while True:
                    dialog = _RequestDialog(request, screen, keys, hooks, (number, of))
                    answer = dialog.wait_for_answer()
                    if dialog.replaced is None:
                        return ApproverReply(request, answer)
                    request = dialog.replaced
        except (OSError, termios.error):  # the terminal is gone
            return ApproverReply(request)
        except KeyboardInterrupt:
            screen.erase()
            raise


class _RequestDialog:
    """One request on the screen."""

    def __init__(
        self, request: PermissionRequest, screen: Screen, keys: KeyReader, hooks: RequestHooks, which: tuple[int, int]
    ) -> None:
        self._request = request
        self._shown = _to_encodable(request, screen)
        self._screen = screen
        self._keys = keys
        self._hooks = hooks
        self._heading = render_title(self._shown, *which)
        self._scroll = Scroll(screen)
        self._state = PromptState()
        self._offered: dict[str, PromptChoice] = {}
        self.hidden = True
        """Whether it has to be shown, for the first time or again."""
        self.replaced: PermissionRequest | None = None
        """The request that a retry made of it."""

    def wait_for_answer(self) -> Answer | None:
        """Handle keys until one answers, or a retry replaces the request."""
        while self.replaced is None:
            if self.hidden:
                self._keys.wait_until_quiet(lambda: self._screen.status(_HELD_UP))
                self._show()
            key = self._keys.next()
            if self.hidden:
                continue  # the process was stopped meanwhile, so the key was not for this request
            if key is None:
                if not self._hooks.still_open(self._request):
                    return self._leave(f"Answered elsewhere: {describe_subject(self._shown)}")
            elif key.name == "gone":
                return None
            elif key == _LATER:
                return self._leave(f"Left for later (handrail approvals lists it): {describe_subject(self._shown)}")
            elif (answer := self._handle(key)) is not None:
                return self._finish(answer)
        return None

    def _show(self) -> None:
        """Show the first page. Drop keys in its first moments, in which they are dim."""
        screen, outdated = self._screen, self._list_outdated()
        self._state = PromptState(retry=self._hooks.retry is not None, outdated=outdated)
        choices = list_choices(self._shown, self._state)
        self._offered = {key: choice for choice in choices for key in (choice.key, choice.number) if key}
        self.hidden = False
        paths = tuple(map(screen.to_encodable, outdated))
        lines = render_request(self._shown, width=screen.width, outdated=paths, plain=screen.plain, paint=screen.paint)
        screen.clear_status()
        screen.mark()
        size, keys = screen.size(), self._render_choices()
        framed = screen.framed_lines(self._heading, [*lines, "", *keys])
        dims = screen.paint is not paint_nothing and len(framed) <= size[1] - 2
        dim = [screen.paint(row, "dim") for row in keys]
        self._scroll.begin(screen.framed_lines(self._heading, [*lines, "", *dim]) if dims else framed)
        was_early = self._keys.drop_early()
        if dims and size == screen.size() and not self.hidden:  # the keys count from now on
            rows = [*framed[len(framed) - len(keys) - screen.framed :], ""]
            screen.draw_rows(rows, len(rows))
        if was_early and self._scroll.seen and not self.hidden:
            screen.status(_EARLY)

    def _list_outdated(self) -> tuple[str, ...]:
        """The paths that changed since the preview. If that cannot be checked now, the commit checks it."""
        with suppress(HandrailError):
            return self._hooks.outdated(self._request) if has_preview_run(self._request) else ()
        return ()

    def _render_choices(self) -> list[str]:
        screen = self._screen
        return render_choices(self._shown, width=screen.width, plain=screen.plain, possible=self._state)

    def _leave(self, line: str) -> None:
        """Erase the request without an answer."""
        self._screen.erase()
        self._write_line(line)

    def _finish(self, answer: Answer) -> Answer:
        """Erase the request, and write the line about the answer, unless `report` does so later."""
        self._screen.erase()
        if not self._hooks.silent and not has_later_line(self._request, answer):
            screen, width = self._screen, self._screen.size()[0] - 1
            line = render_answer_line(self._shown, answer, width=width, plain=screen.plain, paint=screen.paint)
            screen.write([line])
        return answer

    def _handle(self, key: KeyPress) -> Answer | None:
        """The answer of a key. Other keys show something, and give None."""
        letter = key.text if key.name == "text" else ""
        choice = self._offered["n"] if key.name == "esc" else self._offered.get(letter)
        if choice is not None and choice.answer == "deny":
            reason = ask_reason(self._keys, self._screen)
            if reason is not None:
                return Answer(kind="deny", reason=reason or None)
            self._go_back()
        elif choice is not None and choice.answer is not None:
            answer = Answer(kind=choice.answer)
            if self._can_answer(answer, choice.key):
                return self._narrow(answer)
        elif key.name == "paste":
            self._screen.status("Pasted text is ignored. Press one key.")
        elif letter in {"e", "r"} and self._request.command is not None and self._hooks.retry is not None:
            self._retry(self._hooks.retry, self._request.command, edit=letter == "e")
        else:
            self._show_more(key.name, letter)
        return None

    def _can_answer(self, answer: Answer, letter: str) -> bool:
        """Whether the answer counts now. Otherwise say why not. Checks again for outdated paths."""
        if not self._scroll.seen:
            self._screen.status(f"Read the whole request first: space shows more, then {letter}.")
            return False
        if not is_kept(self._request, answer):
            return True
        outdated = self._list_outdated()
        if outdated and outdated != self._state.outdated:
            self._show_again()
        elif outdated:
            self._screen.status(self._screen.to_encodable(describe_outdated(outdated)))
        return not outdated

    def _narrow(self, answer: Answer) -> Answer | None:
        """Let the person choose among several grants of an answer. None: they went back."""
        offered = self._request.grants
        if answer.kind not in {"session", "workspace"} or len(offered) < 2:
            return answer
        chosen = set(range(1, len(offered) + 1))
        self._show_grants(chosen, answer.kind)
        self._keys.drop_early()
        while not self.hidden and (key := self._keys.next()) != _BACK:
            letter = key.text if key is not None and key.name == "text" else ""
            if key is None or key.name == "gone":
                if key is not None or not self._hooks.still_open(self._request):
                    return None
            elif key.name in {"space", "page down"} and self._scroll.has_more:
                self._scroll.page()
            elif letter == "y" and chosen and not self._scroll.has_more:
                return msgspec.structs.replace(answer, grants=tuple(offered[number - 1] for number in sorted(chosen)))
            elif letter.isascii() and letter.isdigit() and 0 < int(letter[:2]) <= len(offered):
                chosen ^= {int(letter[:2])}
                self._show_grants(chosen, answer.kind)
        if not self.hidden:
            self._show_below([])
        return None

    def _show_grants(self, chosen: set[int], scope: str) -> None:
        self._scroll.more(["", *_render_grants(self._shown, chosen, scope, self._screen.size()[0] - 1)])

    def _retry(self, retry: Callable[[str, str | None], PermissionRequest], command: str, *, edit: bool) -> None:
        """Preview the command again, perhaps an edited one."""
        edited = edit_command(self._keys, self._screen, command) if edit else None
        if edit and edited is None:
            self._show_again()
            return
        self._screen.erase()
        self._screen.status(_TRYING)
        try:
            self.replaced = retry(self._request.id, edited)
            self._screen.clear_status()
        except (HandrailError, ToolError) as error:
            self._write_line(to_one_line(f"Not run again: {error}"))
            self.hidden = True

    def _show_again(self) -> None:
        self._screen.erase()
        self.hidden = True

    def _show_more(self, name: str, letter: str) -> None:
        """Show the next page or line, the diff, the output, or the reasons."""
        preview, scroll, has_run = self._shown.preview, self._scroll, has_preview_run(self._shown)
        if name in {"space", "page down"} and scroll.has_more:
            scroll.page()
        elif name == "down" and scroll.has_more:
            scroll.go_on(1)
        elif letter == "x" and scroll.seen:
            self._show_below(render_reasons(self._shown, self._screen.size()[0] - 1))
        elif letter == "d" and preview is not None and (has_run or count_hidden_lines(self._shown)):
            self._open(build_diff_pages(preview, plain=self._screen.plain, paint=self._screen.paint))
        elif letter == "v" and preview is not None and has_run:
            self._open([build_output_page(preview)])
        elif letter == "q" and scroll.seen and scroll.has_more:
            scroll.leave()

    def _open(self, pages: list[ViewerPage]) -> None:
        """Show pages on the whole screen. A plain screen shows them below the request, after its end was seen."""
        if not self._screen.plain:
            browse(self._screen, self._keys, pages, self._can_go_on)
        elif self._scroll.seen:
            width = self._screen.size()[0] - 1
            self._show_below([line for page in pages for line in (f"{page.name}:", *page.rows(width))])

    def _can_go_on(self, key: KeyPress | None) -> bool:
        """Whether the request is still the one that the pages belong to."""
        return not self.hidden and (key is not None or self._hooks.still_open(self._request))

    def _go_back(self) -> None:
        """Return to the request. A plain screen shows the choices again, since it overwrites nothing."""
        if self._screen.plain and self._scroll.seen:
            self._show_below([])
        else:
            self._scroll.report_rest()

    def _show_below(self, lines: list[str]) -> None:
        self._scroll.more([*lines, "", *self._render_choices()])

    def _write_line(self, line: str) -> None:
        self._screen.write([truncate_to_width(line, self._screen.size()[0] - 1)])


def _render_grants(request: PermissionRequest, chosen: set[int], scope: str, width: int) -> list[str]:
    """The grants of an answer with their numbers, and the keys that change them. `chosen`: the numbers to grant."""
    lines = [f"Stop asking in this {scope} for:"]
    for number, name in enumerate(request.grants, start=1):
        lines.append(f"  {number} [{'x' if number in chosen else ' '}] `{escape_exact_line(name)}`")
    return [row for line in (*lines, _GRANT_KEYS) for row in wrap(line, width, "      ")]


def _to_encodable(request: PermissionRequest, screen: Screen) -> PermissionRequest:
    """The request with escapes for characters that the terminal lacks."""

    def convert_texts(value: Any) -> Any:
        if isinstance(value, str):
            return screen.to_encodable(value)
        if isinstance(value, dict):
            return {name: convert_texts(one) for name, one in cast("dict[str, Any]", value).items()}
        return [convert_texts(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value

    return request if screen.shows_all else convert(convert_texts(msgspec.to_builtins(request)), PermissionRequest)
