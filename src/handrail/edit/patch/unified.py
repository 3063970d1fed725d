"""Parses unified diffs."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from handrail.edit.patch.model import Action, FilePatch, Hunk, PatchLine, Sign, build_patch_error
from handrail.protocol.errors import ToolError
from handrail.protocol.text import quote_text

# § [edit.patch.hunk_header] The `@@` line that a hunk begins with: numbers, or what it is in.

_NUMBERED = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_NO_NAME = re.compile(r"[ .@…]*|-[\d, ]*\+[\d, ]*(?:@@.*)?")
"""What names nothing: dots, and numbers that were left out or are not as diffs have them."""


class HunkRange(NamedTuple):
    """Where a hunk says it begins, and how many lines it says it has."""

    start: int
    old: int
    new: int


def parse_hunk_range(line: str) -> HunkRange | None:
    """The numbers of an `@@` line."""
    found = _NUMBERED.match(line)
    return HunkRange(int(found[1]), int(found[2] or 1), int(found[4] or 1)) if found else None


def parse_anchor(line: str) -> list[str]:
    """What an `@@` line names, if anything: line numbers are none, nor is what follows them."""
    if _NUMBERED.match(line):
        return []
    text = line.removeprefix("@@").rstrip().removesuffix("@@").rstrip().removeprefix(" ")
    return [] if _NO_NAME.fullmatch(text.strip()) else [text]


def find_counted_end(lines: Sequence[str], at: int, said: HunkRange) -> int | None:
    """Where the counts say that lines end that begin at one; None if the lines say something else."""
    old, new = said.old, said.new
    while old > 0 or new > 0:
        if at == len(lines) or not is_hunk_line(lines[at]):
            return None
        sign = lines[at][:1]
        old -= sign not in {"+", "\\"}
        new -= sign not in {"-", "\\"}
        at += 1
    if old < 0 or new < 0:
        return None
    while at < len(lines) and is_no_newline_mark(lines[at]):
        at += 1
    return at


def is_no_newline_mark(line: str) -> bool:
    """Whether a line says that the one before it has no newline: any other that begins so is a line of a file."""
    return line.startswith("\\ ")


def is_hunk_line(line: str) -> bool:
    """Whether a line can be one of a hunk: it has a sign, or is an empty one that has lost it."""
    return line[:1] in {"", " ", "-", "+", "\r"} or is_no_newline_mark(line)


# § [edit.patch.hunk_lines] Takes the lines of a hunk apart, and passes over what models get wrong where that is
# § safe.

_SIGNS: dict[str, Sign] = {" ": " ", "-": "-", "+": "+"}


class HunkHead(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a hunk before its lines."""

    number: int
    line: int
    """Of the patch, where it begins."""
    body: int
    """Of the patch, where its lines begin."""
    path: str
    anchors: tuple[str, ...] = ()
    said: HunkRange | None = None


def build_hunk(head: HunkHead, body: Sequence[str], *, at_end: bool = False) -> Hunk:
    """A hunk out of its lines. An empty line is an empty line of the file whose space was lost, and one at either edge
    is none at all if it is not counted; a line with no sign is one that stays, whose space was lost."""
    start, end = _edges(body, head.said)
    lines: list[PatchLine] = []
    old_open = new_open = False
    unsigned: int | None = None
    for number, text in enumerate(body[start:end], head.body + start):
        sign = _SIGNS.get(text[:1])
        if sign is not None:
            lines.append(PatchLine(sign, text[1:]))
        elif is_no_newline_mark(text):
            last = lines[-1].sign if lines else " "
            old_open, new_open = old_open or last != "+", new_open or last != "-"
        else:
            lines.append(PatchLine(" ", text))
            unsigned = number if unsigned is None and text.strip() else unsigned
    if all(line.sign == " " for line in lines):
        problem = f"hunk {head.number} of {head.path} has no line that begins with - or +, so it changes nothing."
        raise build_patch_error(head.line, problem)
    return Hunk(
        number=head.number,
        line=head.line,
        lines=tuple(lines),
        anchors=head.anchors,
        stated=_stated(head.said, lines, shifted=start > 0 and end != _counted(body, start, head.said)),
        at_end=at_end,
        old_open=old_open,
        new_open=new_open,
        unsigned=unsigned,
    )


def _stated(said: HunkRange | None, lines: Sequence[PatchLine], *, shifted: bool) -> int | None:
    """The line that a hunk says it begins with; None where nobody can tell whether empty lines before it count."""
    if said is None or shifted:
        return None
    has_old = any(line.sign != "+" for line in lines)
    return said.start if has_old or said.old == 0 else None


