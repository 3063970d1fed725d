"""The engine that runs ripgrep."""

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Self

from handrail.policy.names import list_secret_globs
from handrail.protocol.errors import ToolError
from handrail.protocol.text import clip_text
from handrail.workspace.ignore import ALWAYS_IGNORED, TEMPORARY_PREFIX
from handrail.workspace.roots import find_descriptor_path
from handrail.workspace.search import engine
from handrail.workspace.search.engine import (
    MAX_LINE_BYTES,
    EngineName,
    FileHits,
    HitLine,
    Pattern,
    SearchScope,
    SearchStats,
    Stop,
    build_binary_error,
)
from handrail.workspace.search.filters import PathFilter, has_exceptions_above, has_odd_repository, has_odd_rules

# The output of ripgrep: the lines of each file below its path on stdout, complaints on stderr

_LINE = re.compile(rb"(\d+)(?:\0(?:(\d+)\0)?(\d+)\0|-(\d+)-)([^\0\n]*+)\n")
"""Its number, the column of its first match if it has one, its offset, its text. A neighbour has dashes."""
_HEADER = re.compile(rb"(?:\r?\n)?\./([^\0]+)\0")
_MAX_PREFIX_BYTES = 64
"""Bytes before the text of a line."""
_MISHAP = re.compile(rb".*\(os error (\d+)\)")
_REFUSED = {b"1", b"13"}
_MAX_KEPT_BYTES = 8192
_MAX_STDERR_LINE_BYTES = 1 << 16


class HitAssembler:
    """Assembles ripgrep's output to the hits of files. Of a file with too many hits it keeps the first ones."""

    def __init__(self, accepts: Callable[[bytes], bool] = lambda _path: True, enough: int | None = None) -> None:
        self._accepts = accepts
        self._enough = enough
        """Hits, in all, after which no more output is read."""
        self._held: list[bytes] = []
        """Output that is not taken in yet, from the beginning of a line on. It has no whole line."""
        self._is_skipping = False
        """Whether the rest of a line is passed over."""
        self._count = 0
        """Hits of earlier files."""
        self._start_file(b"")

    def _start_file(self, path: bytes) -> None:
        self._path, self._lines = path, list[HitLine]()
        self._hits = self._bytes = self._oversized = 0
        self._is_wanted = not path or self._accepts(path)
        self.is_full = self.is_binary = False
        """Whether no more of the file is taken in. Whether it is no text."""

    def hits(self, pieces: Iterable[bytes]) -> Iterator[FileHits]:
        """Yield each text file that ended, or that is full."""
        for piece in pieces:
            data, place = self._join(piece), 0
            while data:
                place = self._take_warning(data, self._take_lines(data, place))
                header = _HEADER.match(data, place)
                if header is None:
                    break
                yield from self.take_file()
                self._start_file(header[1])
                place = header.end()
            if self.is_full:
                yield from self.take_file(unfinished=True)
            self._held = [data[place:]] if data else self._held
            if self._enough is not None and not self.is_binary and self._count + self._hits >= self._enough:
                return

    def take_file(self, *, unfinished: bool = False) -> Iterator[FileHits]:
        """Yield the current file, once, if it is text."""
        lines, oversized, self._lines, self._oversized = tuple(self._lines), self._oversized, [], 0
        if (lines or oversized) and self._is_wanted and not self.is_binary:
            self._count += self._hits
            self._hits = 0
            yield FileHits(self._path, lines, oversized, unfinished or self.is_full)

    def _join(self, piece: bytes) -> bytes:
        """Return all output that is not taken in, if a line may have ended. A line too long to be held is dropped."""
        if self._is_skipping and b"\n" in piece:
            self._held, self._is_skipping, piece = [], False, piece.partition(b"\n")[2]
        if self._is_skipping:
            return b""
        self._held.append(piece)
        if b"\n" in piece or b"\0" in piece:
            return b"".join(self._held)
        if sum(map(len, self._held)) > MAX_LINE_BYTES + _MAX_PREFIX_BYTES:
            self._held, self._is_skipping = [], True
            self._oversized += 1
        return b""

    def _take_lines(self, data: bytes, place: int) -> int:
        """Take in the whole lines of the current file, and return the place of the next byte."""
        while found := _LINE.match(data, place):
            place = found.end()
            if self.is_full or not self._is_wanted:
                continue
            number, column, offset, beside, text = found.groups()
            if len(text) > MAX_LINE_BYTES:
                self._oversized += 1
                continue
            first = int(column or 1) - 1 if offset else None
            line = HitLine.build(int(number), int(offset or beside), text.removesuffix(b"\r"), first)
            self._lines.append(line)
            self._hits += line.is_hit
            self._bytes += len(line.data) + engine.LINE_BYTES
            self.is_full = self._bytes > engine.MAX_RESULT_BYTES
        return place

    def _take_warning(self, data: bytes, place: int) -> int:
        """ripgrep says below the lines of a file that a NUL follows them."""
        if data.startswith((b"./%b: WARNING: " % self._path, b"binary file matches"), place):
            end = data.find(b"\n", place) + 1
            self.is_binary = self.is_binary or end > 0
            return end or place
        return place


