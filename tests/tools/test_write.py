"""write: a whole file in one step, with everything about it that was not meant to change left as it was."""

import codecs
import hashlib
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.events import ChangeEvent
from handrail.workspace.atomic import build_temporary_name

Rail = Callable[..., Handrail]
Ordinary = Callable[..., list[tuple[bool, str | None, str]]]


def leftovers(folder: Path) -> list[Path]:
    return list(folder.rglob(".handrail-*"))


def test_a_new_file_is_created_with_its_parents(one: Handrail, workspace: Path) -> None:
    result = one.write("a/b/c.txt", "one\ntwo\n")
    assert (workspace / "a/b/c.txt").read_text() == "one\ntwo\n"
    assert (result.data.path, result.data.created, result.data.before) == ("a/b/c.txt", True, None)
    assert result.data.hash == hashlib.sha256(b"one\ntwo\n").hexdigest()
    assert (result.data.size, result.data.encoding, result.data.line_ending) == (8, "utf-8", "lf")
    assert result.data.diff == "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    assert result.artifacts.files_changed == ("a/b/c.txt",)
    assert result.summary == "Created a/b/c.txt +2 −0"
    assert result.meta.unread is False
    assert leftovers(workspace) == []


def test_a_file_is_replaced_and_the_result_says_by_what(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\nthree\n")
    inode = (workspace / "a.txt").stat().st_ino
    result = one.write("a.txt", "one\n2\nthree\n")
    assert (workspace / "a.txt").read_text() == "one\n2\nthree\n"
    assert (workspace / "a.txt").stat().st_ino != inode, "the file was not replaced but overwritten"
    assert result.data.created is False
    assert result.data.before == hashlib.sha256(b"one\ntwo\nthree\n").hexdigest()
    assert result.data.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert result.meta.unread is True
    assert os.listdir(workspace) == ["a.txt"]


def test_a_reader_sees_the_old_bytes_or_the_new_and_never_a_mixture(
    one: Handrail, workspace: Path, meanwhile: Callable[..., object], count: Callable[[int], int]
) -> None:
    path = workspace / "a.txt"
    path.write_text("0" * 100_000)
    check = """
with open(sys.argv[1]) as file:
    text = file.read()
assert len(text) == 100_000 and len(set(text)) == 1, (len(text), set(text))
"""
    with meanwhile(check, path):
        for turn in range(count(300)):
            assert one.write("a.txt", str(turn % 10) * 100_000).ok


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640, 0o444, 0o4755, 0o2755, 0o1644, 0o777])
def test_the_mode_stays(rail: Rail, workspace: Path, mode: int) -> None:
    path = workspace / "script"
    path.write_text("old")
    path.chmod(mode)
    assert rail(mode="full").write("script", "new").ok  # a read-only file asks in other modes
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_every_program_gives_it(one: Handrail, workspace: Path) -> None:
    before = os.umask(0o027)
    try:
        assert one.write("folder/new", "x").ok
    finally:
        os.umask(before)
    assert stat.S_IMODE((workspace / "folder/new").stat().st_mode) == 0o640
    assert stat.S_IMODE((workspace / "folder").stat().st_mode) == 0o750


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes root")
def test_the_owner_stays(one: Handrail, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    os.chown(workspace / "a.txt", 1234, 5678)
    assert one.write("a.txt", "new").ok
    status = (workspace / "a.txt").stat()
    assert (status.st_uid, status.st_gid) == (1234, 5678)


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files away takes root")
def test_the_rights_of_an_owner_that_cannot_be_kept_are_not_lent_on(
    common_folder: Path, as_ordinary_user: Ordinary
) -> None:
    path = common_folder / "workspace" / "program"
    path.write_text("old")
    path.chmod(0o6775)
    ((ok, _, _),) = as_ordinary_user([("write", {"path": "program", "content": "new"})])
    assert ok
    assert path.stat().st_uid == 65534
    assert stat.S_IMODE(path.stat().st_mode) == 0o775


def test_extended_attributes_stay(one: Handrail, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("old")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    assert one.write("a.txt", "new").ok
    assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.parametrize(
    ("old", "encoding", "ending"),
    [
        ("grün\n".encode(), "utf-8", "lf"),
        (codecs.BOM_UTF8 + "grün\r\nrot\r\n".encode(), "utf-8-sig", "crlf"),
        (codecs.BOM_UTF16_LE + "grün\r\n".encode("utf-16-le"), "utf-16-le", "crlf"),
        (codecs.BOM_UTF16_BE + "grün\n".encode("utf-16-be"), "utf-16-be", "lf"),
        ("grün\n".encode("latin-1"), "latin-1", "lf"),
        ("ein café".encode("latin-1"), "latin-1", "lf"),
        (b"one\r\ntwo\r\n", "utf-8", "crlf"),
    ],
)
@pytest.mark.parametrize("content", ["blaü\nweiß\n", "blaü\r\nweiß\r\n"])
def test_encoding_mark_and_line_endings_stay(
    one: Handrail, workspace: Path, old: bytes, encoding: str, ending: str, content: str
) -> None:
    (workspace / "a").write_bytes(old)
    result = one.write("a", content)
    text = content.replace("\r\n", "\n").replace("\n", "\r\n") if ending == "crlf" else content
    mark = {"utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
    expected = mark.get(encoding, b"") + text.encode(encoding.removesuffix("-sig"))
    assert (workspace / "a").read_bytes() == expected
    assert result.data.encoding == encoding
    assert result.data.line_ending == ("crlf" if "\r\n" in text else "lf")
    assert result.data.size == len(expected)
    assert result.warnings == ()


def test_encoding_and_line_endings_of_a_file_over_8_mib_stay(one: Handrail, workspace: Path) -> None:
    for data, encoding in (
        (codecs.BOM_UTF8 + "grün\r\n".encode() * 1_500_000, "utf-8-sig"),
        ("grün\r\n".encode("latin-1") * 1_500_000, "latin-1"),
    ):
        (workspace / encoding).write_bytes(data)
        result = one.write(encoding, "weiß\n")
        assert (result.data.encoding, result.data.line_ending) == (encoding, "crlf")
        assert (workspace / encoding).read_bytes() == "weiß\r\n".encode(encoding)
        assert "no diff" in result.data.diff


def test_a_character_the_encoding_lacks_makes_the_file_utf8_and_is_told(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_bytes("grün\r\n".encode("latin-1"))
    result = one.write("a", "grün 漢字\n")
    assert (workspace / "a").read_bytes() == "grün 漢字\r\n".encode()
    assert result.data.encoding == "utf-8"
    assert result.warnings == ("a was latin-1, which has no '漢'; it is UTF-8 now.",)


@pytest.mark.parametrize(
    ("old", "content", "ending"),
    [
        (None, "", "none"),
        (None, "x", "none"),
        (None, "x\r\ny\r\n", "crlf"),
        (b"no end", "a\nb\n", "lf"),
        (b"a\r\nb\n", "a\nb\n", "lf"),
        (b"a\r\n", "b", "none"),
        (b"a\n", "a\r\nb\n", "mixed"),
    ],
)
def test_the_line_ending_told_is_the_one_written(
    one: Handrail, workspace: Path, old: bytes | None, content: str, ending: str
) -> None:
    if old is not None:
        (workspace / "a").write_bytes(old)
    result = one.write("a", content)
    assert result.data.line_ending == ending
    assert one.read("a").data.line_ending == ending
    assert (workspace / "a").read_bytes() == content.encode()


@pytest.mark.parametrize(
    ("old", "content", "diff"),
    [
        (b"a\nb\n", "a\r\nb\r\n", "(only line endings change: lf becomes crlf)\n"),
        (b"a\r\nb\n", "a\nb\n", "(only line endings change: mixed becomes lf)\n"),
        ("grün ".encode() + b"\xff\n", "grün \ufffd\n", "(only bytes that are not text change)\n"),
    ],
)
def test_a_change_that_no_line_shows_is_told_in_the_preview_too(
    rail: Rail, workspace: Path, old: bytes, content: str, diff: str
) -> None:
    (workspace / "a").write_bytes(old)
    one = rail(mode="ask")
    assert one.write("a", content).error.code == "PERMISSION_REQUIRED"
    (request,) = one.waiting()
    assert request.preview.text == diff
    result = one.answer(request.id, "once").results[0]
    assert result.data.diff == diff
    assert result.artifacts.files_changed == ("a",)
    assert (workspace / "a").read_bytes() == content.encode()


def test_the_same_content_writes_nothing(one: Handrail, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"one\r\n")
    before = (workspace / "a").stat()
    result = one.write("a", "one\n")
    after = (workspace / "a").stat()
    assert (before.st_ino, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_ino,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    assert result.ok
    assert result.summary == "a already has this content; nothing was written"
    assert (result.data.diff, result.artifacts.files_changed) == ("", ())
    assert not any(isinstance(event, ChangeEvent) for event in one.events())


def test_a_link_inside_is_followed_to_the_real_file(one: Handrail, workspace: Path) -> None:
    (workspace / "real").mkdir()
    (workspace / "real" / "a.txt").write_text("old")
    (workspace / "link").symlink_to("real/a.txt")
    result = one.write("link", "new")
    assert (workspace / "link").is_symlink()
    assert (workspace / "real" / "a.txt").read_text() == "new"
    assert result.data.path == "real/a.txt"
    assert result.artifacts.files_changed == ("real/a.txt",)


def test_a_dangling_link_inside_creates_what_it_points_at(one: Handrail, workspace: Path) -> None:
    (workspace / "link").symlink_to("made/for/it.txt")
    assert one.write("link", "new").data.path == "made/for/it.txt"
    assert (workspace / "link").is_symlink()
    assert (workspace / "made/for/it.txt").read_text() == "new"


@pytest.mark.parametrize("target", ["../outside.txt", "../missing.txt", "{outside}"])
def test_a_link_outside_is_refused_and_nothing_is_made(
    one: Handrail, workspace: Path, tmp_path: Path, target: str
) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("theirs")
    (workspace / "link").symlink_to(target.format(outside=outside))
    assert one.write("link", "mine").error.code == "OUTSIDE_WORKSPACE"
    assert outside.read_text() == "theirs"
    assert not (tmp_path / "missing.txt").exists()
    assert os.listdir(workspace) == ["link"]


def test_a_file_with_several_names_is_written_in_place(rail: Rail, workspace: Path) -> None:
    one = rail(mode="full")
    path = workspace / "a.txt"
    path.write_text("a longer old content\n")
    path.chmod(0o640)
    os.link(path, workspace / "b.txt")
    result = one.write("a.txt", "new\n")
    assert result.meta.in_place
    assert (workspace / "b.txt").read_text() == "new\n"
    assert path.stat().st_nlink == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert one.write("b.txt", "something longer than before\n" * 1_000).meta.in_place
    assert path.read_text() == "something longer than before\n" * 1_000
    assert leftovers(workspace) == []


def test_a_large_file_with_several_names_is_not_risked(rail: Rail, workspace: Path) -> None:
    """Written in place it could not be restored if that fails half-way."""
    one = rail(mode="full")
    data = b"x" * (9 << 20)
    (workspace / "a.txt").write_bytes(data)
    os.link(workspace / "a.txt", workspace / "b.txt")
    assert one.write("a.txt", "new").error.code == "LIMIT_EXCEEDED"
    assert (workspace / "b.txt").read_bytes() == data


@pytest.mark.parametrize("path", ["folder", "folder/", "new/", ".", "./", "folder/.", "new/.", "folder/.."])
def test_a_folder_is_no_file_to_write(one: Handrail, workspace: Path, path: str) -> None:
    (workspace / "folder").mkdir()
    assert one.write(path, "x").error.code == "NOT_A_FILE"
    assert os.listdir(workspace) == ["folder"]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.mknod(path, 0o666 | stat.S_IFSOCK)])
def test_what_is_no_regular_file_is_not_written(one: Handrail, workspace: Path, make: Callable[[Path], None]) -> None:
    make(workspace / "special")
    inode = (workspace / "special").stat().st_ino
    assert one.write("special", "x").error.code == "NOT_A_FILE"
    assert (workspace / "special").stat().st_ino == inode


def test_binary_is_replaced_without_a_diff(one: Handrail, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(bytes(range(256)))
    result = one.write("a.bin", "text now\n")
    assert result.ok
    assert "no diff" in result.data.diff
    assert (workspace / "a.bin").read_text() == "text now\n"


@pytest.mark.parametrize("call_id", ["a/b", "../../escape", ".", "..", "", "x" * 5_000, "grün\n", "%00", "a b"])
def test_any_call_id_makes_a_fitting_temporary_name(call_id: str) -> None:
    """As text of the caller, an id must not lead anywhere; and two sessions may use the same."""
    name = build_temporary_name("session", call_id)
    assert name.startswith(".handrail-")
    assert name.removeprefix(".handrail-").isalnum()
    assert len(name) < 100
    assert name != build_temporary_name("another", call_id)


def test_what_was_written_is_what_git_sees(one: Handrail, workspace: Path) -> None:
    """The diff of a result is a patch that the real program takes."""
    old, new = "a\nb\nc\nd\ne\nf\ng\nh\n", "a\nB\nc\nd\ne\nf\ng\nh\ni"
    (workspace / "x").mkdir()
    (workspace / "x/a file.txt").write_text(old)
    diff = one.write("x/a file.txt", new).data.diff
    (workspace / "x/a file.txt").write_text(old)
    subprocess.run(["git", "apply", "-"], cwd=workspace, input=diff.encode(), check=True)
    assert (workspace / "x/a file.txt").read_text() == new


def test_a_file_with_several_names_is_not_made_larger_than_can_be_undone(rail: Rail, workspace: Path) -> None:
    one = rail(mode="full")
    (workspace / "a.txt").write_text("old")
    os.link(workspace / "a.txt", workspace / "b.txt")
    error = one.write("a.txt", "x" * (8 * 1024 * 1024 + 1)).error
    assert error is not None
    assert error.code == "LIMIT_EXCEEDED"
    assert (workspace / "b.txt").read_text() == "old"
    assert one.write("a.txt", "x" * 8 * 1024 * 1024).ok
    assert one.undo().ok
    assert one.redo().ok
