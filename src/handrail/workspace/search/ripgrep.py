"""The engine that runs ripgrep."""

import base64
import os
import re
import select
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Literal, Self

import msgspec

from handrail.policy.names import list_secret_globs
from handrail.protocol.errors import ToolError
from handrail.protocol.text import clip_text
from handrail.protocol.wire import get_json_decoder
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
    Stop,
    build_binary_error,
)
from handrail.workspace.search.filters import PathFilter, has_exceptions_above, has_odd_repository, has_odd_rules

# The output of ripgrep: JSON lines on stdout, complaints on stderr

_MISHAP = re.compile(rb".*\(os error (\d+)\)")
_REFUSED = {b"1", b"13"}
_MAX_KEPT_BYTES = 8192
_MAX_STDERR_LINE_BYTES = 1 << 16


class RipgrepBytes(msgspec.Struct, frozen=True, rename={"encoded": "bytes"}):
    """Text if it is UTF-8, else base64."""

    text: str | None = None
    encoded: str | None = None

    def decode(self) -> bytes:
        return self.text.encode() if self.text is not None else base64.b64decode(self.encoded or "")


class RipgrepSpan(msgspec.Struct):
    start: int
    end: int


class _RipgrepData(msgspec.Struct):
    """The data of any message. Each type has some of the fields."""

    path: RipgrepBytes = RipgrepBytes()
    lines: RipgrepBytes = RipgrepBytes()
    line_number: int = 0
    absolute_offset: int = 0
    submatches: tuple[RipgrepSpan, ...] = ()
    binary_offset: int | None = None


class _RipgrepMessage(msgspec.Struct):
    type: Literal["begin", "match", "context", "end", "summary"]
    data: _RipgrepData


