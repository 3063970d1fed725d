"""A permission request at the terminal: its diff and output on the whole screen, and how to retry or edit it."""

import termios
from types import SimpleNamespace

import pytest
from previews import trial, tried_request

from handrail.protocol.changes import Change, Preview
from handrail.protocol.errors import ToolError
from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.terminal.permission_prompt import RequestHooks
from people import QUICK, Ask, a_request

PAGE, NO_PAGE = "\x1b[?1049h", "\x1b[?1049l"
LONG = tried_request(command="\n".join(f"echo {number}" for number in range(100)))


class Trials:
    """Where a question comes from that can be tried again, and what was asked of it."""

    def __init__(self) -> None:
        self.outdated: tuple[str, ...] = ()
        self.retried: list[str | None] = []
        self.refuses = False

    def retry(self, _: str, command: str | None) -> PermissionRequest:
        self.retried.append(command)
        if self.refuses:
            raise ToolError("POLICY_DENIED", "rule fs.secret forbids it")
        self.outdated = ()
        return tried_request(trial(lines=3, last_line="anew"), command=command or "make", revision=len(self.retried))

    @property
    def hooks(self) -> RequestHooks:
        return RequestHooks(outdated=lambda _: self.outdated, retry=self.retry)


@pytest.fixture
def trials() -> Trials:
    return Trials()


def test_the_difference_has_the_whole_screen_and_the_question_comes_back(ask: Ask) -> None:
    asked = ask(tried_request())
    asked.until(b"d", lambda: PAGE in asked.terminal.shown)
    asked.terminal.sees("a.py · 1 of 2, 0 read")
    asked.terminal.sees("    2 - old line")
    asked.terminal.sees("    2 + new line")
    asked.terminal.press(b"]")
    asked.terminal.sees("b.py · 2 of 2, 0 read")
    asked.terminal.sees("    1 + only line")
    asked.terminal.press(b"[")
    asked.terminal.sees_again("a.py · 1 of 2, 0 read")
    asked.terminal.press(b" ")
    asked.terminal.sees("b.py · 2 of 2, 1 read")
    asked.until(b"q", lambda: NO_PAGE in asked.terminal.shown)
    assert asked.answer(b"y") == Answer(kind="once")


def test_before_stands_beside_after_where_the_screen_is_wide(ask: Ask) -> None:
    asked = ask(tried_request(), columns=130)
    asked.until(b"d", lambda: PAGE in asked.terminal.shown)
    asked.terminal.sees(f"{'    2 - old line':<63} │     2 + new line")
    asked.terminal.press(b"\x1b")
    asked.terminal.sees(NO_PAGE)
    assert asked.answer(b"l") is None


def test_the_output_can_be_scrolled_and_steers_nothing(ask: Ask) -> None:
    output = "".join(f"line {number}\n" for number in range(100)) + "\x1b[2Jgone\n"
    asked = ask(tried_request(output=output), rows=30)
    asked.until(b"v", lambda: PAGE in asked.terminal.shown)
    asked.terminal.sees("line 27")
    assert "line 28\x1b" not in asked.terminal.sees_whole()
    asked.terminal.press(b"\x1b[6~")
    asked.terminal.sees("line 55")
    asked.terminal.press(b"\x1b[F")
    asked.terminal.sees("\\u001b[2Jgone")
    asked.until(b"q", lambda: NO_PAGE in asked.terminal.shown)
    assert asked.answer(b"l") is None


def test_keys_on_a_page_answer_nothing(ask: Ask) -> None:
    asked = ask(tried_request())
    asked.until(b"d", lambda: PAGE in asked.terminal.shown)
    for key in (b"y", b"s", b"o", b"\r", b"\x1b[200~y\x1b[201~", b"y"):
        asked.terminal.press(key)
        asked.rests()
    asked.until(b"]", lambda: "b.py · 2 of 2" in asked.terminal.shown)
    assert "You " not in asked.terminal.sees_whole()
    asked.until(b"q", lambda: NO_PAGE in asked.terminal.shown)
    assert asked.answer(b"l") is None


