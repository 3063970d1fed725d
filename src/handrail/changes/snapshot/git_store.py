"""Git, as a store of contents and as who knows what it ignores. It works on a repository of our own, in which nothing
is configured: what the workspace's repository configures is never read, so nothing of it runs or changes a byte.

Contents go in by a pipe, as they are: git opens no file of the workspace for them, and knows no filter for them. Of the
workspace it reads the names, the `.gitignore` files and the list of what is tracked."""

import contextlib
import fcntl
import os
import resource
import subprocess
import threading
from collections.abc import Generator, Iterable, Iterator
from typing import IO

from handrail.changes.snapshot.scan import SnapshotDeadline, SnapshotError, SnapshotLimitError

PROGRAMS = ("/usr/bin/git", "/usr/local/bin/git", "/bin/git", "/opt/homebrew/bin/git")
_MAX_MEMORY_BYTES = 4 << 30
_SET_CAPACITY = getattr(fcntl, "F_SETPIPE_SZ", 1031)
_PIPE_CAPACITY_BYTES = 1 << 20
"""Bytes that may be on their way to git, so that neither of us waits for the other all the time."""
_MAX_INDEX_BYTES = 256 << 20
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfilemode = true\n"
_OFF = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.autocrlf=false"),
    *("core.excludesFile=/dev/null", "core.untrackedCache=false", "core.compression=1", "pack.compression=1"),
    *("fastimport.unpackLimit=0", "gc.auto=0", "core.precomposeUnicode=false", "core.splitIndex=false"),
)


class GitError(SnapshotError):
    """Git did not do it."""

    def __init__(self, why: str) -> None:
        super().__init__(f"git did not keep what was there ({why})")


def find_git() -> str | None:
    """The system's git; one that lies elsewhere may be anybody's."""
    return next((path for path in PROGRAMS if os.path.isfile(path) and os.access(path, os.X_OK)), None)