class HitAssembler:
    """Assembles messages to the hits of files. Of a file with too many hits it keeps the first ones."""

    def __init__(self) -> None:
        self._decoder = get_json_decoder(_RipgrepMessage)
        self._path = b""
        self._lines: list[HitLine] = []
        self._bytes = 0
        self._oversized = 0
        self.is_full = False
        """Whether no more of the current file is taken in."""
        self.is_complete = False
        """Whether ripgrep has finished."""
        self.is_binary = False
        """Whether the last file is no text."""

    def hits(self, pieces: Iterable[bytes]) -> Iterator[FileHits]:
        """Yield each text file that ended, and what came of the file that did not end."""
        for line in self._split_lines(pieces):
            message = self._decoder.decode(line)
            if message.type in {"match", "context"}:
                yield from self._add_line(message)
            elif message.type == "begin":
                self._start_file(message.data.path.decode().removeprefix(b"./"))
            elif message.type == "end":
                self.is_binary = message.data.binary_offset is not None
                if not self.is_binary and not self.is_full:
                    yield from self._take_file(unfinished=False)
                self._start_file(b"")
            else:
                self.is_complete = True
        if not self.is_full:
            yield from self._take_file(unfinished=True)

    def _start_file(self, path: bytes) -> None:
        self._path, self._lines, self._bytes, self.is_full, self._oversized = path, [], 0, False, 0

    def _add_line(self, message: _RipgrepMessage) -> Iterator[FileHits]:
        if self.is_full:
            return
        data = message.data
        text = data.lines.decode().removesuffix(b"\n").removesuffix(b"\r")
        spans = [(span.start, span.end) for span in data.submatches] if message.type == "match" else None
        line = HitLine.build(data.line_number, data.absolute_offset, text, spans)
        self._lines.append(line)
        self._bytes += len(line.data) + engine.LINE_BYTES
        if self._bytes > engine.MAX_RESULT_BYTES:
            self.is_full = True
            yield from self._take_file(unfinished=True)

    def _take_file(self, *, unfinished: bool) -> Iterator[FileHits]:
        lines, self._lines = tuple(self._lines), []
        if lines or self._oversized:
            yield FileHits(self._path, lines, self._oversized, unfinished)

    def _split_lines(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield whole lines. A line longer than MAX_LINE_BYTES is counted and dropped."""
        held: list[bytes] = []
        size = 0
        for piece in pieces:
            first, *rest = piece.split(b"\n")
            size += len(first)
            if size <= MAX_LINE_BYTES:
                held.append(first)
            if not rest:
                continue
            if size <= MAX_LINE_BYTES:
                yield b"".join(held)
            else:
                self._oversized += 1
            yield from rest[:-1]
            held, size = [rest[-1]], len(rest[-1])


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
    hint = r"Put a backslash before what is meant literally, as in \( \[ \{ \. \*; look-around is not supported."
    return ToolError("INVALID_ARGUMENT", f"pattern is no valid regular expression: {reason}. {hint}")


def build_line_break_error() -> ToolError:
    """Return the refusal of an expression that reaches over the end of a line."""
    message = (
        "pattern is searched for in each line by itself and cannot hold a line break; search for one of its lines."
    )
    return ToolError("INVALID_ARGUMENT", message)


_PIECE_BYTES = 1 << 18
_PAUSE_MILLISECONDS = 2
"""Seconds to wait for output before checking for a stop."""
_VARIABLES = ("HOME", "XDG_CONFIG_HOME")
"""ripgrep finds the user's own git ignore file by these."""
_OPTIONS = ("--no-config", "--hidden", "--no-require-git", "--no-ignore-parent", "--no-mmap", "--color=never")
_PLAIN_GLOB = re.compile(r"[\w.*?/+@=~-]+", re.ASCII)
"""Globs that ripgrep and our matcher are sure to read alike."""
_PLAIN_NAME = re.compile(r"[\w.*?+@=~{},-]+", re.ASCII)
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

    def files(self, scope: SearchScope, stop: Stop) -> Iterator[bytes]:
        paths = PathFilter(scope)
        options = ("--files", "--null", *self._order, *_list_globs(scope), "--", "./")
        with _RipgrepProcess(self._program, options, scope.folder) as process:
            yield from filter(paths.accepts, _split_names(process.pieces(stop)))
            scope.stats.unreadable = process.stderr.unreadable
            if not process.stopped and process.wait() not in {0, 1} and not process.stderr.mishaps:
                raise process.build_error()

    def hits(self, scope: SearchScope, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        paths, assembler = PathFilter(scope), HitAssembler()
        order = (*self._order, *(("--line-buffered",) if self.ordered else ()))
        options = (*order, *_list_globs(scope), *_list_secret_globs(), *_list_pattern_options(pattern), "--", "./")
        with _RipgrepProcess(self._program, options, scope.folder) as process:
            for hits in assembler.hits(process.pieces(stop)):
                if paths.accepts(hits.path):
                    yield hits
            scope.stats.unreadable = process.stderr.unreadable
            if not process.stopped and not assembler.is_complete:
                raise process.build_error()

    def stream(self, descriptor: int, pattern: Pattern, stop: Stop) -> FileHits | None:
        assembler = HitAssembler()
        options = (*_list_pattern_options(pattern), "--", "-")
        with _RipgrepProcess(self._program, options, stdin=descriptor) as process:
            hits = next(assembler.hits(process.pieces(stop)), None)
            is_cut_off = hits is None or (hits.unfinished and not assembler.is_full)
            if is_cut_off and not process.stopped and not assembler.is_complete:
                raise process.build_error()
        if assembler.is_binary:
            raise build_binary_error()
        return hits


def _split_names(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *names, rest = (rest + piece).split(b"\0")
        for name in names:
            yield name.removeprefix(b"./")


def _list_pattern_options(pattern: Pattern) -> tuple[str, ...]:
    case = "--case-sensitive" if pattern.case_sensitive else "--ignore-case"
    context = (f"--context={pattern.context}",) if pattern.context else ()
    return ("--json", "--crlf", case, *context, f"--max-count={pattern.per_file}", f"--regexp={pattern.text}")


def _list_globs(scope: SearchScope) -> list[str]:
    """Return options that keep ripgrep from walking in vain. PathFilter drops what they leave in."""
    globs = ["--no-ignore"] if has_exceptions_above(scope) or has_odd_rules(scope) else []
    globs += ["--no-ignore-exclude"] if has_odd_repository(scope) else []
    globs += [f"--glob=!{name}/" for name in ALWAYS_IGNORED]
    globs.append(f"--glob=!{TEMPORARY_PREFIX}*")
    globs += [f"--glob=!{glob}" for glob in scope.exclude if _PLAIN_GLOB.fullmatch(glob)]
    globs += [f"--glob=!{pattern}" for pattern in scope.ignore if _is_plain_ignore(pattern, scope)]
    name = _find_included_name(scope.include)
    return globs if name is None else [*globs, f"--type-add={_FILE_TYPE}:{name}", f"--type={_FILE_TYPE}"]


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
        self.stopped = False
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
            message = f"ripgrep could not be started ({error.strerror}); `handrail doctor` says which one it is."
            raise ToolError("UNAVAILABLE", message) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in filter(None, (self._process.stdout, self._process.stderr)):
            stream.close()

    def pieces(self, stop: Stop) -> Iterator[bytes]:
        """Yield the output as it comes, until it ends or `stop` returns true."""
        streams = filter(None, (self._process.stdout, self._process.stderr))
        stdout, stderr = (stream.fileno() for stream in streams)
        poll = select.poll()
        poll.register(stdout, select.POLLIN)
        poll.register(stderr, select.POLLIN)
        open_ones = {stdout, stderr}
        while open_ones:
            ready = poll.poll(_PAUSE_MILLISECONDS)
            if stop():
                self.stopped = True
                return
            for descriptor, _ in ready:
                piece = os.read(descriptor, _PIECE_BYTES)
                if not piece:
                    poll.unregister(descriptor)
                    open_ones.discard(descriptor)
                elif descriptor == stdout:
                    yield piece
                else:
                    self.stderr.add(piece)

    def wait(self) -> int:
        return self._process.wait()

    def build_error(self) -> ToolError:
        return self.stderr.build_error(self.wait())


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