def test_a_key_right_behind_a_page_answers_nothing(ask: Ask) -> None:
    timing = SimpleNamespace(**QUICK._asdict())
    asked = ask(tried_request(), timing=timing)
    asked.until(b"d", lambda: PAGE in asked.terminal.shown)
    timing.deaf = 3600
    asked.until(b"q", lambda: NO_PAGE in asked.terminal.shown)
    asked.terminal.press(b"n")  # in the moments in which nothing counts
    asked.rests()
    assert "Why not?" not in asked.terminal.shown
    asked.terminal.hang_up()
    assert asked.answer() is None


def test_a_look_at_the_difference_is_no_look_at_the_whole_command(ask: Ask) -> None:
    asked = ask(LONG, rows=24)
    asked.until(b"d", lambda: PAGE in asked.terminal.shown)
    asked.until(b"q", lambda: NO_PAGE in asked.terminal.shown)
    asked.until(b"y", lambda: "Read the whole request first: space shows more, then" in asked.terminal.shown)
    asked.until(b" ", lambda: "└" in asked.terminal.shown)
    assert asked.answer(b"y") == Answer(kind="once")


def test_what_is_out_of_date_cannot_be_kept_until_it_is_tried_again(ask: Ask, trials: Trials) -> None:
    trials.outdated = ("src/a.py",)
    asked = ask(tried_request(), hooks=trials.hooks)
    asked.terminal.sees("Out of date: src/a.py changed since. r try again.")
    asked.until(b"y", lambda: asked.terminal.shown.count("Out of date: src/a.py changed since.") > 1)
    assert "You " not in asked.terminal.shown
    asked.until(b"r", lambda: 'last: "anew"' in asked.terminal.shown)
    assert asked.answer(b"y") == Answer(kind="once")
    assert (trials.retried, asked.request.revision) == ([None], 1)


def test_a_file_that_changes_while_somebody_reads_makes_it_another_question(ask: Ask, trials: Trials) -> None:
    asked = ask(tried_request(), hooks=trials.hooks)
    asked.terminal.sees("Ran in a disposable copy: exit 0")
    trials.outdated = ("src/a.py",)
    asked.until(b"y", lambda: "Out of date: src/a.py changed since." in asked.terminal.shown)
    assert asked.answer(b"l") is None


def test_output_only_counts_also_where_it_is_out_of_date(ask: Ask, trials: Trials) -> None:
    trials.outdated = ("src/a.py",)
    assert ask(tried_request(), hooks=trials.hooks).answer(b"o") == Answer(kind="output")


def test_the_command_can_be_changed_and_is_tried_anew(ask: Ask, trials: Trials) -> None:
    asked = ask(tried_request(command="make all"), hooks=trials.hooks)
    asked.until(b"e", lambda: "Change the command;" in asked.terminal.shown)
    asked.terminal.ends_with("\x1b[K$ make all\x1b[11G")
    for key, shown in (
        (b"\x7f", "make al\x1b[10G"),
        (b"\x1b[D", "make al\x1b[9G"),
        (b"x", "make axl\x1b[10G"),
        (b"\x1b[3~", "make ax\x1b[10G"),
        (b"\x01", "make ax\x1b[3G"),
        (b"\x1b[C", "make ax\x1b[4G"),
        (b"\x05", "make ax\x1b[10G"),
        (b"\x1b[200~ -j\n2\x1b[201~", "make ax -j⏎2\x1b[15G"),
    ):
        asked.terminal.press(key)
        asked.terminal.ends_with(f"$ {shown}")
    asked.terminal.press(b"\r")
    asked.terminal.sees('last: "anew"')
    assert asked.answer(b"y") == Answer(kind="once")
    assert trials.retried == ["make ax -j\n2"]
    assert asked.request.command == "make ax -j\n2"


def test_a_change_can_be_given_up(ask: Ask, trials: Trials) -> None:
    asked = ask(tried_request(), hooks=trials.hooks)
    asked.until(b"e", lambda: "Change the command;" in asked.terminal.shown)
    asked.terminal.ends_with("G")
    asked.terminal.press(b"\x1b")
    asked.terminal.sees_again("└")
    asked.until(b"x", lambda: "Permissions: " in asked.terminal.shown)
    assert asked.answer(b"y") == Answer(kind="once")
    assert trials.retried == []


def test_what_cannot_be_tried_again_is_said_and_the_question_stays(ask: Ask, trials: Trials) -> None:
    trials.refuses = True
    asked = ask(tried_request(), hooks=trials.hooks)
    asked.until(b"r", lambda: "Not run again: rule fs.secret forbids it" in asked.terminal.shown)
    assert asked.answer(b"l") is None


