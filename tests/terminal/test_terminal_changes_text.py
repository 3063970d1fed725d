"""The preview of a command as text: how it went, its changes, and the effect of an approval."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from previews import CHANGED, CREATED, FOUR, trial, tried_request

from handrail.protocol.changes import Change, Preview
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.protocol.results import Artifacts, Meta, ToolResult
from handrail.terminal.changes_text import render_changes, summarize_changes
from handrail.terminal.request_text import (
    PromptState,
    render_answer_line,
    render_choices,
    render_kept_line,
    render_request,
)
from handrail.terminal.screen import format_seconds
from people import a_request

TRIED = "Ran in a disposable copy: exit 0 in 1.8 s. Your files are untouched."


def text_of(request: PermissionRequest, width: int | None = None, **more: object) -> str:
    return "\n".join(render_request(request, width=width, **more))


def test_a_trial_says_how_it_went_what_it_would_change_and_what_it_printed() -> None:
    shown = text_of(tried_request(trial(blocked=("example.org:443",))), 100)
    assert shown.split("\n")[2:] == [
        TRIED,
        "Would change 4 files:",
        "  D src/api/old_types.py   −88       deletes!   A src/api/_generated.py  +210",
        "  M src/api/types.py       +41 −12              M src/api/client.py      +6 −6     layout only",
        'Tried to reach example.org:443 (blocked). Printed 14 lines, last: "31 types generated"',
    ]


AGES = [
    ({"seconds": 2}, "just now"),
    ({"seconds": 42}, "42 s ago"),
    ({"minutes": 3, "seconds": 50}, "3 min ago"),
    ({"hours": 25}, "1 d ago"),
    ({"minutes": -3}, "just now"),
]


@pytest.mark.parametrize(("ago", "said"), AGES)
def test_a_preview_says_how_old_it_is(ago: dict[str, int], said: str) -> None:
    made = datetime.now(UTC) - timedelta(**ago)
    request = tried_request(trial())
    assert request.preview is not None
    tried = replace(request, preview=replace(request.preview, time=made))
    assert f"{TRIED} Preview from {said}.\n" in text_of(tried)
    assert f"Your files are untouched. Preview from {said}.\n" in text_of(tried, outdated=("src/a.py",))
    diff = a_request(command=None, preview=Preview(kind="diff", text="+x\n", time=made))
    assert f"Preview from {said}. Your files are untouched. If you approve, handrail makes this change" in text_of(diff)


def test_files_stand_below_each_other_where_the_screen_is_narrow() -> None:
    rows = render_changes(trial(), 76)
    assert [row.split()[0] for row in rows[1:]] == ["D", "A", "M", "M"]


FORMS = [
    ({"exit_code": 1}, "Failed in a disposable copy: exit 1 in 1.8 s. Your files are untouched."),
    (
        {"exit_code": 1, "blocked": ("example.org:443",)},
        "Failed in a disposable copy: exit 1 in 1.8 s — the copy has no network, so the real run may differ.",
    ),
    (
        {"exit_code": None, "ending": "timeout"},
        "it took too long, and was stopped after 1.8 s; no change is kept.",
    ),
    ({"exit_code": None, "ending": "memory"}, "it needed too much memory, and was stopped"),
    ({"duration_ms": 83_000}, "exit 0 in 1 min 23 s."),
    ({"changes": (), "files": 0, "deleted": 0}, "Would change no files."),
    ({"lines": 0, "last_line": ""}, "Printed nothing."),
    ({"lines": 1, "last_line": "ok"}, 'Printed 1 line, last: "ok"'),
    ({"unkept": ("the socket a.sock",)}, "! Cannot be kept: the socket a.sock"),
    ({"last_line": "\x1b[2Jgone"}, 'last: "\\u001b[2Jgone"'),
]


@pytest.mark.parametrize(("fields", "told_so"), FORMS)
def test_the_forms_of_what_is_said(fields: dict[str, object], told_so: str) -> None:
    shown = text_of(tried_request(trial(**fields)))
    assert told_so in shown
    assert "Your files are untouched." in shown


NOT_TRIED = [
    (("none", "needs the network (git push)"), {"hosts": ("example.org:443",)}, "what it sends cannot be undone."),
    (("none", "no overlay here: none works"), {"tier": 2}, "its result says what undo covers."),
    (("none", "an earlier call of this batch changes files first"), {}, "undo reverts its changes."),
    (("none", "it runs in the background"), {"background": True}, "it is not covered by undo."),
]


@pytest.mark.parametrize(("preview", "fields", "end"), NOT_TRIED)
def test_what_was_not_tried_says_why_and_what_a_yes_does(preview: tuple[str, str], fields: dict, end: str) -> None:
    kind, why = preview
    request = a_request(**({"tier": 3} | fields), preview=Preview(kind=kind, text=why))
    assert f"No preview: {why}. Nothing has run. If you approve, it runs for real; {end}" in text_of(request)
    assert "y allow it, this once" in render_choices(request, width=80, plain=False)[1]


def test_of_what_changes_nothing_nothing_is_said_about_undo() -> None:
    why = "it is read-only, so approval does not help"
    request = a_request(tier=3, preview=Preview(kind="none", text=why, read_only=True))
    assert f"No preview: {why}. Nothing has run. If you approve, it runs for real." in text_of(request).split("\n")


def test_what_is_out_of_date_says_which_file_and_that_it_can_be_tried_again() -> None:
    shown = text_of(tried_request(), outdated=("src/a.py",))
    assert "Out of date: src/a.py changed since. r try again. Your files are untouched." in shown
    assert "Ran in a disposable copy" not in shown
    many = text_of(tried_request(), outdated=tuple("abcde"))
    assert "Out of date: a, b, c and 2 more changed since." in many


WORDS = [
    (Change(path="a", action="created", mode=0o755, executable=True), "A a  executable"),
    (Change(path="a", action="mode", mode=0o755, executable=True), "M a  executable   mode 755"),
    (Change(path="l", action="created", kind="link", target="../x", outside=True), "A l  link → ../x (outside)"),
    (Change(path="l", action="link", kind="link", target="b"), "M l  link → b"),
    (Change(path="a.bin", action="modified", binary=True), "M a.bin  binary"),
    (Change(path="d", action="created", kind="folder"), "A d/"),
    (Change(path="d", action="created", replaces="folder", added=1), "A d  +1  was a folder!"),
    (Change(path="b", action="renamed", renamed_from="a"), "R a → b"),
    (Change(path="a  +99", action="created", added=1), 'A "a  +99"  +1'),
    (Change(path="a\x1b[2J", action="created", added=1), "A a\\u001b[2J  +1"),
]


@pytest.mark.parametrize(("change", "row"), WORDS)
def test_a_file_is_told_with_what_is_worth_a_second_look(change: Change, row: str) -> None:
    assert render_changes(trial(changes=(change,), files=1), None)[1] == f"  {row}"


def test_the_old_name_of_a_renamed_file_is_no_deletion() -> None:
    changes = (Change(path="a", action="deleted"), Change(path="b", action="renamed", renamed_from="a"))
    renamed = trial(changes=changes, files=2, deleted=1)
    assert render_changes(renamed, None) == ["Would change 1 file:", "  R a → b"]
    assert summarize_changes(renamed) == "1 file"


def test_a_folder_that_is_seen_by_what_is_in_it_is_not_listed() -> None:
    changes = (Change(path="d", action="created", kind="folder"), Change(path="d/a", action="created", added=1))
    assert render_changes(trial(changes=changes, files=1), None) == ["Would change 1 file:", "  A d/a  +1"]
    only = trial(changes=changes[:1], files=0, deleted=0)
    assert render_changes(only, None) == ["Would change 1 folder:", "  A d/"]
    assert summarize_changes(only) == "1 folder"


def test_many_files_are_folded_and_counted_with_what_is_only_layout() -> None:
    layout = tuple(Change(path=f"l{n}", action="modified", added=1, removed=1, layout_only=True) for n in range(30))
    written = tuple(Change(path=f"w{n}", action="modified", added=1) for n in range(17))
    rows = render_changes(trial(changes=(*layout, *written), files=47, deleted=0), 70)
    assert len(rows) == 12
    assert all("w" in row.split()[1] for row in rows[1:11])
    assert rows[-1] == "  and 37 more, 30 of them in layout only"
    assert len(render_changes(trial(changes=written, files=1_000), None, most=None)) == 19
    assert render_changes(trial(changes=written, files=1_000), None, most=None)[-1] == "  and 983 more"


def test_what_git_does_in_a_repository_is_one_row_and_what_steers_it_is_not_folded() -> None:
    names = (".git/index", ".git/logs/HEAD", ".git/refs/heads/master")
    gits = tuple(Change(path=name, action="modified", added=1) for name in names)
    assert render_changes(trial(changes=gits, files=3, deleted=0), 80) == [
        "Would change .git:",
        "  .git: 3 files of git's own",
    ]
    hook = Change(path=".git/hooks/pre-commit", action="created", added=1, executable=True)
    assert render_changes(trial(changes=(hook, CHANGED, *gits), files=5, deleted=0), None) == [
        "Would change 2 files and .git:",
        "  A .git/hooks/pre-commit  +1  executable",
        "  M src/api/types.py  +41 −12",
        "  .git: 3 files of git's own",
    ]
    many = render_changes(trial(changes=gits, files=300, deleted=0), None)
    assert (many[0], many[-1]) == ("Would change 300 files:", "  and 297 more")


def test_in_plain_form_it_is_said_in_words() -> None:
    shown = render_changes(trial(), 79, plain=True)
    assert shown == [
        "Would change 4 files:",
        "  deletes src/api/old_types.py: 88 lines removed",
        "  adds src/api/_generated.py: 210 lines added",
        "  changes src/api/types.py: 41 lines added, 12 lines removed",
        "  changes src/api/client.py: 6 lines added, 6 lines removed, layout only",
    ]
    one = Change(path="a", action="modified", added=1)
    assert render_changes(trial(changes=(one,), files=1, deleted=0), 79, plain=True)[1] == "  changes a: 1 line added"


def test_a_few_words_say_how_much_it_is() -> None:
    assert summarize_changes(trial()) == "4 files, 1 deletion"
    assert summarize_changes(trial(changes=(CREATED, CHANGED), files=2, deleted=0)) == "2 files"
    assert summarize_changes(trial(changes=(), files=0, deleted=0)) == "no files"


GRANTED = tried_request(answers=("once", "session", "workspace", "output", "deny"), grants=("ruff format",))


def test_the_keys_say_that_a_yes_keeps_what_was_tried() -> None:
    assert render_choices(GRANTED, width=100, plain=False, possible=PromptState(retry=True)) == [
        "Keep these 4 changes with 1 deletion?",
        "y keep this result                     s keep, and stop asking for `ruff format` in this session",
        "n drop it and say why                  w keep, and stop asking for `ruff format` in this workspace",
        "o drop changes, show output to model   e edit the command and try again",
        "d diff · v output · x why do you ask? · l later (stays in `handrail approvals`)",
    ]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_the_key_for_plain_edits_is_there_at_every_width(width: int) -> None:
    offered = tried_request(
        answers=("once", "session", "workspace", "edits", "output", "deny"), grants=("ruff format",)
    )
    rows = render_choices(offered, width=width, plain=False, possible=PromptState(retry=True))
    assert "a keep, and allow plain edits in this session" in "\n".join(rows)
    assert max(map(len, rows)) <= width


def test_what_is_out_of_date_cannot_be_kept_but_tried_again() -> None:
    lines = render_choices(GRANTED, width=76, plain=False, possible=PromptState(retry=True, outdated=("a",)))
    assert lines[0] == "y keep this result (not while it is out of date)"
    assert "o drop changes, show output to model" in lines
    assert "r try again" in lines[-2]


def result_of(error: ErrorInfo | None = None, undo: int | None = None) -> ToolResult[None]:
    told = {"tool_call_id": "call-1", "name": "exec", "version": "1.0.0", "ok": error is None, "title": "Run"}
    told |= {"summary": "", "content": "", "data": None, "artifacts": Artifacts(), "attachments": (), "warnings": ()}
    return ToolResult(**told, error=error, meta=Meta(truncated=False, undo=undo), duration_ms=1.0)


KEPT = result_of(undo=15)
LOST = result_of(
    ErrorInfo(code="CONFLICT", message="src/a.py changed. Nothing was kept.", details=None, retryable=True)
)
YES = Answer(kind="once")


def test_the_line_that_stays_says_what_was_kept_and_what_takes_it_back() -> None:
    kept = render_kept_line(tried_request(), YES, KEPT, width=100, plain=False)
    assert kept == "✓ You kept ./gen.sh && ruff format src · 4 files · undo 15"
    plain = render_kept_line(tried_request(), YES, KEPT, width=100, plain=True)
    assert plain == "ok: You kept ./gen.sh && ruff format src, 4 files, undo 15"
    longer = render_kept_line(GRANTED, Answer(kind="session"), KEPT, width=120, plain=False)
    assert longer.endswith(" · 4 files · undo 15 · `ruff format` in this session")


def test_the_line_that_stays_never_says_kept_of_what_was_not() -> None:
    told_lost = render_kept_line(tried_request(), YES, LOST, width=120, plain=False)
    assert told_lost == "✗ Not kept: ./gen.sh && ruff format src: src/a.py changed. Nothing was kept."
    waits = render_kept_line(tried_request(), YES, None, width=120, plain=False)
    assert waits.startswith("✓ You approved ./gen.sh && ruff format src · 4 files")
    assert render_answer_line(tried_request(), Answer(kind="deny", reason="no"), width=80, plain=False) == (
        "⊘ You dropped ./gen.sh && ruff format src: no"
    )
    assert "You took only the output of ./gen.sh" in render_answer_line(
        tried_request(), Answer(kind="output"), width=100, plain=False
    )


def test_files_are_told_in_the_order_of_the_trial_but_layout_last() -> None:
    assert [row.split()[1].rpartition("/")[2] for row in render_changes(trial(), None)[1:]] == [
        "old_types.py", "_generated.py", "types.py", "client.py",
    ]  # fmt: skip
    assert len(FOUR) == 4


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0.00 s"),
        (0.049, "0.05 s"),
        (0.0951, "0.1 s"),
        (1.234, "1.2 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.9, "1 min 0 s"),
        (123.456, "2 min 3 s"),
    ],
)
def test_a_duration_is_written_in_seconds_and_minutes(seconds: float, expected: str) -> None:
    assert format_seconds(seconds) == expected