def _edges(body: Sequence[str], said: HunkRange | None) -> tuple[int, int]:
    """Which lines are the hunk's, by the counts if they can be right."""
    start, end = 0, len(body)
    while start < end and not body[start].rstrip("\r"):
        start += 1
    while end > start and not body[end - 1].rstrip("\r"):
        end -= 1
    for first in (0, start):
        last = _counted(body, first, said)
        if last is not None and last >= end:
            return first, last
    return start, end


def _counted(body: Sequence[str], start: int, said: HunkRange | None) -> int | None:
    return None if said is None else find_counted_end(body, start, said)


# § [edit.patch.hunk_body] Finds where the hunks of a unified diff end: by the counts in their headers, or by their
# § lines if those are wrong.

_SIGNATURE = "-- "
"""What `git format-patch` ends with."""
_NEXT = ("@@", "diff ", "Index: ", "===", "From ", "Only in ", "```")
"""What may come behind a hunk."""
_MAIL = re.compile(r"From [0-9a-f]+ ")


def is_file_header(lines: Sequence[str], at: int) -> bool:
    """Whether a line and the next name a file."""
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def is_mail(line: str) -> bool:
    """Whether a line begins a mail of `git format-patch`."""
    return _MAIL.match(line) is not None


def parse_hunks(lines: Sequence[str], at: int, first: int, path: str) -> tuple[list[Hunk], int]:
    """The hunks that begin at a line, and where what comes behind them begins."""
    hunks: list[Hunk] = []
    while True:
        start = _next_full(lines, at)
        if start == len(lines) or not lines[start].startswith("@@") or lines[start].startswith("@@@"):
            return hunks, at
        said = parse_hunk_range(lines[start])
        at = _end(lines, start + 1, said)
        if at == start + 1:
            raise build_patch_error(first + start, f"hunk {len(hunks) + 1} of {path} has no lines.")
        head = HunkHead(
            number=len(hunks) + 1,
            line=first + start,
            body=first + start + 1,
            path=path,
            anchors=tuple(parse_anchor(lines[start])),
            said=said,
        )
        hunks.append(build_hunk(head, lines[start + 1 : at]))
        _refuse_unsigned(lines, start + 1, at, first, said)


def _refuse_unsigned(lines: Sequence[str], start: int, at: int, first: int, said: HunkRange | None) -> None:
    """A line behind a hunk that lacks some, which can only be one of them without its sign."""
    if at == len(lines) or is_hunk_line(lines[at]) or lines[at].startswith(_NEXT):
        return
    old = sum(line[:1] not in {"+", "\\"} for line in lines[start:at])
    new = sum(line[:1] not in {"-", "\\"} for line in lines[start:at])
    lacks = said is not None and old < said.old and new < said.new
    if lacks or lines[at].startswith("\\"):
        problem = f"{quote_text(lines[at])} begins with none of space, - and +, as every line of a hunk does."
        raise build_patch_error(first + at, problem)


def _end(lines: Sequence[str], at: int, said: HunkRange | None) -> int:
    for start in (at, _next_full(lines, at)) if said is not None else ():
        end = find_counted_end(lines, start, said) if said is not None else None
        if end is not None and _is_over(lines, end):
            return end
    return _visible_end(lines, at)


