"""Parses unified diffs, also with the usual mistakes of models."""

import re
from collections.abc import Sequence
from functools import partial

import msgspec

from handrail.edit.diff_parser import HunkRange, parse_hunk_range, unquote_name
from handrail.edit.patch.hunks import (
    FilePatch,
    Hunk,
    build_hunk,
    build_patch_error,
    find_counted_end,
    is_hunk_line,
    parse_anchor,
)
from handrail.protocol.errors import ToolError
from handrail.protocol.text import render_value

_GIT = "diff --git "
_NO_FILE = "/dev/null"
_COMBINED = ("diff --cc ", "diff --combined ", "@@@ ")
_BINARY = ("GIT binary patch", "Binary files ")
_EXTENDED = (
    "index ", "old mode ", "new mode ", "deleted file mode ", "new file mode ", "copy from ", "copy to ",
    "rename from ", "rename to ", "similarity index ", "dissimilarity index ",
)  # fmt: skip
_BEHIND_HUNK = ("@@", "diff ", "Index: ", "===", "From ", "Only in ", "```")
_SIGNATURE = "-- "
"""Ends a mail of `git format-patch`."""
_MAIL = re.compile(r"From [0-9a-f]+ ")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_TIME = re.compile(r"\s\d{4}-\d\d-\d\d[ T]\d\d:\d\d\S*(?: [+-]\d{4})?$")
_PREFIXES = frozenset(("ab", "iw", "ci", "cw", "ow", "oi", "ba"))
"""Git's prefixes of the two names: a/ and b/, or letters for index, work tree, commit and object."""
_BACKUP_SUFFIXES = (".orig", ".old", ".bak")
"""Suffixes that the old name may have more than the new one."""
_MAX_NAME_CHARS = 20_000
"""Characters of a name with its date. Paths have at most 4,095 bytes, each perhaps an octal number."""


