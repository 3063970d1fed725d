"""Runs ripgrep."""

import os
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Self

import msgspec

from handrail.policy.names import list_secret_globs
from handrail.protocol.errors import ToolError
from handrail.workspace.ignore import ALWAYS_IGNORED, TEMPORARY_PREFIX
from handrail.workspace.roots import find_descriptor_path
from handrail.workspace.search.engine import EngineName, FileHits, Pattern, SearchScope, SearchStats, Stop, to_sort_key
from handrail.workspace.search.filters import (
    PathFilter,
    collect_withheld_names,
    has_exceptions_above,
    has_odd_repository,
    has_odd_rules,
    is_covered,
    list_withheld_names,
)
from handrail.workspace.search.ripgrep_output import HitAssembler, RipgrepStderr

# § [workspace.search.child] A ripgrep process: its output in pieces, its complaints bounded, its end certain.

_PIECE_BYTES = 1 << 18
_PAUSE_MILLISECONDS = 2
"""How long to wait for output before asking whether to stop."""
_KEPT = ("HOME", "XDG_CONFIG_HOME")
"""What ripgrep needs to find the user's own git ignore file."""


class RipgrepProcess:
    """One run. Leaving the `with` block ends the process, whatever it was doing."""

    def __init__(
        self, arguments: list[bytes], folder: int | None, complain: Callable[[bytes], None], stdin: int | None = None
    ) -> None:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        try:
            self._process = subprocess.Popen(  # noqa: S603  the program was chosen by us, and its options are ours
                [b"rg", *arguments[1:]],  # some programs are several, and look by which name they are called
                executable=arguments[0],
                cwd=None if folder is None else _place(folder),
                env=environment,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except OSError as error:
            message = f"ripgrep could not be started ({error.strerror}); `handrail doctor` says which one it is."
            raise ToolError("UNAVAILABLE", message) from None
        self._complain = complain
        self.stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def pieces(self, stop: Stop) -> Iterator[bytes]:
        """What it prints, as it comes; ends with the output, or when `stop` says so (then `stopped` is true)."""
        stdout, stderr = self._descriptors()
        waiting = select.poll()
        waiting.register(stdout, select.POLLIN)
        waiting.register(stderr, select.POLLIN)
        open_ones = {stdout, stderr}
        while open_ones:
            ready = waiting.poll(_PAUSE_MILLISECONDS)
            if stop():
                self.stopped = True
                return
            for descriptor, _ in ready:
                piece = os.read(descriptor, _PIECE_BYTES)
                if not piece:
                    waiting.unregister(descriptor)
                    open_ones.discard(descriptor)
                elif descriptor == stdout:
                    yield piece
                else:
                    self._complain(piece)

    def status(self) -> int:
        """Its exit status, negative for a signal: once it has said everything."""
        return self._process.wait()

    def _descriptors(self) -> tuple[int, int]:
        if self._process.stdout is None or self._process.stderr is None:
            raise AssertionError("both were asked for")
        return self._process.stdout.fileno(), self._process.stderr.fileno()


def _place(folder: int) -> str:
    """A name for an open folder: itself where the system has one, else where it is now."""
    return f"/proc/self/fd/{folder}" if sys.platform == "linux" else find_descriptor_path(folder)


# § [workspace.search.command] The command line of a search by ripgrep.

_COMMON = ("--no-config", "--hidden", "--no-require-git", "--no-ignore-parent", "--no-mmap", "--color=never")
_PLAIN_GLOB = re.compile(r"[\w.*?/+@=~-]+", re.ASCII)
"""Globs that ripgrep and we are sure to read alike."""
_PLAIN_NAME = re.compile(r"[\w.*?+@=~{},-]+", re.ASCII)
_WANTED = "handrailwanted"
"""A file type of our own, for the names that a search is about."""


def build_files_command(program: str, where: SearchScope, *, ordered: bool) -> list[bytes]:
    """Names the files, each ended by a NUL."""
    return _encoded(program, *_COMMON, "--files", "--null", *_order(ordered), *_narrowed(where), "--", "./")


def build_hits_command(
    program: str, where: SearchScope, pattern: Pattern, *, ordered: bool, log: bool = False
) -> list[bytes]:
    """Searches the files. With a log it says which names it passed over."""
    buffered = ("--line-buffered",) if ordered else ()
    how = (*_COMMON, *_order(ordered), *buffered, *(("--debug",) if log else ()))
    globs = (*_narrowed(where), *_secrets())
    return _encoded(program, *how, *globs, *_expression(pattern), "--", "./")


def build_stream_command(program: str, pattern: Pattern) -> list[bytes]:
    """Searches what comes in."""
    return _encoded(program, *_COMMON, *_expression(pattern), "--", "-")


def has_short_log(where: SearchScope) -> bool:
    """Whether a log of what is passed over is short. Narrowed to a file type, ripgrep passes over nearly everything,
    and logging that takes many times as long as the search."""
    return _wanted_name(where.include) is None


def _expression(pattern: Pattern) -> tuple[str, ...]:
    case = "--case-sensitive" if pattern.case_sensitive else "--ignore-case"
    context = (f"--context={pattern.context}",) if pattern.context else ()
    return ("--json", "--crlf", case, *context, f"--max-count={pattern.per_file}", f"--regexp={pattern.text}")


def _order(ordered: bool) -> tuple[str, ...]:
    return ("--sort=path",) if ordered else ()


def _narrowed(where: SearchScope) -> list[str]:
    """What keeps ripgrep from walking where nothing is wanted. What this leaves in, the engine drops."""
    globs = ["--no-ignore"] if has_exceptions_above(where) or has_odd_rules(where) else []
    globs += ["--no-ignore-exclude"] if has_odd_repository(where) else []
    globs += [f"--glob=!{name}/" for name in ALWAYS_IGNORED]
    globs.append(f"--glob=!{TEMPORARY_PREFIX}*")
    globs += [f"--glob=!{glob}" for glob in where.exclude if _PLAIN_GLOB.fullmatch(glob)]
    globs += [f"--glob=!{pattern}" for pattern in where.ignore if _is_plain_ignore(pattern, where)]
    name = _wanted_name(where.include)
    return globs if name is None else [*globs, f"--type-add={_WANTED}:{name}", f"--type={_WANTED}"]


def _is_plain_ignore(pattern: str, where: SearchScope) -> bool:
    """A pattern about names holds in every folder alike; one with a way in it only where the way begins at the root."""
    if any(other.startswith("!") for other in where.ignore) or not _PLAIN_GLOB.fullmatch(pattern):
        return False
    return where.relative == "." or "/" not in pattern.rstrip("/")


def _wanted_name(include: str | None) -> str | None:
    """A glob for the last name of every path that the include glob matches; None where it narrows nothing."""
    if include is None:
        return None
    name = include.rpartition("/")[2]
    if ("/" in include and "{" in include) or not _PLAIN_NAME.fullmatch(name):
        return None
    return name if name.strip("*?") else None


@lru_cache(maxsize=1)
def _secrets() -> tuple[str, ...]:
    return tuple(f"--iglob=!{glob}" for glob in list_secret_globs())


def _encoded(*arguments: str) -> list[bytes]:
    return [argument.encode("utf-8", "surrogateescape") for argument in arguments]


# § [workspace.search.ripgrep] The engine that is ripgrep. It walks by name, so what it says is only ever a
# § candidate.

MAX_NOISE_LINES = 1_000
"""Each line of a log costs some 25 microseconds; where there are more, protected names are counted by a second run."""


class Ripgrep:
    """One program, run in order (one thread, sorted) or not (many threads, as it comes)."""

    name: EngineName = "ripgrep"

    def __init__(self, program: str, *, ordered: bool = False) -> None:
        self.ordered = ordered
        self._program = program
        self._noisy: set[str] = set()
        """Folders where a log is long."""

    def files(self, where: SearchScope, stop: Stop) -> Iterator[bytes]:
        """The files below a folder, by their paths below it."""
        kept, complaints = PathFilter(where), RipgrepStderr()
        where.notes.counted = True
        with RipgrepProcess(
            build_files_command(self._program, where, ordered=self.ordered), where.folder, complaints.add
        ) as child:
            for path in _names(child.pieces(stop)):
                if kept(path):
                    yield path
            where.notes.unreadable = complaints.unreadable
            if not child.stopped and (status := child.status()) not in {0, 1} and not complaints.mishaps:
                raise complaints.failure(status)

    def hits(self, where: SearchScope, pattern: Pattern, stop: Stop) -> Iterator[FileHits]:
        """The files with lines that match."""
        given: set[bytes] = set()
        if self._may_log(where):
            complaints = RipgrepStderr()
            run = self._run(where, pattern, lambda: stop() or complaints.noise > MAX_NOISE_LINES, complaints, log=True)
            for found in run:
                if found.unfinished and complaints.noise > MAX_NOISE_LINES:
                    continue  # the run was given up in the midst of it, and the next one finds it whole
                given.add(found.path)
                yield found
            # What a hit adds would tell of what is in a protected file: only names that were passed over count.
            where.notes.protected = set(complaints.passed_over)
            where.notes.counted = complaints.logs and not complaints.unclear and complaints.noise <= MAX_NOISE_LINES
            if complaints.noise <= MAX_NOISE_LINES:
                return
            self._noisy.add(where.relative)
        for found in self._run(where, pattern, stop, RipgrepStderr(), log=False):
            if found.path not in given:
                yield found

    def _may_log(self, where: SearchScope) -> bool:
        return not self.ordered and has_short_log(where) and where.relative not in self._noisy

    def _run(
        self, where: SearchScope, pattern: Pattern, stop: Stop, complaints: RipgrepStderr, *, log: bool
    ) -> Iterator[FileHits]:
        kept, assembly = PathFilter(where), HitAssembler()
        command = build_hits_command(self._program, where, pattern, ordered=self.ordered, log=log)
        with RipgrepProcess(command, where.folder, complaints.add) as child:
            for found in assembly.hits(child.pieces(stop)):
                if kept(found.path):
                    yield found
            where.notes.unreadable = complaints.unreadable
            if not child.stopped and not assembly.complete:
                raise complaints.failure(child.status())

    def withheld(self, where: SearchScope, last: bytes | None, stop: Stop) -> set[bytes]:
        """The names that policy withheld from the search that was just made of a place."""
        if self.ordered and not where.notes.counted:
            return collect_withheld_names(where, last, stop)
        names = self._withheld(where, stop)
        return names if last is None else {name for name in names if to_sort_key(name) <= to_sort_key(last)}

    def _withheld(self, where: SearchScope, stop: Stop) -> set[bytes]:
        if where.notes.counted:
            return list_withheld_names(sorted(where.notes.protected), where)
        # A withheld folder counts whatever is in it, so all names are looked at, not only those that are included.
        looked = msgspec.structs.replace(where, include=None, notes=SearchStats())
        for _ in self.files(looked, stop):
            pass
        names = sorted(filter(is_covered, looked.notes.protected))
        return list_withheld_names(names, where)

    def stream(self, descriptor: int, pattern: Pattern, stop: Stop) -> FileHits | None:
        """The hits in an open file, which is read from where it stands; None where there are none."""
        complaints, assembly = RipgrepStderr(), HitAssembler()
        with RipgrepProcess(
            build_stream_command(self._program, pattern), None, complaints.add, stdin=descriptor
        ) as child:
            found = next(assembly.hits(child.pieces(stop)), None)
            broken_off = found is None or (found.unfinished and not assembly.full)
            if broken_off and not child.stopped and not assembly.complete:
                raise complaints.failure(child.status())
        if assembly.binary:
            raise ToolError("BINARY_FILE", "The file is not text. Use a program that knows its format.")
        return found


def _names(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *names, rest = (rest + piece).split(b"\0")
        for name in names:
            yield name[2:] if name.startswith(b"./") else name


# § [workspace.search.binary] Finds the ripgrep program: on PATH, else the one that the wheel `ripgrep` brings.

_MAX_LINKS = 40
"""Links after which the system gives up."""


def find_ripgrep(roots: Iterable[str]) -> str | None:
    """The path of rg itself, past all links, or None. One that lies in a root, or that a link in one leads to, is never
    run: the agent could have written it."""
    inside = tuple(os.path.realpath(root) for root in roots)
    for folder in chain(_on_path(), _scripts()):
        program = os.path.join(folder, "rg")
        if os.path.isabs(program) and _is_program(program) and not _lies_in(program, inside):
            return os.path.realpath(program)
    return None


def read_program_version(program: str) -> str | None:
    """What the program says of itself; None where it does not run."""
    import subprocess  # noqa: PLC0415  only doctor asks

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


def _on_path() -> Iterator[str]:
    return (folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder)


def _scripts() -> Iterator[str]:
    """Where the wheel may have put it: beside the interpreter, among the scripts, or where its record says."""
    yield os.path.dirname(sys.executable)
    import sysconfig  # noqa: PLC0415  only where rg is not on PATH

    yield sysconfig.get_path("scripts")
    from importlib import metadata  # noqa: PLC0415  as above

    try:
        files = metadata.files("ripgrep") or []
    except metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == "rg":
            yield os.path.dirname(os.path.abspath(str(file.locate())))


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _lies_in(program: str, roots: tuple[str, ...]) -> bool:
    """By every name that leads to it: a link outside may point inside, and the other way round."""
    return any(os.path.commonpath((name, root)) == root for name in _walk_links(program) for root in roots)


def _walk_links(path: str) -> Iterator[str]:
    """What is passed on the way to a path: each link, by its own place, and what is reached at last."""
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