class RipgrepStderr:
    def __init__(self) -> None:
        self.mishaps = 0
        """Paths that could not be opened. They do not end the search."""
        self.unreadable = 0
        """Files that the operating system refused. Others were removed meanwhile."""
        self._words = b""
        self._rest = b""

    def add(self, piece: bytes) -> None:
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:_MAX_STDERR_LINE_BYTES]
        for line in lines:
            if mishap := _MISHAP.match(line):
                self.mishaps += 1
                self.unreadable += mishap[1] in _REFUSED
            elif len(self._words) < _MAX_KEPT_BYTES:
                self._words += line + b"\n"

    def build_error(self, status: int) -> ToolError:
        words = (self._words + self._rest).decode("utf-8", "replace")
        if status < 0:
            return ToolError("IO_ERROR", f"ripgrep was ended by signal {-status}; try again.")
        if "regex" in words or "literal" in words:
            return _build_refusal(words)
        return ToolError("UNAVAILABLE", f"ripgrep failed (status {status}): {clip_text(words.strip(), 300)}")


def _build_refusal(words: str) -> ToolError:
    """ripgrep shows the expression and the place. The model has the expression and needs the reason."""
    if "is not allowed in a regex" in words and r"\n" in words:
        return build_line_break_error()
    reasons: list[str] = re.findall(r"^error: (.*)$", words, re.MULTILINE)
    reason = clip_text(reasons[-1] if reasons else words.strip().removeprefix("rg: "), 300).rstrip(".")
    return build_pattern_error(reason)


def build_pattern_error(reason: str) -> ToolError:
    hint = r"Put a backslash before literal characters, as in \( \[ \{ \. \*; look-around is not supported."
    return ToolError("INVALID_ARGUMENT", f"pattern is not a valid regular expression: {reason}. {hint}")


def build_line_break_error() -> ToolError:
    """Return the refusal of an expression that reaches over the end of a line."""
    message = "pattern matches within one line and cannot contain a line break; search for one of its lines."
    return ToolError("INVALID_ARGUMENT", message)


_PIECE_BYTES = 1 << 18
_PAUSE_MILLISECONDS = 2
"""Milliseconds to wait for output before checking for a stop."""
_GATHER_SECONDS = 0.0001
"""Output gathers for so long. To wake us for every line would take ripgrep longer than to find it."""
_VARIABLES = ("HOME", "XDG_CONFIG_HOME")
"""ripgrep finds the user's own git ignore file by these."""
_OPTIONS = ("--no-config", "--hidden", "--no-require-git", "--no-ignore-parent", "--no-mmap", "--color=never")
_FORMAT = (
    *("--heading", "--null", "--line-number", "--column", "--byte-offset"),
    *("--field-match-separator=\\x00", "--field-context-separator=-", "--no-context-separator"),
)
_PLAIN_GLOB = re.compile(r"[\w.*?/+@=~-]+", re.ASCII)
"""Globs that ripgrep and our matcher are sure to read alike."""
_PLAIN_NAME = re.compile(r"[\w.*?+@=~{},-]+", re.ASCII)
_WALK_THREADS = min(12, 3 * (os.cpu_count() or 1))
"""Threads that list names. While they wait for each other, the processors would be idle with fewer."""
_FILE_TYPE = "handrailwanted"
"""A file type for the names that a search is about."""
_MAX_LINKS = 40
"""Links after which the system gives up."""


