"""Reads unified diffs, as git and diff write them and as models remember them."""

from collections.abc import Sequence

import msgspec

from handrail.edit.patch.hunk_body import is_file_header, is_mail, parse_hunks
from handrail.edit.patch.model import Action, FilePatch, Hunk, build_patch_error
from handrail.edit.patch.names import (
    NOWHERE,
    is_same_name,
    parse_git_names,
    parse_header_name,
    parse_whole_name,
    strip_prefixes,
)
from handrail.protocol.error import ToolError
from handrail.protocol.text import quote_text

GIT = "diff --git "
_COMBINED = ("diff --cc ", "diff --combined ", "@@@ ")
_BINARY = ("GIT binary patch", "Binary files ")
_COPIES = (".orig", ".old", ".bak")
"""What comparing a file with its earlier self often adds to the name of that."""
_EXTENDED = (
    "index ", "old mode ", "new mode ", "deleted file mode ", "new file mode ", "copy from ", "copy to ",
    "rename from ", "rename to ", "similarity index ", "dissimilarity index ",
)  # fmt: skip


def is_diff_start(lines: Sequence[str], at: int) -> bool:
    """Whether a file of a diff begins at a line."""
    return lines[at].startswith(GIT) or is_file_header(lines, at)


def parse_unified_diff(lines: Sequence[str], first: int) -> tuple[FilePatch, ...]:
    """The files of a diff, whose first line has a number. What stands before and between them is passed over, but not
    if it could be a part of a hunk."""
    files: list[FilePatch] = []
    at, begun = 0, False
    while at < len(lines):
        if is_diff_start(lines, at):
            file, at = _file(lines, at, first)
            files.append(file)
            begun = True
            continue
        begun = begun and not is_mail(lines[at])
        _refuse_stray(lines, at, first, begun=begun)
        at += 1
    return tuple(files)


def _refuse_stray(lines: Sequence[str], at: int, first: int, *, begun: bool) -> None:
    line = lines[at]
    if line.startswith(_COMBINED):
        raise build_patch_error(
            first + at, "this is a combined diff of a merge. Send a diff against one version of the file."
        )
    if line.startswith("@@"):
        raise build_patch_error(first + at, "a hunk without a file: --- a/PATH and +++ b/PATH come before it.")
    if begun and line.startswith(("+", "-")) and line.rstrip() != "--":
        before = next((number for number in range(at - 1, -1, -1) if lines[number].strip()), at)
        where = f"behind line {first + before} ({quote_text(lines[before])})"
        problem = f"{quote_text(line)} is in no hunk, {where}. In a hunk every line begins with space, -, + or \\."
        raise build_patch_error(first + at, problem)


class _DiffHead(msgspec.Struct):
    """The lines before the hunks of a file."""

    line: int
    names: tuple[str, str] | None = None
    """As `diff --git` has them."""
    old: str | None = None
    new: str | None = None
    marked: bool = False
    """Whether --- and +++ were there."""
    said: dict[str, str] = {}
    """The extended lines, by how they begin."""

    def kind(self, *begins: str) -> str | None:
        """What follows the first of these that is there."""
        return next((self.said[begin] for begin in begins if begin in self.said), None)


def _file(lines: Sequence[str], at: int, first: int) -> tuple[FilePatch, int]:
    head = _DiffHead(first + at)
    if lines[at].startswith(GIT):
        head.names = parse_git_names(lines[at].removeprefix(GIT).rstrip("\r"), first + at)
        at = _extended(head, lines, at + 1, first)
    if at < len(lines) and lines[at].startswith(_BINARY):
        message = f"Line {first + at} of the patch: binary patches are not applied. Nothing was changed. Leave it out."
        raise ToolError("BINARY_FILE", message, details={"patchLine": first + at})
    if at < len(lines) and is_file_header(lines, at):
        head.marked = True
        head.old = _name(lines[at][4:], first + at)
        head.new = _name(lines[at + 1][4:], first + at + 1)
        at += 2
    hunks, at = parse_hunks(lines, at, first, head.new or head.old or "the file")
    return _made(head, hunks), at