def is_diff_start(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith(_GIT) or _is_file_header(lines, at)


def parse_unified_diff(lines: Sequence[str], first: int) -> tuple[FilePatch, ...]:
    """Parse the files of a diff that starts at line `first` of the patch. Text between them is ignored."""
    files: list[FilePatch] = []
    at, is_behind_file = 0, False
    while at < len(lines):
        if is_diff_start(lines, at):
            file, at = _parse_file(lines, at, first)
            files.append(file)
            is_behind_file = True
            continue
        is_behind_file = is_behind_file and not _MAIL.match(lines[at])
        _refuse_stray_line(lines, at, first, is_behind_file=is_behind_file)
        at += 1
    return tuple(files)


class _DiffHead(msgspec.Struct):
    """The lines before the hunks of a file."""

    line: int
    git_names: tuple[str, str] | None = None
    old: str | None = None
    new: str | None = None
    has_names: bool = False
    """Whether --- and +++ were there."""
    extended: dict[str, str] = {}

    def get(self, *keys: str) -> str | None:
        """Return the first of these extended header lines that is there."""
        return next((self.extended[key] for key in keys if key in self.extended), None)


def _is_file_header(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _parse_file(lines: Sequence[str], at: int, first: int) -> tuple[FilePatch, int]:
    head = _DiffHead(first + at)
    if lines[at].startswith(_GIT):
        head.git_names = _parse_git_names(lines[at].removeprefix(_GIT).rstrip("\r"), first + at)
        at = _parse_extended(head, lines, at + 1, first)
    if at < len(lines) and lines[at].startswith(_BINARY):
        message = f"Line {first + at} of the patch: binary patches are not supported. Nothing was changed. Remove it."
        raise ToolError("BINARY_FILE", message, details={"patchLine": first + at})
    if at < len(lines) and _is_file_header(lines, at):
        head.has_names = True
        head.old = _parse_header_name(lines[at][4:], first + at)
        head.new = _parse_header_name(lines[at + 1][4:], first + at + 1)
        at += 2
    hunks, at = _parse_hunks(lines, at, first, head.new or head.old or "the file")
    return _build_file(head, hunks), at


def _parse_extended(head: _DiffHead, lines: Sequence[str], at: int, first: int) -> int:
    while at < len(lines):
        key = next((key for key in _EXTENDED if lines[at].startswith(key)), None)
        if key is None:
            break
        rest = lines[at][len(key) :].rstrip("\r")
        is_name = key.startswith(("rename ", "copy "))
        head.extended[key.rstrip()] = _parse_name(rest, first + at) if is_name else rest.strip()
        at += 1
    return at


def _refuse_stray_line(lines: Sequence[str], at: int, first: int, *, is_behind_file: bool) -> None:
    line = lines[at]
    if line.startswith(_COMBINED):
        problem = "this is a combined diff of a merge. Send a diff against one version of the file."
        raise build_patch_error(first + at, problem)
    if line.startswith("@@"):
        raise build_patch_error(first + at, "a hunk without a file: --- a/PATH and +++ b/PATH come before it.")
    if is_behind_file and line.startswith(("+", "-")) and line.rstrip() != "--":
        before = next((number for number in range(at - 1, -1, -1) if lines[number].strip()), at)
        where = f"behind line {first + before} ({render_value(lines[before])})"
        problem = f"{render_value(line)} is in no hunk, {where}. In a hunk every line begins with space, -, + or \\."
        raise build_patch_error(first + at, problem)


def _build_file(head: _DiffHead, hunks: list[Hunk]) -> FilePatch:
    _refuse_special_file(head)
    build = partial(FilePatch, line=head.line, hunks=tuple(hunks), executable=_is_executable(head))
    source, target = head.get("rename from", "copy from"), head.get("rename to", "copy to")
    if source and target:
        _refuse_other_names(head, source, target)
        return build(action="move" if "rename from" in head.extended else "copy", path=source, target=target)
    old, new = _find_names(head)
    if old is None or "new file mode" in head.extended:
        return _build_added(head, new or old, hunks)
    if new is None or "deleted file mode" in head.extended:
        return build(action="delete", path=old)
    if old != new and not any(old == new + suffix for suffix in _BACKUP_SUFFIXES):
        problem = (
            f"{render_value(old)} and {render_value(new)} are two names. To rename, use rename from and rename to."
        )
        raise build_patch_error(head.line, problem)
    if not hunks and "new mode" not in head.extended:
        raise build_patch_error(head.line, f"there is no change of {new}: no hunk and no mode.")
    return build(action="update", path=new)


def _refuse_special_file(head: _DiffHead) -> None:
    """Only regular files are patched. A link may be deleted."""
    mode = head.get("new file mode", "new mode") or (head.get("index") or "").partition(" ")[2]  # behind two hashes
    if mode.startswith(("120", "160")):
        kind = "a symbolic link" if mode.startswith("120") else "a submodule"
        raise build_patch_error(head.line, f"{kind} (mode {mode}) is not patched, only regular files are.")


def _refuse_other_names(head: _DiffHead, source: str, target: str) -> None:
    """All lines that name the two files of a rename or copy must agree."""
    names = [head.git_names] if head.git_names is not None else []
    names += [(head.old, head.new)] if head.has_names else []
    for old, new in names:
        pairs = ((old, source), (new, target))
        if not all(name is not None and bare in {name, name.partition("/")[2]} for name, bare in pairs):
            stated = f"{render_value(source)} to {render_value(target)}"
            problem = (
                f"{render_value(old or _NO_FILE)} and {render_value(new or _NO_FILE)} are other names than {stated}."
            )
            raise build_patch_error(head.line, f"{problem} Name the same files in every line.")


def _build_added(head: _DiffHead, path: str | None, hunks: list[Hunk]) -> FilePatch:
    if any(hunk.old for hunk in hunks):
        raise build_patch_error(head.line, f"{path} is a new file, but its hunks have old lines.")
    content = "".join(f"{line.text}\n" for hunk in hunks for line in hunk.lines)
    if hunks and hunks[-1].new_open:
        content = content.removesuffix("\n")
    return FilePatch(action="add", path=path or "", line=head.line, content=content, executable=_is_executable(head))


def _is_executable(head: _DiffHead) -> bool | None:
    mode = head.get("new mode", "new file mode")
    if mode is None or (mode == "100644" and "new file mode" in head.extended):
        return None
    return mode.endswith(("755", "775", "777", "711", "700"))


def _find_names(head: _DiffHead) -> tuple[str | None, str | None]:
    if head.has_names:
        if head.old is None and head.new is None:
            raise build_patch_error(head.line, "both names are /dev/null.")
        return _strip_prefixes(head.old, head.new, head.git_names)
    if head.git_names is None:
        raise build_patch_error(head.line, "the two names cannot be distinguished. Add --- a/PATH and +++ b/PATH.")
    return _strip_prefixes(*head.git_names, head.git_names)


def _parse_header_name(text: str, line: int) -> str | None:
    """Parse the name behind `---` or `+++`, without the time that may follow it. None: no file."""
    text = text.rstrip("\r")
    if len(text) > _MAX_NAME_CHARS:
        raise build_patch_error(line, f"the name {render_value(text)} is longer than a file name may be.")
    if text.startswith('"'):
        name = _parse_name(text, line)
    else:
        name, tab, _ = text.partition("\t")  # git puts one behind a name with spaces
        name = name if tab else _TIME.sub("", name.rstrip()).rstrip()
    if not name:
        raise build_patch_error(line, "a header without the name of a file.")
    return None if name == _NO_FILE else name


def _parse_name(text: str, line: int) -> str:
    """Parse a name that may be quoted, with nothing behind it."""
    if not text.startswith('"'):
        return text
    found = _QUOTED.match(text)
    if found is None:
        raise build_patch_error(line, f"the name {render_value(text)} has no quote at its end.")
    return _unquote(found[1], line)


def _parse_git_names(text: str, line: int) -> tuple[str, str] | None:
    """Parse both names behind `diff --git`, with their prefixes. None if they cannot be told apart."""
    if len(text) > 2 * _MAX_NAME_CHARS:
        raise build_patch_error(line, f"the names {render_value(text)} are longer than a file name may be.")
    first = _QUOTED.match(text)
    if first is not None:
        return _unquote(first[1], line), _parse_name(text[first.end() + 1 :], line)
    if text.endswith('"') and ' "' in text:
        left, _, right = text.partition(' "')
        return left, _parse_name(f'"{right}', line)
    middle = len(text) // 2  # nearly always both are the same but for a prefix
    if text[middle : middle + 1] == " " and _find_prefixes(text[:middle], text[middle + 1 :]) is not None:
        return text[:middle], text[middle + 1 :]
    left, separator, right = text.partition(" b/")
    if separator and " b/" not in right:
        return left, f"b/{right}"
    old, _, new = text.partition(" ")
    return (old, new) if text.count(" ") == 1 else None


def _unquote(text: str, line: int) -> str:
    try:
        return unquote_name(text).decode()
    except UnicodeDecodeError:
        problem = f"the name {render_value(text)} is not UTF-8; file names must be text."
        raise build_patch_error(line, problem) from None


def _strip_prefixes(
    old: str | None, new: str | None, git_names: tuple[str, str] | None
) -> tuple[str | None, str | None]:
    """Remove git's prefixes from two names: those of the `diff --git` line, or else the usual ones. None: no file."""
    prefixes = _find_prefixes(*git_names) if git_names is not None else None
    old_prefix, new_prefix = _guess_prefixes(old, new) if prefixes is None else prefixes
    if not ((old or old_prefix).startswith(old_prefix) and (new or new_prefix).startswith(new_prefix)):
        return old, new
    return old and old.removeprefix(old_prefix), new and new.removeprefix(new_prefix)


def _find_prefixes(old: str, new: str) -> tuple[str, str] | None:
    """Return the first folders of two names that are the same behind them. None if they are not."""
    if old == new:
        return "", ""
    one, _, old_rest = old.partition("/")
    other, _, new_rest = new.partition("/")
    return (f"{one}/", f"{other}/") if old_rest and old_rest == new_rest else None


def _guess_prefixes(old: str | None, new: str | None) -> tuple[str, str]:
    if old is None:
        return ("", "b/") if new is not None and new.startswith("b/") else ("", "")
    if new is None:
        return ("a/", "") if old.startswith("a/") else ("", "")
    is_prefix = old[1:2] == new[1:2] == "/" and old[0] + new[0] in _PREFIXES
    return (old[:2], new[:2]) if is_prefix else ("", "")


def _parse_hunks(lines: Sequence[str], at: int, first: int, path: str) -> tuple[list[Hunk], int]:
    """Parse the hunks that start at a line. Return where they end too."""
    hunks: list[Hunk] = []
    while True:
        start = _skip_empty(lines, at)
        if start == len(lines) or not lines[start].startswith("@@") or lines[start].startswith("@@@"):
            return hunks, at
        stated = parse_hunk_range(lines[start])
        at = _find_hunk_end(lines, start + 1, stated)
        if at == start + 1:
            raise build_patch_error(first + start, f"hunk {len(hunks) + 1} of {path} has no lines.")
        hunk = build_hunk(
            lines[start + 1 : at],
            number=len(hunks) + 1,
            line=first + start,
            body_line=first + start + 1,
            path=path,
            anchors=tuple(parse_anchor(lines[start])),
            stated=stated,
        )
        hunks.append(hunk)
        _refuse_unsigned(lines, start + 1, at, first, stated)


def _find_hunk_end(lines: Sequence[str], at: int, stated: HunkRange | None) -> int:
    """Find the end of a hunk by the counts in its header, or by its lines if those are wrong."""
    for start in (at, _skip_empty(lines, at)):
        end = find_counted_end(lines, start, stated)
        if end is not None and _can_end_at(lines, end):
            return end
    return _find_visible_end(lines, at)


def _can_end_at(lines: Sequence[str], at: int) -> bool:
    """Whether the next line can be no line of a hunk."""
    at = _skip_empty(lines, at)
    if at == len(lines) or lines[at][:1] not in {" ", "-", "+"}:
        return True
    return _is_file_header(lines, at) or lines[at].rstrip("\r") == _SIGNATURE


def _find_visible_end(lines: Sequence[str], at: int) -> int:
    """Find the first line that can be none of a hunk's. A `---` line is a header if `+++` and `@@` follow it."""
    end = start = at
    while at < len(lines):
        line = lines[at].rstrip("\r")
        if not is_hunk_line(line):
            break
        if _is_file_header(lines, at) and at + 2 < len(lines) and lines[at + 2].startswith("@@"):
            break
        if line == _SIGNATURE and at > start and _ends_mail(lines, at):
            break
        at += 1
        end = at if line else end
    return end


def _ends_mail(lines: Sequence[str], at: int) -> bool:
    """Whether behind a signature, of one line, nothing comes but another mail."""
    after = _skip_empty(lines, at + 2)
    return after >= len(lines) or _MAIL.match(lines[after]) is not None


def _skip_empty(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and not lines[at].strip("\r"):
        at += 1
    return at


def _refuse_unsigned(lines: Sequence[str], start: int, at: int, first: int, stated: HunkRange | None) -> None:
    """Refuse a line behind a hunk that lacks some: it can only be one of them without its sign."""
    if at == len(lines) or is_hunk_line(lines[at]) or lines[at].startswith(_BEHIND_HUNK):
        return
    old = sum(line[:1] not in {"+", "\\"} for line in lines[start:at])
    new = sum(line[:1] not in {"-", "\\"} for line in lines[start:at])
    is_short = stated is not None and old < stated.old_count and new < stated.new_count
    if is_short or lines[at].startswith("\\"):
        problem = f"{render_value(lines[at])} must begin with a space, - or +, like every line of a hunk."
        raise build_patch_error(first + at, problem)