def _next_full(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and not lines[at].strip("\r"):
        at += 1
    return at


def _is_over(lines: Sequence[str], at: int) -> bool:
    """Whether what comes next can be no line of a hunk."""
    at = _next_full(lines, at)
    if at == len(lines) or lines[at][:1] not in {" ", "-", "+"}:
        return True
    return is_file_header(lines, at) or lines[at].rstrip("\r") == _SIGNATURE


def _visible_end(lines: Sequence[str], at: int) -> int:
    """Where lines come that can be none of a hunk's. A name of a file looks like a line that goes, but not if one that
    comes and the header of a hunk follow it."""
    end = start = at
    while at < len(lines):
        line = lines[at].rstrip("\r")
        if not is_hunk_line(line):
            break
        if is_file_header(lines, at) and at + 2 < len(lines) and lines[at + 2].startswith("@@"):
            break
        if line == _SIGNATURE and at > start and _ends_mail(lines, at):
            break
        at += 1
        end = at if line else end
    return end


def _ends_mail(lines: Sequence[str], at: int) -> bool:
    """Whether behind a signature, of one line, nothing comes but another mail."""
    after = _next_full(lines, at + 2)
    return after >= len(lines) or is_mail(lines[after])


# § [edit.patch.names] The names of files in the headers of a diff.

_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_TIME = re.compile(r"\s\d{4}-\d\d-\d\d[ T]\d\d:\d\d\S*(?: [+-]\d{4})?$")
_PREFIXES = frozenset(("ab", "iw", "ci", "cw", "ow", "oi", "ba"))
"""What git puts before the two names: a/ and b/, or letters for index, work tree, commit and object."""
NOWHERE = "/dev/null"
_MAX_NAME_CHARS = 20_000
"""Characters of a name and what follows it: the system takes 4,095 bytes, each of them perhaps as an octal number."""


def parse_header_name(text: str, line: int) -> str:
    """The name behind `---` and `+++`, without the time that may follow it."""
    if len(text) > _MAX_NAME_CHARS:
        raise build_patch_error(line, f"the name {quote_text(text)} is longer than any file can have.")
    if not text.startswith('"'):
        name, tab, _ = text.partition("\t")  # git puts one behind a name with spaces
        return name if tab else _TIME.sub("", name.rstrip()).rstrip()
    return parse_whole_name(text, line)


def parse_whole_name(text: str, line: int) -> str:
    """The name behind `rename from` and its like, where nothing follows."""
    if text.startswith('"'):
        found = _QUOTED.match(text)
        if found is None:
            raise build_patch_error(line, f"the name {quote_text(text)} has no quote at its end.")
        return _unquoted(found[1], line)
    return text


def parse_git_names(text: str, line: int) -> tuple[str, str] | None:
    """Both names behind `diff --git`, with their prefixes; None where they cannot be told apart."""
    if len(text) > 2 * _MAX_NAME_CHARS:
        raise build_patch_error(line, f"the names {quote_text(text)} are longer than any file can have.")
    first = _QUOTED.match(text)
    if first is not None:
        return _unquoted(first[1], line), parse_whole_name(text[first.end() + 1 :], line)
    if text.endswith('"') and ' "' in text:
        left, _, right = text.partition(' "')
        return left, parse_whole_name(f'"{right}', line)
    middle = len(text) // 2  # nearly always both are the same but for a prefix
    if text[middle : middle + 1] == " " and _prefixes(text[:middle], text[middle + 1 :]) is not None:
        return text[:middle], text[middle + 1 :]
    left, found, right = text.partition(" b/")
    if found and " b/" not in right:
        return left, f"b/{right}"
    old, _, new = text.partition(" ")
    return (old, new) if text.count(" ") == 1 else None


def strip_prefixes(
    old: str | None, new: str | None, git: tuple[str, str] | None = None
) -> tuple[str | None, str | None]:
    """Two names without what git puts before them, as the names of `diff --git` tell it, or else if it is `a/` and `b/`
    or like that; None stands for no file."""
    known = _prefixes(*git) if git is not None else None
    if known is None:
        known = _usual(old, new)
    before_old, before_new = known
    if not ((old or before_old).startswith(before_old) and (new or before_new).startswith(before_new)):
        return old, new
    return old and old.removeprefix(before_old), new and new.removeprefix(before_new)


def is_same_name(name: str | None, said: str) -> bool:
    """Whether a name that may have a prefix is one that has none."""
    return name is not None and said in {name, name.partition("/")[2]}


def _prefixes(old: str, new: str) -> tuple[str, str] | None:
    """What two names of the same file begin with; None where they are not the same without one folder each."""
    if old == new:
        return "", ""
    one, _, old_rest = old.partition("/")
    other, _, new_rest = new.partition("/")
    return (f"{one}/", f"{other}/") if old_rest and old_rest == new_rest else None


def _usual(old: str | None, new: str | None) -> tuple[str, str]:
    if old is None:
        return ("", "b/") if new is not None and new.startswith("b/") else ("", "")
    if new is None:
        return ("a/", "") if old.startswith("a/") else ("", "")
    is_prefix = old[1:2] == new[1:2] == "/" and old[0] + new[0] in _PREFIXES
    return (old[:2], new[:2]) if is_prefix else ("", "")


def _unquoted(text: str, line: int) -> str:
    """A name as C writes it, with octal numbers for bytes."""
    raw = _ESCAPE.sub(_byte, text.encode("utf-8", "surrogatepass"))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise build_patch_error(
            line, f"the name {quote_text(text)} is not UTF-8, and files are named by text here."
        ) from None


def _byte(found: re.Match[bytes]) -> bytes:
    escaped = found[1].decode("latin-1")
    if len(escaped) == 3:
        return bytes((int(escaped, 8) & 255,))
    return bytes((_ESCAPES.get(escaped, found[1][0]),))


# § [edit.patch.unified] Reads unified diffs, as git and diff write them and as models remember them.

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