def _extended(head: _DiffHead, lines: Sequence[str], at: int, first: int) -> int:
    while at < len(lines):
        begin = next((begin for begin in _EXTENDED if lines[at].startswith(begin)), None)
        if begin is None:
            break
        rest = lines[at][len(begin) :].rstrip("\r")
        is_name = begin.startswith(("rename ", "copy "))
        head.said[begin.rstrip()] = parse_whole_name(rest, first + at) if is_name else rest.strip()
        at += 1
    return at


def _name(text: str, line: int) -> str | None:
    name = parse_header_name(text.rstrip("\r"), line)
    if not name:
        raise build_patch_error(line, "a header without the name of a file.")
    return None if name == NOWHERE else name


def _made(head: _DiffHead, hunks: list[Hunk]) -> FilePatch:
    _refuse_special(head)
    source, target = head.kind("rename from", "copy from"), head.kind("rename to", "copy to")
    if source and target:
        _refuse_other_names(head, source, target)
        action: Action = "move" if "rename from" in head.said else "copy"
        return _patch(head, action, source, hunks, target)
    old, new = _names(head)
    if old is None or "new file mode" in head.said:
        return _added(head, new or old, hunks)
    if new is None or "deleted file mode" in head.said:
        return _patch(head, "delete", old, hunks)
    if old != new and not any(old == new + ending for ending in _COPIES):
        problem = f"{quote_text(old)} and {quote_text(new)} are two names. To rename, say rename from and rename to."
        raise build_patch_error(head.line, problem)
    if not hunks and "new mode" not in head.said:
        raise build_patch_error(head.line, f"nothing is said of {new}: no hunk and no mode.")
    return _patch(head, "update", new, hunks)


def _refuse_other_names(head: _DiffHead, source: str, target: str) -> None:
    """All lines that name the two files of a rename or a copy must name the same."""
    named = [head.names] if head.names is not None else []
    named += [(head.old, head.new)] if head.marked else []
    for old, new in named:
        if not (is_same_name(old, source) and is_same_name(new, target)):
            said = f"{quote_text(source)} to {quote_text(target)}"
            problem = f"{quote_text(old or NOWHERE)} and {quote_text(new or NOWHERE)} are other names than {said}."
            raise build_patch_error(head.line, f"{problem} Name the same files in every line.")


def _names(head: _DiffHead) -> tuple[str | None, str | None]:
    if head.marked:
        if head.old is None and head.new is None:
            raise build_patch_error(head.line, "both names are /dev/null.")
        return strip_prefixes(head.old, head.new, head.names)
    if head.names is None:
        raise build_patch_error(head.line, "the two names cannot be told apart. Add --- a/PATH and +++ b/PATH.")
    return strip_prefixes(*head.names, head.names)


def _refuse_special(head: _DiffHead) -> None:
    """Only regular files are patched; a link may be deleted."""
    mode = head.kind("new file mode", "new mode") or (head.kind("index") or "").partition(" ")[2]  # behind two hashes
    if mode.startswith(("120", "160")):
        kind = "a symbolic link" if mode.startswith("120") else "a submodule"
        raise build_patch_error(head.line, f"{kind} (mode {mode}) is not patched, only regular files are.")


def _added(head: _DiffHead, path: str | None, hunks: list[Hunk]) -> FilePatch:
    if any(hunk.old for hunk in hunks):
        raise build_patch_error(head.line, f"{path} is to be new, but its hunks have lines that are there already.")
    content = "".join(f"{line.text}\n" for hunk in hunks for line in hunk.lines)
    if hunks and hunks[-1].new_open:
        content = content.removesuffix("\n")
    return FilePatch(action="add", path=path or "", line=head.line, content=content, executable=_executable(head))


def _patch(head: _DiffHead, action: Action, path: str, hunks: list[Hunk], target: str | None = None) -> FilePatch:
    return FilePatch(
        action=action,
        path=path,
        line=head.line,
        target=target,
        hunks=tuple(hunks),
        executable=_executable(head),
    )


def _executable(head: _DiffHead) -> bool | None:
    mode = head.kind("new mode", "new file mode")
    if mode is None or (mode == "100644" and "new file mode" in head.said):
        return None
    return mode.endswith(("755", "775", "777", "711", "700"))
