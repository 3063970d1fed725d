"""edit: the matched text changes, and nothing else of the file does."""

import codecs
import hashlib
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.changes.apply import MAX_IN_MEMORY_BYTES
from handrail.protocol.events import ChangeEvent
from handrail.tools.edit import EDIT, EditArguments

Rail = Callable[..., Handrail]
Ordinary = Callable[..., list[tuple[bool, str | None, str]]]
TOTAL = "def total(prices):\n    net = sum(prices)\n    return round(net, 2)\n"


def test_a_text_is_replaced_and_the_result_says_what_and_where(one: Handrail, workspace: Path) -> None:
    (workspace / "a.py").write_text(TOTAL)
    result = one.edit("a.py", "    return round(net, 2)", "    return net")
    after = TOTAL.replace("round(net, 2)", "net")
    assert (workspace / "a.py").read_text() == after
    diff = "@@ -1,3 +1,3 @@\n def total(prices):\n     net = sum(prices)\n-    return round(net, 2)\n+    return net\n"
    assert result.data.diff == f"--- a/a.py\n+++ b/a.py\n{diff}"
    assert result.summary == "Edited a.py +1 −1"
    assert result.content == f"Edited a.py +1 −1, line 3.\n{diff}"
    assert (result.data.path, result.data.size, result.data.replacements) == ("a.py", len(after), 1)
    assert result.data.hash == hashlib.sha256(after.encode()).hexdigest()
    assert result.data.before == hashlib.sha256(TOTAL.encode()).hexdigest()
    assert (result.data.encoding, result.data.line_ending, result.data.first_line) == ("utf-8", "lf", 3)
    assert (result.meta.strategy, result.meta.occurrences, result.meta.matched_lines) == ("exact", 1, ((3, 3),))
    assert result.artifacts.files_changed == ("a.py",)
    (event,) = [event for event in one.events() if isinstance(event, ChangeEvent)]
    (change,) = event.change.changes
    assert (change.path, change.action, change.added, change.removed) == ("a.py", "modified", 1, 1)
    assert (change.before, change.after) == (result.data.before, result.data.hash)
    assert os.listdir(workspace) == ["a.py"]


def test_the_first_changed_line_is_told_even_if_old_text_begins_before_it(one: Handrail, workspace: Path) -> None:
    (workspace / "a.py").write_text(TOTAL)
    result = one.edit("a.py", TOTAL, TOTAL.replace("net, 2", "net, 3"))
    assert result.meta.matched_lines == ((1, 3),)
    assert result.data.first_line == 3


def test_only_one_place_is_replaced_unless_all_are_asked_for(one: Handrail, workspace: Path) -> None:
    assert EditArguments(path="a", old_text="b", new_text="c").replace_all is False
    (workspace / "a.txt").write_text("red\nblue\nred\n" * 2)
    assert one.edit("a.txt", "red", "green").error.code == "AMBIGUOUS_MATCH"
    assert (workspace / "a.txt").read_text() == "red\nblue\nred\n" * 2
    result = one.edit("a.txt", "red", "green", replace_all=True)
    assert (workspace / "a.txt").read_text() == "green\nblue\ngreen\n" * 2
    assert (result.meta.strategy, result.meta.occurrences) == ("exact", 4)
    assert result.meta.matched_lines == ((1, 1), (3, 3), (4, 4), (6, 6))
    assert result.data.replacements == 4
    assert result.summary == "Edited a.txt in 4 places +4 −4"