def test_a_question_that_comes_anew_takes_no_key_that_was_typed_before_it(ask: Ask, trials: Trials) -> None:
    timing = SimpleNamespace(**QUICK._asdict())
    asked = ask(tried_request(), hooks=trials.hooks, timing=timing)
    asked.listens()
    timing.deaf = 3600
    asked.until(b"r", lambda: bool(trials.retried))
    asked.terminal.sees('last: "anew"')
    asked.terminal.press(b"n")
    asked.rests()
    assert "Why not?" not in asked.terminal.shown
    asked.terminal.hang_up()
    assert asked.answer() is None


def test_where_nothing_can_be_tried_again_those_keys_do_nothing(ask: Ask) -> None:
    asked = ask(tried_request()).listens()
    for key in (b"e", b"r"):
        asked.terminal.press(key)
        asked.rests()
    assert "edit the command" not in asked.terminal.shown
    assert asked.answer(b"l") is None


def test_in_plain_form_everything_is_there_and_nothing_is_overwritten(ask: Ask, trials: Trials) -> None:
    asked = ask(tried_request(output="hello\n"), hooks=trials.hooks, plain=True)
    asked.until(b"d", lambda: "a.py:\n" in asked.terminal.shown)
    assert "    2 - old line\n" in asked.terminal.shown
    asked.until(b"v", lambda: "output:\nhello\n" in asked.terminal.shown)
    asked.until(b"e", lambda: "Type the whole new command;" in asked.terminal.shown)
    asked.terminal.press(b"\x1b[200~make anew\x1b[201~")
    asked.until(b"\r", lambda: "$ make anew\n" in asked.terminal.shown)
    assert "  deletes src/api/old_types.py: 88 lines removed\n" in asked.terminal.shown
    assert "1 or y: keep this result\n" in asked.terminal.shown
    asked.answer(b"y")
    assert "\x1b" not in asked.terminal.shown
    assert trials.retried == ["make anew"]


def test_in_plain_form_files_without_differences_are_told_in_words(ask: Ask) -> None:
    asked = ask(tried_request(trial(changes=(Change(path="old", action="deleted"),), files=1), text=""), plain=True)
    asked.until(b"d", lambda: "all files:\n" in asked.terminal.shown)
    assert asked.terminal.shown.endswith("l: later (stays in `handrail approvals`)\n")
    assert asked.terminal.shown.partition("all files:\n")[2].startswith("Would change 1 file:\n  deletes old\n")


def test_in_plain_form_who_goes_back_from_the_reason_is_told_again_what_can_be_answered(ask: Ask) -> None:
    asked = ask(tried_request(), plain=True)
    asked.until(b"n", lambda: "Why not?" in asked.terminal.shown)
    asked.until(b"\x1b", lambda: "keep this result" in asked.terminal.shown.partition("Why not?")[2])
    assert asked.answer(b"l") is None


def test_the_terminal_is_as_it_was_after_a_page(ask: Ask) -> None:
    asked = ask(tried_request())
    asked.until(b"d", lambda: PAGE in asked.terminal.shown)
    asked.until(b"q", lambda: NO_PAGE in asked.terminal.shown)
    asked.answer(b"l")
    assert termios.tcgetattr(asked.terminal.device) == asked.terminal.modes


def test_a_question_that_is_answered_elsewhere_ends_a_page_too(ask: Ask) -> None:
    open_still = [True]
    asked = ask(tried_request(), hooks=RequestHooks(still_open=lambda _: open_still[0]))
    asked.until(b"d", lambda: PAGE in asked.terminal.shown)
    open_still[0] = False
    assert asked.answer() is None
    assert "Answered elsewhere: ./gen.sh" in asked.terminal.shown.partition(NO_PAGE)[2]


def test_a_command_that_was_not_tried_can_be_changed_too(ask: Ask, trials: Trials) -> None:
    request = a_request(preview=Preview(kind="none", text="needs the network (git push)"))
    asked = ask(request, hooks=trials.hooks)
    asked.terminal.sees("No preview: needs the network (git push).")
    asked.until(b"e", lambda: "Change the command;" in asked.terminal.shown)
    asked.terminal.press(b"\r")
    asked.terminal.sees('last: "anew"')
    assert asked.answer(b"y") == Answer(kind="once")
