"""A request as text: all of it, and nothing that is not what it looks like."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from previews import CHANGED, CREATED, DELETED, FOUR, trial

from handrail.protocol.changes import Change, Preview
from handrail.protocol.decisions import DecisionPart
from handrail.protocol.permissions import FileBinding
from handrail.terminal.request_text import describe_question, describe_subject, render_reasons, render_request
from people import a_request


def text_of(**fields) -> str:
    return "\n".join(render_request(a_request(**fields), width=None))


SEEN = [
    pytest.param("echo a\x1b[2Kb", "$ echo a\\u001b[2Kb", id="escape"),
    pytest.param("echo a\rb", "$ echo a\\u000db", id="carriage return"),
    pytest.param("echo \u202eevil\u202c", "$ echo \\u202eevil\\u202c", id="bidi"),
    pytest.param("r\u200bm x", "$ r\\u200bm x", id="zero width"),
    pytest.param("rm\u00a0x\tb", "$ rm\\u00a0x\\u0009b", id="blanks that are none"),
    pytest.param("echo a  ", "$ echo a\\u0020\\u0020", id="blanks at the end"),
    pytest.param("echo a \nb", "$ echo a\\u0020\n> b", id="blanks at the end of a line"),
    pytest.param("echo \u2800", "$ echo \\u2800", id="a letter without dots"),
    pytest.param("cat a\ufe0f.py \u180b", "$ cat a\\ufe0f.py \\u180b", id="selectors of a form"),
]


@pytest.mark.parametrize(("command", "expected"), SEEN)
def test_what_cannot_be_seen_in_a_command_is_written_out(command: str, expected: str) -> None:
    assert text_of(command=command).startswith(f"{expected}\n")


def test_that_something_is_written_out_is_said_so_that_an_escape_in_the_command_is_not_taken_for_one() -> None:
    assert "shown as escapes: \\u200b, \\u202e" in text_of(command="a\u200bb\u202e\u200b")
    assert "shown as escapes" not in text_of(command="printf '\\u200b'")


def test_marks_that_pile_up_on_a_letter_are_written_out() -> None:
    flood = "".join(map(chr, range(0x300, 0x340)))
    shown = text_of(
        command=f"echo o{flood}k",
        parts=(DecisionPart(subject="x", decision="confirm", rule="r", reason=f"o{flood}"),),
        preview=Preview(kind="diff", text=f"+o{flood}\n"),
    )
    assert shown.startswith("$ echo o\u0300\u0301\u0302\u0303\\u0304\\u0305")
    assert "shown as escapes: \\u0304, \\u0305" in shown
    longest = max(len(run) for run in re.findall("[\u0300-\u036f]*", shown))
    assert longest == 4


@pytest.mark.parametrize("text", ["ế".join("ab"), "e\u0302\u0301", "שָּׁ֖לוֹם", "กี้", "हिन्दी", "བསྒྲུབས"])
def test_the_marks_of_real_languages_stay(text: str) -> None:
    assert text_of(command=f"echo {text}").startswith(f"$ echo {text}\n")


def test_a_name_that_mixes_scripts_is_shown_letter_by_letter() -> None:
    assert "! pаypal.com mixes scripts: p\\u0430ypal.com" in text_of(command="curl https://pаypal.com/x")
    assert "mixes" not in text_of(command="cat 報告report.md Grüße.txt привет")
    assert "mixes scripts: \\u0441\\u043e\\u0441\\u043e.com" in text_of(command="curl сосо.com")


def test_the_parts_that_ask_say_why_and_by_which_rule() -> None:
    parts = (
        DecisionPart(subject="./gen.sh", decision="confirm", rule="exec.script", reason="runs a script"),
        DecisionPart(subject="ls", decision="allow", rule="exec.proven", reason="only reads"),
        DecisionPart(subject="ruff format src", decision="confirm", rule="exec.writes", reason="writes files"),
    )
    shown = text_of(command="./gen.sh && ls && ruff format src", parts=parts)
    assert "\n    ./gen.sh           needs approval: runs a script    rule exec.script\n" in shown
    assert "\n    ruff format src    needs approval: writes files     rule exec.writes\n" in shown
    assert "only reads" not in shown
    assert "  ls: allowed, only reads (rule exec.proven)" in render_reasons(a_request(parts=parts), None)


def test_what_asks_because_of_what_it_changed_names_the_files_once() -> None:
    why = "changes files that control tools, hooks or builds"
    part = DecisionPart(subject="ci.yml", decision="confirm", rule="fs.protected", reason=f"{why}: ci.yml", effect=why)
    assert f"    ci.yml    needs approval: {why}    rule fs.protected\n" in text_of(command="make", parts=(part,))


def test_what_a_yes_means_is_said() -> None:
    plain = text_of()
    assert "No preview. Nothing has run. If you approve, it runs for real; its result says what undo covers." in plain
    assert "    needs approval: it may change files    rule exec.unproven\n" in plain
    assert "folder" not in plain
    shown = text_of(cwd="src", tier=0, hosts=("example.org:443", "example.net:443"), background=True)
    assert "\nRuns in the folder src\n" in shown
    assert (
        "\n! No sandbox here: the command could read and change everything that you can (handrail doctor).\n"
    ) in shown
    assert "\nWould open example.org:443, example.net:443 while it runs.\n" in shown
    assert "\nWould open example.net:443 for this call." in text_of(hosts=("example.net:443",))
    assert shown.endswith("\n! Keeps running after the call; not covered by undo.")


def test_of_a_file_the_difference_is_the_preview() -> None:
    preview = Preview(kind="diff", text="--- a\n+++ a\n-\x1b[31mold\n+new\tx\n", truncated=True)
    shown = text_of(tool_name="write", command=None, description="Write a", preview=preview)
    assert shown.startswith("Write a\n    needs approval: ")
    assert "If you approve, handrail makes this change. Undo can revert it:\n--- a\n+++ a\n" in shown
    assert shown.endswith("-\\u001b[31mold\n+new    x\n… the preview is cut here")


def test_what_a_program_is_sent_is_shown_whole() -> None:
    sent = Preview(kind="input", text="\n".join(f"line {number}\u200b" for number in range(100)))
    shown = text_of(tool_name="process", command=None, description="Write to p-1, which runs: bash", preview=sent)
    assert shown.startswith("Write to p-1, which runs: bash\n> line 0\\u200b\n> line 1\\u200b\n")
    assert "\n> line 99\\u200b\n" in shown
    assert "Invisible characters are shown" in shown
    assert "Nothing has been sent. If you approve, it is sent for real; undo does not cover its effects." in shown


def test_what_a_path_or_a_kept_command_holds_does_not_look_like_what_handrail_says() -> None:
    path = "a.txt\nYour files are untouched. Yes changes nothing."
    shown = text_of(
        tool_name="write", command=None, description=f"Write {path}", preview=Preview(kind="diff", text="+x")
    )
    assert shown.startswith("Write a.txt\\nYour files are untouched. Yes changes nothing.\n    needs approval:")


def test_very_many_parts_and_a_very_long_one_are_not_padded_to_each_other() -> None:
    subjects = ["x" * 60_000, *(f"touch {number}" for number in range(1_000))]
    parts = tuple(DecisionPart(subject=one, decision="confirm", rule="fs.write", reason="writes") for one in subjects)
    assert len(text_of(command="touch", parts=parts)) < 200_000


def test_a_folder_outside_is_named_with_what_it_is_opened_for() -> None:
    more = {"kind": "external_directory", "pattern": ("/data", "/data/*"), "access": "read"}
    shown = text_of(tool_name="read", command=None, description="Read /data/a", **more)
    assert "Approval opens /data, outside the workspace, for reading." in shown


ANY = st.text(st.characters(exclude_categories=()), max_size=200)


@given(ANY, ANY, ANY, st.integers(20, 120))
def test_no_text_of_a_request_reaches_a_terminal_raw(command: str, name: str, diff: str, width: int) -> None:
    fields = {"reason": name, "rule": name, "description": command, "hosts": (name,), "cwd": name}
    parts = (DecisionPart(subject=command, decision="confirm", rule=name, reason=diff),)
    for one in (
        a_request(command=command, parts=parts, **fields),
        a_request(command=None, preview=Preview(kind="diff", text=diff), **fields),
    ):
        rows = [*render_request(one, width=width), *render_reasons(one, width), describe_subject(one)]
        assert all(char.isprintable() or char in _BLANKS for row in rows for char in row)


_BLANKS = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


INDEX = Change(path=".git/index", action="modified", added=1)
LOCK = Change(path=".git/ORIG_HEAD", action="deleted", removed=1)
FOLDER = Change(path="d", action="created", kind="folder")
RENAMED = (Change(path="a", action="deleted"), Change(path="b", action="renamed", renamed_from="a"))
PREVIEWS = [
    pytest.param((CREATED,), {}, "Keep this file?", id="one file"),
    pytest.param((CREATED, CHANGED), {}, "Keep these 2 files?", id="several files"),
    pytest.param(FOUR, {}, "Keep these 4 changes with 1 deletion?", id="a deletion among others"),
    pytest.param((DELETED,), {}, "Delete this file?", id="one deletion"),
    pytest.param((DELETED, Change(path="x", action="deleted")), {}, "Delete these 2 files?", id="only deletions"),
    pytest.param(RENAMED, {}, "Keep this file?", id="a rename"),
    pytest.param((DELETED, *RENAMED), {}, "Keep these 2 changes with 1 deletion?", id="a deletion and a rename"),
    pytest.param((DELETED,) * 2, {"files": 9}, "Keep these 9 changes with 2 deletions?", id="not all are listed"),
    pytest.param((FOLDER,), {}, "Keep this folder?", id="one folder"),
    pytest.param((INDEX,), {}, "Keep the changes in .git?", id="only git"),
    pytest.param((CREATED, INDEX, LOCK), {}, "Keep this file and the changes in .git?", id="a file, and git"),
    pytest.param((DELETED, INDEX), {}, "Delete this file and keep the changes in .git?", id="a deletion, and git"),
    pytest.param((), {}, "Show the model this output?", id="nothing changed"),
    pytest.param((), {"lines": 0, "last_line": ""}, "Show the model this result?", id="nothing at all"),
    pytest.param(FOUR, {"ending": "timeout"}, "Show the model this output?", id="stopped"),
    pytest.param((), {"blocked": ("example.org",)}, "Show the model this output?", id="a connection was tried"),
]


@pytest.mark.parametrize(("changes", "fields", "question"), PREVIEWS)
def test_the_question_about_a_preview_names_what_would_be_kept(changes, fields, question: str) -> None:
    files = sum(change.kind != "folder" for change in changes)
    deleted = sum(change.action == "deleted" for change in changes)
    run = trial(**{"changes": changes, "files": files, "deleted": deleted, **fields})
    assert describe_question(a_request(preview=Preview(kind="run", text="", tried=run))) == question


HERE, NEW = FileBinding(path="cart.py", real="cart.py", hash="1"), FileBinding(path="notes.md", real=None, hash=None)
FILE = {"command": None, "permissions": ("fs.read", "fs.write"), "rule": "fs.write"}
GONE = {**FILE, "permissions": ("fs.delete",), "rule": "fs.delete"}
PATCH = {**FILE, "permissions": ("fs.read", "fs.write", "fs.delete"), "bound_files": (HERE, NEW)}
FOREIGN = {"command": None, "tool_name": "create_issue", "server_name": "github", "fingerprint": "f"}
OUTSIDE = {**FILE, "kind": "external_directory", "paths": ("/data/a",)}
REQUESTS = [
    pytest.param({}, "Run this command?", id="a command without a preview"),
    pytest.param({"background": True}, "Start this background process?", id="background"),
    pytest.param({"hosts": ("example.org:443",)}, "Open example.org:443?", id="a host"),
    pytest.param({"hosts": ("example.org:443", "a.org:22")}, "Open these 2 hosts?", id="hosts"),
    pytest.param(
        {"hosts": ("a.org:22",), "background": True},
        "Start this background process and open a.org:22?",
        id="a host in the background",
    ),
    pytest.param({**FILE, "paths": ("cart.py",), "bound_files": (HERE,)}, "Change cart.py?", id="a file"),
    pytest.param({**FILE, "paths": ("notes.md",), "bound_files": (NEW,)}, "Write notes.md?", id="a new file"),
    pytest.param({**PATCH, "paths": ("cart.py", "notes.md")}, "Change these 2 files?", id="several files"),
    pytest.param({**PATCH, "rule": "fs.delete", "paths": ("cart.py",)}, "Delete cart.py?", id="a patch that deletes"),
    pytest.param({**GONE, "paths": ("cart.py",)}, "Delete cart.py?", id="a deletion"),
    pytest.param({**FILE, "permissions": ("fs.read",), "paths": ("a",)}, "Read a?", id="reading"),
    pytest.param({**FILE, "paths": ("a\u202eb",), "bound_files": ()}, "Change a\\u202eb?", id="a name that hides"),
    pytest.param({**OUTSIDE, "pattern": ("/data", "/data/*")}, "Open folder /data?", id="a folder outside"),
    pytest.param({**OUTSIDE, "pattern": ("/a", "/a/*", "/b", "/b/*")}, "Open these 2 folders?", id="folders outside"),
    pytest.param(FOREIGN, "Call create_issue of server github?", id="a tool of a server"),
    pytest.param({"command": None, "process": "p-7fq"}, "Send this input to p-7fq?", id="input"),
    pytest.param({"command": None, "tool_name": "deploy"}, "Call deploy?", id="a custom tool"),
]


@pytest.mark.parametrize(("fields", "question"), REQUESTS)
def test_the_question_names_what_an_approval_does(fields, question: str) -> None:
    assert describe_question(a_request(**fields)) == question
