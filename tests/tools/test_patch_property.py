"""apply_patch against git: the diff of two trees makes the second one of the first, and undo makes the first again."""

import codecs
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.edit.lines import apply_replacements
from handrail.edit.patch.apply import apply_hunks
from handrail.edit.patch.envelope import parse_patch
from handrail.settings import Settings
from handrail.settings.model import Tools

Files = dict[str, tuple[bytes, bool]]
"""By name: the bytes, and whether it is executable."""
NAMES = [
    "a.txt",
    "b c.txt",
    "d/é.py",
    "d/e/f",
    'q"uote\\',
    "tab\tname",
    "b/a/x",
    "a/b/x",
    " lead",
    "trail ",
    "-- x",
    "日本",
]
LINES = ["one", "two", "  two", "", "three", "\tfour", "-- x", "++ y", "@@ -1 +1 @@", "a/b", "é", "--- a/b", "+++ b/b"]
OPTIONS = [(), ("-M",), ("-U0",), ("-U1", "-M10%"), ("--no-renames",), ("-C", "-C")]
GIT = shutil.which("git")
SETTINGS = Settings(tools=Tools(enable=("apply_patch",)))


class Form(NamedTuple):
    """What patches leave alone: how the lines of a file end, and the mark that it begins with."""

    newline: bytes
    mark: bytes


FORMS = [Form(b"\n", b""), Form(b"\r\n", b""), Form(b"\n", codecs.BOM_UTF8)]


@st.composite
def contents(draw: st.DrawFn, form: Form) -> bytes:
    lines = draw(st.lists(st.sampled_from(LINES), max_size=25))
    return form.mark + form.newline.join(line.encode() for line in [*lines, *draw(st.sampled_from([[], [""]]))])


@st.composite
def changed(draw: st.DrawFn, data: bytes, form: Form) -> bytes:
    """The same with some lines gone and some new."""
    lines = data.removeprefix(form.mark).split(form.newline)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(lines)))
        new = [line.encode() for line in draw(st.lists(st.sampled_from(LINES), max_size=2))]
        lines[at : at + draw(st.integers(0, 2))] = new
    return form.mark + form.newline.join(lines)


@st.composite
def trees(draw: st.DrawFn) -> tuple[Files, Files]:
    form = draw(st.sampled_from(FORMS))
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=6))
    old = {name: (draw(contents(form)), draw(st.booleans())) for name in names}
    new: Files = {}
    free = [name for name in NAMES if name not in names]
    for name, (data, executable) in old.items():
        what = draw(st.sampled_from(["keep", "change", "change", "delete", "rename", "mode"]))
        now = draw(changed(data, form)) if what in {"change", "rename"} else data
        becomes = free.pop(draw(st.integers(0, len(free) - 1))) if what == "rename" and free else name
        if what != "delete":
            new[becomes] = (now, executable != (what == "mode"))
    if free and draw(st.booleans()):
        new[free[0]] = (draw(contents(form)), draw(st.booleans()))
    return old, new


def write(folder: Path, files: Files) -> None:
    for name, (data, executable) in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755 if executable else 0o644)


def tree(folder: Path) -> Files:
    found = [path for path in folder.rglob("*") if path.is_file()]
    executable = {path: bool(path.stat().st_mode & stat.S_IXUSR) for path in found}
    return {str(path.relative_to(folder)): (path.read_bytes(), executable[path]) for path in found}


def git_diff(old: Files, new: Files, *options: str) -> str:
    """What git says of two trees."""
    with tempfile.TemporaryDirectory() as folder:

        def git(*words: str) -> bytes:
            clean = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": folder}
            return subprocess.run([str(GIT), *words], cwd=folder, capture_output=True, check=True, env=clean).stdout

        git("init", "--quiet")
        hashes: list[str] = []
        for files in (old, new):
            for path in [path for path in Path(folder).iterdir() if path.name != ".git"]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            write(Path(folder), files)
            git("add", "--all")
            hashes.append(git("write-tree").decode().strip())
        return git("diff", "--text", *options, *hashes).decode()


@pytest.mark.skipif(GIT is None, reason="git is what is compared with")
@given(trees=trees(), options=st.sampled_from(OPTIONS))
def test_a_git_diff_makes_the_second_tree_and_undo_the_first(
    trees: tuple[Files, Files], options: tuple[str, ...]
) -> None:
    old, new = trees
    diff = git_diff(old, new, *options)
    if not diff:
        return
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        write(workspace, old)
        with Handrail(workspace, mode="full", settings=SETTINGS, state_dir=f"{folder}/state") as rail:
            result = rail.apply_patch(diff)
            assert result.ok, (result.error, diff)
            assert tree(workspace) == new, diff
            assert rail.undo().ok
            assert tree(workspace) == old


@st.composite
def envelopes(draw: st.DrawFn) -> tuple[str, str, str]:
    """A text, what becomes of it, and the envelope that says so, with all lines around each change."""
    lines = [f"line {number}" for number in range(draw(st.integers(1, 30)))]
    body: list[str] = []
    after: list[str] = []
    for line in lines:
        what = draw(st.sampled_from(["keep", "keep", "keep", "drop", "replace", "add"]))
        body.append(f"{' ' if what in {'keep', 'add'} else '-'}{line}")
        after += [line] if what in {"keep", "add"} else []
        if what in {"replace", "add"}:
            new = draw(st.sampled_from(LINES))
            body.append(f"+{new}")
            after.append(new)
    patch = "\n".join(["*** Begin Patch", "*** Update File: a.txt", "@@", *body, "*** End Patch"])
    return "".join(f"{line}\n" for line in lines), "".join(f"{line}\n" for line in after), patch


@given(drawn=envelopes())
def test_an_envelope_says_what_becomes_of_a_text(drawn: tuple[str, str, str]) -> None:
    before, after, patch = drawn
    if before == after:
        return
    [file] = parse_patch(patch)
    assert apply_replacements(before, apply_hunks(before, file.hunks, "a.txt").replacements) == after


@given(drawn=envelopes(), extra=st.lists(st.integers(0, 10_000), max_size=5))
def test_lines_that_a_patch_does_not_name_are_not_touched(drawn: tuple[str, str, str], extra: list[int]) -> None:
    before, after, patch = drawn
    if before == after:
        return
    top, bottom = "".join(f"top {n}\n" for n in extra), "".join(f"bottom {n}\n" for n in extra)
    [file] = parse_patch(patch)
    text = top + before + bottom
    found = apply_hunks(text, file.hunks, "a.txt")
    assert apply_replacements(text, found.replacements) == top + after + bottom
    assert all(len(top) <= start <= end <= len(top) + len(before) for start, end, _ in found.replacements)