class Ripgrep:
    """One program, run in order (one thread, sorted) or not (many threads). It walks by name: results are verified."""

    name: EngineName = "ripgrep"

    def __init__(self, program: str, *, ordered: bool = False) -> None:
        self.ordered = ordered
        self._order = ("--sort=path",) if ordered else ()
        self._program = program

    def files(self, scope: SearchScope, stop: Stop) -> Iterator[list[bytes]]:
        wanted = () if self.ordered else _list_wanted_globs(scope.include)
        paths = PathFilter(scope, has_ignored=bool(wanted))
        globs = (*wanted, *_list_globs(scope))
        options = ("--files", "--null", f"--threads={_WALK_THREADS}", *self._order, *globs, "--", "./")
        with _RipgrepProcess(self._program, options, scope.folder) as process:
            for names in _split_names(process.pieces(stop, scope.stats)):
                kept = paths.select(names)
                scope.stats.unsure = bool(wanted) and paths.has_gap
                yield kept
            process.check_end()

    def hits(self, scope: SearchScope, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        assembler = HitAssembler(PathFilter(scope).accepts, pattern.per_file if self.ordered else None)
        order = (*self._order, *(("--line-buffered",) if self.ordered else ()))
        unread = (f"--glob=!{TEMPORARY_PREFIX}*", *_list_secret_globs())
        options = (*order, *_list_globs(scope), *unread, *_list_pattern_options(pattern), "--", "./")
        with _RipgrepProcess(self._program, options, scope.folder) as process:
            yield from assembler.hits(process.pieces(stop, scope.stats))
            yield from assembler.take_file(unfinished=not process.check_end())

    def stream(self, descriptor: int, pattern: Pattern, stop: Stop) -> FileHits | None:
        assembler = HitAssembler()
        options = (*_list_pattern_options(pattern), "--", "-")
        with _RipgrepProcess(self._program, options, stdin=descriptor) as process:
            hits = next(assembler.hits(process.pieces(stop, SearchStats())), None)
            if hits is None:
                is_complete = process.check_end()
                hits = next(assembler.take_file(unfinished=not is_complete), None)
        if assembler.is_binary:
            raise build_binary_error()
        return hits


def _split_names(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    rest = b""
    for piece in pieces:
        *names, rest = (rest + piece).split(b"\0")
        yield [name.removeprefix(b"./") for name in names]


def _list_pattern_options(pattern: Pattern) -> tuple[str, ...]:
    case = "--case-sensitive" if pattern.case_sensitive else "--ignore-case"
    context = (f"--context={pattern.context}",) if pattern.context else ()
    several = ("--multiline", "--multiline-dotall") if pattern.multiline else ()
    parts = ("--only-matching", "--no-column") if pattern.only_matching else ()
    limit = f"--max-count={pattern.per_file}"
    return (*_FORMAT, "--crlf", case, *several, *parts, *context, limit, f"--regexp={pattern.text}")


def _list_globs(scope: SearchScope) -> list[str]:
    """Return options that keep ripgrep from walking in vain. PathFilter drops what they leave in."""
    globs = ["--no-ignore"] if has_exceptions_above(scope) or has_odd_rules(scope) else []
    globs += ["--no-ignore-exclude"] if has_odd_repository(scope) else []
    globs += [f"--glob=!{name}/" for name in ALWAYS_IGNORED]
    globs += [f"--glob=!{glob}" for glob in scope.exclude if _PLAIN_GLOB.fullmatch(glob)]
    globs += [f"--glob=!{pattern}" for pattern in scope.ignore if _is_plain_ignore(pattern, scope)]
    name = _find_included_name(scope.include)
    return globs if name is None else [*globs, f"--type-add={_FILE_TYPE}:{name}", f"--type={_FILE_TYPE}"]


def _list_wanted_globs(include: str | None) -> tuple[str, ...]:
    """Return an option for ripgrep to compare only folders with ignore rules. It also enters folders of that name."""
    name = _find_included_name(include)  # a pattern without a dot may match large ignored folders
    if name is None or ("." not in name[1:] and any(map(name.count, "*?{"))):
        return ()
    return (f"--glob={name}",)


def _is_plain_ignore(pattern: str, scope: SearchScope) -> bool:
    """Whether ripgrep can apply a pattern. One with a path in it holds only if the search begins at the root."""
    if any(other.startswith("!") for other in scope.ignore) or not _PLAIN_GLOB.fullmatch(pattern):
        return False
    return scope.relative == "." or "/" not in pattern.rstrip("/")


def _find_included_name(include: str | None) -> str | None:
    """Return a glob for the last name of every path that the include glob matches. None if it narrows nothing."""
    if include is None:
        return None
    name = include.rpartition("/")[2]
    if ("/" in include and "{" in include) or not _PLAIN_NAME.fullmatch(name):
        return None
    return name if name.strip("*?") else None


@lru_cache(maxsize=1)
def _list_secret_globs() -> tuple[str, ...]:
    return tuple(f"--iglob=!{glob}" for glob in list_secret_globs())


class _RipgrepProcess:
    """One run. Leaving the `with` block ends the process."""

    def __init__(
        self, program: str, options: Iterable[str], folder: int | None = None, stdin: int = subprocess.DEVNULL
    ) -> None:
        self.stderr = RipgrepStderr()
        self._is_through = False
        arguments = ("rg", *_OPTIONS, *options)  # some programs are several, and look by which name they are called
        try:
            self._process = subprocess.Popen(  # noqa: S603  the program was chosen by us, and its options are ours
                [argument.encode("utf-8", "surrogateescape") for argument in arguments],
                executable=program,
                cwd=None if folder is None else _build_folder_path(folder),
                env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except OSError as error:
            message = f"ripgrep could not be started ({error.strerror}); see `handrail doctor`."
            raise ToolError("UNAVAILABLE", message) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in filter(None, (self._process.stdout, self._process.stderr)):
            stream.close()

    def pieces(self, stop: Stop, stats: SearchStats) -> Iterator[bytes]:
        """Yield the output as it comes, until it ends or `stop` returns true."""
        streams = filter(None, (self._process.stdout, self._process.stderr))
        stdout, stderr = (stream.fileno() for stream in streams)
        poll = select.poll()
        poll.register(stdout, select.POLLIN)
        poll.register(stderr, select.POLLIN)
        open_ones = {stdout, stderr}
        while open_ones:
            ready = poll.poll(_PAUSE_MILLISECONDS)
            stats.busy = _read_processor_seconds(self._process.pid)
            if stop():
                return
            for descriptor, _ in ready:
                piece = os.read(descriptor, _PIECE_BYTES)
                if not piece:
                    poll.unregister(descriptor)
                    open_ones.discard(descriptor)
                elif descriptor == stdout:
                    yield piece
                    time.sleep(_GATHER_SECONDS)
                else:
                    self.stderr.add(piece)
        stats.unreadable, self._is_through = self.stderr.unreadable, True

    def check_end(self) -> bool:
        """Whether it searched to the end. ToolError if it failed."""
        if self._is_through:
            status = self._process.wait()
            if status < 0 or (status > 1 and not self.stderr.mishaps):
                raise self.stderr.build_error(status)
        return self._is_through


def _read_processor_seconds(process: int) -> float | None:
    """Return the time of the processors that a process took. None if it ended, or if the system does not tell."""
    try:
        return time.clock_gettime((~process << 3) | 2)  # clock_getcpuclockid(3), which Python lacks
    except (AttributeError, OSError):
        return None


def _build_folder_path(folder: int) -> str:
    """Return a path of an open folder: of the descriptor if the system has one, else where the folder is now."""
    return f"/proc/self/fd/{folder}" if sys.platform == "linux" else find_descriptor_path(folder)


def find_ripgrep(roots: Iterable[str]) -> str | None:
    """Return the path of rg, past all links: from PATH, else from the wheel `ripgrep`. None if there is none.

    A program in a root, or behind a link in one, is never run: the agent could have written it.
    """
    inside = tuple(os.path.realpath(root) for root in roots)
    path_folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in chain(filter(None, path_folders), _list_script_folders()):
        program = os.path.join(folder, "rg")
        is_program = os.path.isabs(program) and os.path.isfile(program) and os.access(program, os.X_OK)
        if is_program and not _lies_in(program, inside):
            return os.path.realpath(program)
    return None


def read_program_version(program: str) -> str | None:
    """Return the version output of the program. None if it does not run."""
    try:
        done = subprocess.run(
            ["rg", "--version"],  # noqa: S607  called so, and found by us
            executable=program,
            env={},
            capture_output=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").partition("\n")[0][:80]


def _list_script_folders() -> Iterator[str]:
    """Yield where the wheel may have put rg: beside the interpreter, among the scripts, or where its record says."""
    yield os.path.dirname(sys.executable)
    import sysconfig  # noqa: PLC0415  only if rg is not on PATH

    yield sysconfig.get_path("scripts")
    from importlib import metadata  # noqa: PLC0415  only if rg is not on PATH

    try:
        files = metadata.files("ripgrep") or []
    except metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == "rg":
            yield os.path.dirname(os.path.abspath(str(file.locate())))


def _lies_in(program: str, roots: tuple[str, ...]) -> bool:
    """Check every name that leads to it: a link outside may point inside, and the other way round."""
    return any(os.path.commonpath((name, root)) == root for name in _walk_links(program) for root in roots)


def _walk_links(path: str) -> Iterator[str]:
    """Yield each link on the way to a path, and the file at the end."""
    at, left, links = "/", path.split("/")[::-1], 0
    while left:
        name = left.pop()
        at = os.path.normpath(os.path.join(at, name))
        if os.path.islink(at) and links < _MAX_LINKS:
            yield at
            links += 1
            target = os.readlink(at)
            at = "/" if target.startswith("/") else os.path.dirname(at)
            left += target.split("/")[::-1]
    yield at
    yield os.path.realpath(path)
