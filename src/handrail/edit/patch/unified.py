"""Reads unified diffs, as git and diff write them and as models remember them."""

from collections.abc import Sequence

import msgspec

from handrail.edit.patch.hunk_body import hunks_at, is_file_header, is_mail
from handrail.edit.patch.model import Action, FilePatch, Hunk, malformed, quoted
from handrail.edit.patch.names import NOWHERE, git_names, header_name, is_same, whole_name, without_prefixes
from handrail.protocol.error import ToolError

GIT = "diff --git "
_COMBINED = ("diff --cc ", "diff --combined ", "@@@ ")
_BINARY = ("GIT binary patch", "Binary files ")
_COPIES = (".orig", ".old", ".bak")
"""What comparing a file with its earlier self often adds to the name of that."""
_EXTENDED = (
    "index ", "old mode ", "new mode ", "deleted file mode ", "new file mode ", "copy from ", "copy to ",
    "rename from ", "rename to ", "similarity index ", "dissimilarity index ",
)  # fmt: skip


def is_start(lines: Sequence[str], at: int) -> bool:
    """Whether a file of a diff begins at a line."""
    return lines[at].startswith(GIT) or is_file_header(lines, at)


def unified(lines: Sequence[str], first: int) -> tuple[FilePatch, ...]:
    """The files of a diff, whose first line has a number. What stands before and between them is passed over, but not
    if it could be a part of a hunk."""
    files: list[FilePatch] = []
    at, begun = 0, False
    while at < len(lines):
        if is_start(lines, at):
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
        raise malformed(first + at, "this is a combined diff of a merge. Send a diff against one version of the file.")
    if line.startswith("@@"):
        raise malformed(first + at, "a hunk without a file: --- a/PATH and +++ b/PATH come before it.")
    if begun and line.startswith(("+", "-")) and line.rstrip() != "--":
        before = next((number for number in range(at - 1, -1, -1) if lines[number].strip()), at)
        where = f"behind line {first + before} ({quoted(lines[before])})"
        problem = f"{quoted(line)} is in no hunk, {where}. In a hunk every line begins with space, -, + or \\."
        raise malformed(first + at, problem)


class _Head(msgspec.Struct):
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
    head = _Head(first + at)
    if lines[at].startswith(GIT):
        head.names = git_names(lines[at].removeprefix(GIT).rstrip("\r"), first + at)
        at = _extended(head, lines, at + 1, first)
    if at < len(lines) and lines[at].startswith(_BINARY):
        message = f"Line {first + at} of the patch: binary patches are not applied. Nothing was changed. Leave it out."
        raise ToolError("BINARY_FILE", message, details={"patchLine": first + at})
    if at < len(lines) and is_file_header(lines, at):
        head.marked = True
        head.old = _name(lines[at][4:], first + at)
        head.new = _name(lines[at + 1][4:], first + at + 1)
        at += 2
    hunks, at = hunks_at(lines, at, first, head.new or head.old or "the file")
    return _made(head, hunks), at


def _extended(head: _Head, lines: Sequence[str], at: int, first: int) -> int:
    while at < len(lines):
        begin = next((begin for begin in _EXTENDED if lines[at].startswith(begin)), None)
        if begin is None:
            break
        rest = lines[at][len(begin) :].rstrip("\r")
        is_name = begin.startswith(("rename ", "copy "))
        head.said[begin.rstrip()] = whole_name(rest, first + at) if is_name else rest.strip()
        at += 1
    return at


def _name(text: str, line: int) -> str | None:
    name = header_name(text.rstrip("\r"), line)
    if not name:
        raise malformed(line, "a header without the name of a file.")
    return None if name == NOWHERE else name


def _made(head: _Head, hunks: list[Hunk]) -> FilePatch:
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
        problem = f"{quoted(old)} and {quoted(new)} are two names. To rename, say rename from and rename to."
        raise malformed(head.line, problem)
    if not hunks and "new mode" not in head.said:
        raise malformed(head.line, f"nothing is said of {new}: no hunk and no mode.")
    return _patch(head, "update", new, hunks)


def _refuse_other_names(head: _Head, source: str, target: str) -> None:
    """All lines that name the two files of a rename or a copy must name the same."""
    named = [head.names] if head.names is not None else []
    named += [(head.old, head.new)] if head.marked else []
    for old, new in named:
        if not (is_same(old, source) and is_same(new, target)):
            said = f"{quoted(source)} to {quoted(target)}"
            problem = f"{quoted(old or NOWHERE)} and {quoted(new or NOWHERE)} are other names than {said}."
            raise malformed(head.line, f"{problem} Name the same files in every line.")


def _names(head: _Head) -> tuple[str | None, str | None]:
    if head.marked:
        if head.old is None and head.new is None:
            raise malformed(head.line, "both names are /dev/null.")
        return without_prefixes(head.old, head.new, head.names)
    if head.names is None:
        raise malformed(head.line, "the two names cannot be told apart. Add --- a/PATH and +++ b/PATH.")
    return without_prefixes(*head.names, head.names)


def _refuse_special(head: _Head) -> None:
    """Only regular files are patched; a link may be deleted."""
    mode = head.kind("new file mode", "new mode") or (head.kind("index") or "").partition(" ")[2]  # behind two hashes
    if mode.startswith(("120", "160")):
        kind = "a symbolic link" if mode.startswith("120") else "a submodule"
        raise malformed(head.line, f"{kind} (mode {mode}) is not patched, only regular files are.")


def _added(head: _Head, path: str | None, hunks: list[Hunk]) -> FilePatch:
    if any(hunk.old for hunk in hunks):
        raise malformed(head.line, f"{path} is to be new, but its hunks have lines that are there already.")
    content = "".join(f"{line.text}\n" for hunk in hunks for line in hunk.lines)
    if hunks and hunks[-1].new_open:
        content = content.removesuffix("\n")
    return FilePatch(action="add", path=path or "", line=head.line, content=content, executable=_executable(head))


def _patch(head: _Head, action: Action, path: str, hunks: list[Hunk], target: str | None = None) -> FilePatch:
    return FilePatch(
        action=action,
        path=path,
        line=head.line,
        target=target,
        hunks=tuple(hunks),
        executable=_executable(head),
    )


def _executable(head: _Head) -> bool | None:
    mode = head.kind("new mode", "new file mode")
    if mode is None or (mode == "100644" and "new file mode" in head.said):
        return None
    return mode.endswith(("755", "775", "777", "711", "700"))