class PrivateGit:
    """One repository of our own, in a folder that only we have."""

    def __init__(self, program: str, folder: str) -> None:
        self._program = program
        self._folder = os.path.join(folder, "git")

    def make(self) -> None:
        """Makes the repository, where there is none."""
        for name in ("objects/pack", "objects/info", "refs", "info"):
            os.makedirs(os.path.join(self._folder, name), mode=0o700, exist_ok=True)
        for name, text in (("HEAD", "ref: refs/heads/none\n"), ("config", _CONFIG)):
            path = os.path.join(self._folder, name)
            if not os.path.exists(path):
                with open(f"{path}.new", "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(f"{path}.new", path)

    @property
    def packs(self) -> int:
        """How many files the contents are in."""
        return sum(name.endswith(".pack") for name in os.listdir(os.path.join(self._folder, "objects", "pack")))

    def ignored(self, root: str, patience: SnapshotDeadline) -> list[str]:
        """What git ignores below a folder, as far as it is there; a folder that is ignored as a whole stands for all
        that is in it."""
        top = _top_of(root)
        place = _repository_of(top) if top is not None else None
        index = os.path.join(place, "index") if place else ""
        exclude = os.path.join(place, "info", "exclude") if place else ""
        words = ["ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-standard"]
        words += [f"--exclude-from={exclude}"] if exclude and os.path.isfile(exclude) else []
        try:
            listed = self._run(words, patience, top or root, root, index if _can_be_read(index) else "")
        except GitError:
            if not index:
                raise
            listed = self._run(words, patience, top or root, root, "")  # as if nothing were tracked
        return [os.fsdecode(path.rstrip(b"/")) for path in listed.split(b"\0") if path]

    def _run(self, words: list[str], patience: SnapshotDeadline, top: str, folder: str, index: str) -> bytes:
        process = self._start(words, folder, self._environment(top, index), errors=subprocess.PIPE)
        try:
            listed, said = process.communicate(timeout=patience.left)
        except subprocess.TimeoutExpired:
            raise SnapshotLimitError from None
        finally:
            _end(process)
        if process.returncode != 0:
            raise GitError(_last_line(said))
        return listed

    @contextlib.contextmanager
    def storing(self, patience: SnapshotDeadline) -> Generator["IO[bytes]"]:
        """What takes contents in, each by `blob_of`; they are kept when the block is left, also by an exception."""
        with self._piped(patience, "fast-import", "--quiet", "--done", "--depth=0", "--force") as process:
            stdin = _stream(process.stdin)
            with contextlib.suppress(OSError):
                fcntl.fcntl(stdin, _SET_CAPACITY, _PIPE_CAPACITY_BYTES)
            try:
                yield stdin
            except Exception:
                _finish_storing(process, stdin)
                raise
            except BaseException:  # a Ctrl-C ends git too, and is no failure of it
                with contextlib.suppress(GitError):
                    _finish_storing(process, stdin)
                raise
            _finish_storing(process, stdin)

    def contents(self, names: Iterable[bytes], patience: SnapshotDeadline) -> Iterator[bytes | None]:
        """What is kept under names; None for what is not."""
        with self._piped(patience, "cat-file", "--batch") as process:
            stdin, stdout = _stream(process.stdin), _stream(process.stdout)
            for name in names:
                try:
                    stdin.write(name.hex().encode() + b"\n")
                    stdin.flush()
                except BrokenPipeError:
                    raise GitError("it does not find it again") from None
                yield _answered(stdout)
            stdin.close()

    @contextlib.contextmanager
    def _piped(self, patience: SnapshotDeadline, *words: str) -> Generator["subprocess.Popen[bytes]"]:
        process = self._start(words, "/", self._environment("/", ""), errors=subprocess.DEVNULL)
        # Who has taken too long does not answer either: it is ended, and whoever writes to it finds the pipe closed.
        ending = threading.Timer(patience.left + 5, process.kill)
        ending.daemon = True
        ending.start()
        try:
            yield process
            process.wait()
        finally:
            ending.cancel()
            _end(process)

    def _start(
        self, words: Iterable[str], folder: str, environment: dict[str, str], *, errors: int
    ) -> "subprocess.Popen[bytes]":
        settings = (word for setting in _OFF for word in ("-c", setting))
        try:
            process = subprocess.Popen(  # noqa: S603  the system's git, told by us
                [self._program, "--no-pager", "--literal-pathspecs", *settings, *words],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=1 << 18,
            )
        except OSError as error:
            raise GitError(f"git cannot be started ({error.strerror})") from None
        with contextlib.suppress(OSError, AttributeError):  # it is over already, or this system has no such call
            resource.prlimit(process.pid, resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
        return process

    def _environment(self, top: str, index: str) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_DIR": self._folder,
            "GIT_WORK_TREE": top,
            "GIT_INDEX_FILE": index or os.path.join(self._folder, "index"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_TERMINAL_PROMPT": "0",
        }


def format_blob(data: bytes) -> bytes:
    """Bytes as `storing` takes them."""
    return b"blob\ndata %d\n%b\n" % (len(data), data)


def _finish_storing(process: "subprocess.Popen[bytes]", stdin: "IO[bytes]") -> None:
    with contextlib.suppress(BrokenPipeError):
        stdin.write(b"done\n")
        stdin.close()
    if process.wait() != 0:
        raise GitError("it failed")


def _answered(stdout: "IO[bytes]") -> bytes | None:
    header = stdout.readline().split()
    if len(header) != 3:
        if header[1:] == [b"missing"]:
            return None
        raise GitError("it does not find it again")
    data = stdout.read(int(header[2]) + 1)
    return data[:-1] if len(data) == int(header[2]) + 1 else None


def _top_of(folder: str) -> str | None:
    """The folder that holds the repository around a folder."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        if folder == (folder := os.path.dirname(folder)):
            return None
    return folder


def _repository_of(top: str) -> str | None:
    place = os.path.join(top, ".git")
    if not os.path.isfile(place):
        return place
    try:
        with open(place, encoding="utf-8", errors="surrogateescape") as file:  # of a work tree beside its repository
            said = file.read(4096)
    except OSError:
        return None
    return os.path.join(top, said[8:].strip()) if said.startswith("gitdir: ") else None


def _can_be_read(index: str) -> bool:
    try:
        return os.path.isfile(index) and os.stat(index).st_size <= _MAX_INDEX_BYTES
    except (OSError, ValueError):
        return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def _stream(stream: "IO[bytes] | None") -> "IO[bytes]":
    if stream is None:
        raise AssertionError("it was opened with a pipe")
    return stream


def _last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "git failed"