def test_all_places_are_those_that_do_not_overlap(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("aaaaa")
    assert one.edit("a.txt", "aa", "b", replace_all=True).meta.occurrences == 2
    assert (workspace / "a.txt").read_text() == "bba"


def test_replacing_all_of_one_place_is_fine(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    assert one.edit("a.txt", "two", "2", replace_all=True).meta.occurrences == 1


def test_many_places_are_counted_and_the_first_are_listed(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n" * 20_000)
    result = one.edit("a.txt", "x", "y", replace_all=True)
    assert (workspace / "a.txt").read_text() == "y\n" * 20_000
    assert result.meta.occurrences == 20_000
    assert len(result.meta.matched_lines) == 100
    assert len(result.content) < 4_000
    (event,) = [event for event in one.events() if isinstance(event, ChangeEvent)]
    assert event.change.changes[0].added == 20_000


def test_what_the_model_is_shown_is_short(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("here\n")
    result = one.edit("a.txt", "here", "\n".join(f"line {number}" for number in range(5_000)))
    assert len(result.content) < 4_000
    assert result.content.endswith("…\n")


def test_text_can_be_removed_and_a_file_emptied(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    assert one.edit("a.txt", "one\n", "").ok
    assert (workspace / "a.txt").read_text() == "two\n"
    assert one.edit("a.txt", "two\n", "").data.line_ending == "none"
    assert (workspace / "a.txt").read_bytes() == b""


def test_nothing_in_an_empty_file_is_a_place_to_insert(one: Handrail, workspace: Path) -> None:
    for name, start in (("empty", b""), ("marked", codecs.BOM_UTF8), ("wide", codecs.BOM_UTF16_LE)):
        (workspace / name).write_bytes(start)
        result = one.edit(name, "", "grün\n")
        codec = "utf-16-le" if name == "wide" else "utf-8"
        assert (workspace / name).read_bytes() == start + "grün\n".encode(codec)
        assert result.meta.matched_lines == ((1, 1),)
        assert result.data.diff == f"--- a/{name}\n+++ b/{name}\n@@ -0,0 +1 @@\n+grün\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "A\nB\nbb", b"A\r\nB\r\nbb\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb", "A\r\nB", b"A\r\nB\r\nc\r\n"),
        (b"a\nb\nc\n", "a\r\nb", "A\r\nB", b"A\nB\nc\n"),
        (b"a\r\nb\r\n", "\nb\n", "", b"a"),
        (b"a\r\nb\r\n", "a", "a\n", b"a\r\n\r\nb\r\n"),
        (b"abc", "b", "1\r\n2", b"a1\r\n2c"),
        (b"abc", "b", "1\n2", b"a1\n2c"),
        (b"a\rb\rc", "b", "B", b"a\rB\rc"),
        (b"a\r\r\nb\r\n", "b", "B", b"a\r\r\nB\r\n"),
        (b"a\r\nb\nc\r\nd\n", "b", "B\nbb", b"a\r\nB\nbb\nc\r\nd\n"),
        (b"a\r\nb\nc\r\nd\n", "c", "C\ncc", b"a\r\nb\nC\r\ncc\r\nd\n"),
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nb\nC\nd", b"a\r\nb\nC\r\nd\n"),
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc\n", "1\n2\n3\n", b"1\r\n2\n3\r\nd\n"),
        (b"a\r\nb\nc\r\nd\n", "b\nc\n", "b\nx\nc\n", b"a\r\nb\nx\r\nc\r\nd\n"),
        (b"a\r\nb\nc", "c", "c\nd", b"a\r\nb\nc\nd"),
    ],
)
def test_line_endings_are_the_files(
    one: Handrail, workspace: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    (workspace / "a").write_bytes(before)
    result = one.edit("a", old, new)
    assert result.ok, result.error
    assert (workspace / "a").read_bytes() == after
    assert result.data.line_ending == one.read("a").data.line_ending


ENCODED = {
    "utf-8": ("grün\nrot\n".encode(), "utf-8"),
    "utf-8 with mark": (codecs.BOM_UTF8 + "grün\r\nrot\r\n".encode(), "utf-8-sig"),
    "utf-16 little": (codecs.BOM_UTF16_LE + "grün 𝄞\r\nrot\r\n".encode("utf-16-le"), "utf-16-le"),
    "utf-16 big": (codecs.BOM_UTF16_BE + "grün 𝄞\nrot\n".encode("utf-16-be"), "utf-16-be"),
    "latin-1": ("grün\r\nrot\r\n".encode("latin-1"), "latin-1"),
}


@pytest.mark.parametrize("kind", ENCODED)
def test_encoding_mark_and_mode_stay(one: Handrail, workspace: Path, kind: str) -> None:
    before, encoding = ENCODED[kind]
    path = workspace / "a"
    path.write_bytes(before)
    path.chmod(0o754)
    result = one.edit("a", "rot", "weiß")
    codec = encoding.removesuffix("-sig")
    assert path.read_bytes() == before.replace("rot".encode(codec), "weiß".encode(codec))
    assert result.data.encoding == encoding
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert one.read("a").data.encoding == encoding


def test_a_character_the_encoding_lacks_is_refused_by_name(one: Handrail, workspace: Path) -> None:
    before = "grün\n".encode("latin-1")
    (workspace / "a").write_bytes(before)
    error = one.edit("a", "gr", "漢").error
    assert error.code == "INVALID_ARGUMENT"
    assert "'漢' (U+6F22)" in error.message
    assert "latin-1" in error.message
    assert (workspace / "a").read_bytes() == before


@pytest.mark.parametrize(
    "before",
    [
        "grün ".encode() + b"\xff\xfe rot \xe2\x82\n",
        b"\xe2\x82 gr\xc3\xbcn rot \xac\r\n\xff",
        codecs.BOM_UTF16_LE + b"\x00\xd8r\x00o\x00t\x00\x00\xdc" + b"!",
    ],
)
def test_bytes_that_are_no_text_stay(one: Handrail, workspace: Path, before: bytes) -> None:
    (workspace / "a").write_bytes(before)
    result = one.edit("a", "rot", "weiß")
    codec = "utf-16-le" if before.startswith(codecs.BOM_UTF16_LE) else "utf-8"
    assert (workspace / "a").read_bytes() == before.replace("rot".encode(codec), "weiß".encode(codec))
    assert "\ufffd" in result.data.diff


def test_what_should_parse_and_does_not_is_written_with_a_warning(one: Handrail, workspace: Path) -> None:
    (workspace / "a.json").write_text('{"a": 1}\n')
    result = one.edit("a.json", "1", "1,")
    assert result.ok
    (warning,) = result.warnings
    assert warning.startswith("a.json was changed and no longer parses: it is not valid JSON: ")
    assert one.edit("a.json", "1,", "2").warnings == ()


def test_links_inside_are_followed_to_the_real_file(one: Handrail, workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "real" / "a.txt").write_text("old")
    (workspace / "link").symlink_to("real/a.txt")
    result = one.edit("link", "old", "new")
    assert (workspace / "link").is_symlink()
    assert (workspace / "real" / "a.txt").read_text() == "new"
    assert (result.data.path, result.artifacts.files_changed) == ("real/a.txt", ("real/a.txt",))


def test_a_file_with_several_names_is_written_in_place(rail: Rail, workspace: Path) -> None:
    one = rail(mode="full")
    (workspace / "a.txt").write_text("a longer old text\n")
    os.link(workspace / "a.txt", workspace / "b.txt")
    result = one.edit("a.txt", "longer old", "new")
    assert result.meta.in_place
    assert (workspace / "b.txt").read_text() == "a new text\n"
    assert (workspace / "a.txt").stat().st_nlink == 2


@pytest.mark.parametrize(
    ("size", "old"),
    [(MAX_IN_MEMORY_BYTES + 1, "end"), (MAX_IN_MEMORY_BYTES - 3, "end"), (MAX_IN_MEMORY_BYTES + 1, "none")],
)
def test_a_file_with_several_names_that_could_not_be_undone_is_not_edited(
    rail: Rail, workspace: Path, size: int, old: str
) -> None:
    """Neither one that is too large nor one that would be."""
    content = b"x" * (size - 3) + b"end"
    (workspace / "a.txt").write_bytes(content)
    os.link(workspace / "a.txt", workspace / "b.txt")
    one = rail(mode="ask")
    error = one.edit("a.txt", old, "longer text").error
    assert error.code == "LIMIT_EXCEEDED"
    assert "8 MiB" in error.message
    assert not one.waiting()
    assert not one.changes()
    assert (workspace / "b.txt").read_bytes() == content


def test_the_largest_file_with_several_names_goes_back_and_forth(rail: Rail, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"x" * (MAX_IN_MEMORY_BYTES - 3) + b"end")
    os.link(workspace / "a.txt", workspace / "b.txt")
    one = rail(mode="full")
    assert one.edit("a.txt", "end", "END").ok
    for step, end in ((one.undo, b"end"), (one.redo, b"END")):
        assert step().ok
        assert (workspace / "b.txt").read_bytes().endswith(b"x" + end)


@pytest.mark.parametrize("mode", [0o444, 0o400, 0o4755])
def test_a_file_that_nobody_may_write_is_replaced_with_its_mode(rail: Rail, workspace: Path, mode: int) -> None:
    """As with write: to replace a file, its folder must be writable. Other modes than full ask."""
    (workspace / "a.txt").write_text("old")
    (workspace / "a.txt").chmod(mode)
    assert rail(mode="full").edit("a.txt", "old", "new").ok
    assert stat.S_IMODE((workspace / "a.txt").stat().st_mode) == mode


def test_what_the_system_refuses_is_told(common_folder: Path, as_ordinary_user: Ordinary) -> None:
    workspace = common_folder / "workspace"
    (workspace / "fixed").mkdir()
    for name in ("fixed/a.txt", "unreadable.txt"):
        (workspace / name).write_text("old")
        (workspace / name).chmod(0o644 if "/" in name else 0)
    (workspace / "fixed").chmod(0o555)
    edits = [("edit", {"path": path, "oldText": "old", "newText": "new"}) for path in ("fixed/a.txt", "unreadable.txt")]
    found = as_ordinary_user(edits)
    (workspace / "fixed").chmod(0o755)
    assert [code for _, code, _ in found] == ["ACCESS_DENIED"] * 2
    assert (workspace / "fixed/a.txt").read_text() == "old"


def test_a_full_disk_leaves_the_old_file(one: Handrail, small_disk: Path) -> None:
    (small_disk / "a.txt").write_text("old\n")
    assert one.edit("disk/a.txt", "old", "x" * 1_000_000).error.code == "NO_SPACE"
    assert (small_disk / "a.txt").read_text() == "old\n"
    assert os.listdir(small_disk) == ["a.txt"]


def test_the_diff_is_a_patch_that_git_takes(one: Handrail, workspace: Path) -> None:
    old = "".join(f"line {number}\n" for number in range(40))
    (workspace / "a.txt").write_text(old)
    diff = one.edit("a.txt", "5\n", "five\nand\n", replace_all=True).data.diff
    new = (workspace / "a.txt").read_text()
    (workspace / "a.txt").write_text(old)
    subprocess.run(["git", "apply", "-"], cwd=workspace, input=diff.encode(), check=True)
    assert (workspace / "a.txt").read_text() == new


def test_permission_is_asked_with_the_diff(rail: Rail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    one = rail(mode="ask")
    assert one.edit("a.txt", "two", "2").error.code == "PERMISSION_REQUIRED"
    (request,) = one.waiting()
    assert (request.permission_type, request.rule) == ("write", "fs.write")
    assert request.preview.text == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    result = one.answer(request.id, "once").results[0]
    assert result.data.diff == request.preview.text
    assert (workspace / "a.txt").read_text() == "one\n2\n"


def test_plan_mode_edits_nothing(rail: Rail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    assert rail(mode="plan").edit("a.txt", "one", "two").error.code == "POLICY_DENIED"


def test_it_is_a_tool_that_writes_and_keeps_its_texts_out_of_the_audit() -> None:
    assert EDIT.permissions == ("fs.read", "fs.write")
    assert (EDIT.side_effects, EDIT.plain_arguments) == (("files",), ("path",))


def test_where_nothing_may_be_read_it_shows_nothing(rail: Rail, workspace: Path) -> None:
    """Its refusals and its diff have lines of the file."""
    (workspace / "a.txt").write_text("user = alice\npassword is hunter2\n")
    one = rail(mode="full", deny=("fs.read",))
    for old in ("r", "password is\n", "user"):
        result = one.edit("a.txt", old, "q")
        assert result.error.code == "UNKNOWN_TOOL"
        assert "hunter2" not in str(result)


def test_a_write_tells_nothing_of_what_was_there_to_the_model(rail: Rail, workspace: Path) -> None:
    """So it is offered where nothing may be read; the diff in its data is for the host."""
    (workspace / "a.txt").write_text("password is hunter2\n")
    result = rail(mode="full", deny=("fs.read",)).write("a.txt", "mine\n")
    assert result.ok
    assert "hunter2" not in f"{result.summary}{result.content}{result.warnings}{result.meta}"


def test_a_call_that_leaves_out_reading_is_refused(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    arguments = {"path": "a.txt", "oldText": "one", "newText": "two"}
    assert one.call("edit", arguments, requested_permissions=("fs.write",)).error.code == "POLICY_DENIED"
    assert one.call("edit", arguments, requested_permissions=("fs.read", "fs.write")).ok


INDENTED_TWICE = "Line 2 is now indented twice: newText begins with white space, and so does the line before oldText."
JOINED = "Line 2 is now joined to the next line: oldText ends with a newline, and newText does not."
EDGES = {
    "indented twice": ("f() {\n    a();\n}\n", "a();", "    a(1);", [INDENTED_TWICE]),
    "indented twice, several lines": (
        "f() {\n\ta();\n\tb();\n}\n",
        "a();\n\tb();",
        "\ta(1);\n\tb();",
        [INDENTED_TWICE],
    ),
    "lines joined": ("one\ntwo\nthree\n", "two\n", "2", [JOINED]),
    "lines joined behind a comment that goes": ("one\ntwo # 2\nthree\n", " # 2\n", "", [JOINED]),
    "both": ("a\n  two\nthree\n", "two\n", "  2", [INDENTED_TWICE, JOINED]),
    "a line that is only moved": ("f() {\n    a();\n}\n", "a();", "    a();", []),
    "indentation in both texts": ("f() {\n    a();\n}\n", "    a();", "    a(1);", []),
    "white space within a line": ("a =b;\n", "b", "  c", []),
    "a line that goes": ("one\ntwo\nthree\n", "two\n", "", []),
    "the last line": ("one\ntwo\n", "two\n", "2", []),
    "before a blank line": ("one\ntwo\n\nthree\n", "two\n", "2", []),
    "a new line before it": ("f() {\n    a();\n}\n", "a();", "\n    a();", []),
}


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_slip_at_the_edge_of_an_exact_match_is_warned_of(
    one: Handrail, workspace: Path, name: str, ending: str
) -> None:
    text, old, new, warnings = EDGES[name]
    (workspace / "a.txt").write_bytes(text.replace("\n", ending).encode())
    result = one.edit("a.txt", old, new)
    assert result.ok
    assert (workspace / "a.txt").read_bytes() == text.replace(old, new).replace("\n", ending).encode()
    assert list(result.warnings) == warnings


def test_of_many_places_the_first_slip_is_warned_of(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n  x\n  x\n")
    result = one.edit("a.txt", "x", "  y", replace_all=True)
    assert list(result.warnings) == [INDENTED_TWICE]
