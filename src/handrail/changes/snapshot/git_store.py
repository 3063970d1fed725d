"""Stores contents in a private git repository, which also tells the ignored files of a workspace.

The configuration of the workspace's own repository is never read, so none of its hooks or filters run. Contents go in
through a pipe, unchanged. Of the workspace, git reads only the names, the `.gitignore` files and the index.
"""

import contextlib
import fcntl
import os
import resource
import subprocess
import threading
from collections.abc import Generator, Iterable, Iterator
from typing import IO

from handrail.changes.snapshot.scan import SnapshotDeadline, SnapshotError, SnapshotLimitError
from handrail.store.state_dir import write_private

PROGRAMS = ("/usr/bin/git", "/usr/local/bin/git", "/bin/git", "/opt/homebrew/bin/git")
_MAX_MEMORY_BYTES = 4 << 30
_SET_CAPACITY = getattr(fcntl, "F_SETPIPE_SZ", 1031)
_PIPE_CAPACITY_BYTES = 1 << 20
"""A large pipe, so that neither side waits for the other all the time."""
_MAX_INDEX_BYTES = 256 << 20
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfilemode = true\n"
_OFF = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.attributesFile=/dev/null", "core.autocrlf=false"),
    *("core.excludesFile=/dev/null", "core.untrackedCache=false", "core.compression=1", "pack.compression=1"),
    *("fastimport.unpackLimit=0", "gc.auto=0", "core.precomposeUnicode=false", "core.splitIndex=false"),
)


class GitError(SnapshotError):
    def __init__(self, why: str) -> None:
        super().__init__(f"git did not store the old content ({why})")


def find_git() -> str | None:
    """The git of the system. A git elsewhere is not trusted."""
    return next((path for path in PROGRAMS if os.path.isfile(path) and os.access(path, os.X_OK)), None)


class PrivateGit:
    """A repository in a folder that only we can read."""

    def __init__(self, program: str, folder: str) -> None:
        self._program = program
        self._folder = os.path.join(folder, "git")

    def make(self) -> None:
        """Makes the repository if there is none."""
        for name in ("objects/pack", "objects/info", "refs", "info"):
            os.makedirs(os.path.join(self._folder, name), mode=0o700, exist_ok=True)
        for name, text in (("HEAD", "ref: refs/heads/none\n"), ("config", _CONFIG)):
            path = os.path.join(self._folder, name)
            if not os.path.exists(path):
                write_private(path, text.encode(), ".new")

    @property
    def packs(self) -> int:
        return sum(name.endswith(".pack") for name in os.listdir(os.path.join(self._folder, "objects", "pack")))

    def ignored(self, root: str, deadline: SnapshotDeadline) -> list[str]:
        """The ignored files and folders below a folder. The entries of an ignored folder are not listed."""
        top = _find_work_tree(root)
        repository = _find_repository(top) if top is not None else None
        index = os.path.join(repository, "index") if repository else ""
        exclude = os.path.join(repository, "info", "exclude") if repository else ""
        words = ["ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-standard"]
        words += [f"--exclude-from={exclude}"] if exclude and os.path.isfile(exclude) else []
        can_read = os.path.isfile(index) and os.path.getsize(index) <= _MAX_INDEX_BYTES
        try:
            listed = self._run(words, deadline, top or root, root, index if can_read else "")
        except GitError:
            if not index:
                raise
            listed = self._run(words, deadline, top or root, root, "")  # without the index
        return [os.fsdecode(path.rstrip(b"/")) for path in listed.split(b"\0") if path]

    def _run(self, words: list[str], deadline: SnapshotDeadline, top: str, folder: str, index: str) -> bytes:
        process = self._start(words, folder, self._environment(top, index), errors=subprocess.PIPE)
        try:
            listed, said = process.communicate(timeout=deadline.left)
        except subprocess.TimeoutExpired:
            raise SnapshotLimitError from None
        finally:
            _end(process)
        if process.returncode != 0:
            raise GitError(_last_line(said))
        return listed

    @contextlib.contextmanager
    def storing(self, deadline: SnapshotDeadline) -> Generator["IO[bytes]"]:
        """A pipe that takes contents, each formatted by `format_blob`. They are stored at the end of the block."""
        with self._piped(deadline, "fast-import", "--quiet", "--done", "--depth=0", "--force") as process:
            stdin = _stream(process.stdin)
            with contextlib.suppress(OSError):
                fcntl.fcntl(stdin, _SET_CAPACITY, _PIPE_CAPACITY_BYTES)
            try:
                yield stdin
            except Exception:
                _finish_storing(process, stdin)
                raise
            except BaseException:  # a Ctrl-C ends git too, which is no failure of git
                with contextlib.suppress(GitError):
                    _finish_storing(process, stdin)
                raise
            _finish_storing(process, stdin)

    def contents(self, names: Iterable[bytes], deadline: SnapshotDeadline) -> Iterator[bytes | None]:
        """The contents of object names. None for an unknown name."""
        with self._piped(deadline, "cat-file", "--batch") as process:
            stdin, stdout = _stream(process.stdin), _stream(process.stdout)
            for name in names:
                try:
                    stdin.write(name.hex().encode() + b"\n")
                    stdin.flush()
                except BrokenPipeError:
                    raise GitError("git cannot find the stored content") from None
                yield _read_object(stdout)
            stdin.close()

    @contextlib.contextmanager
    def _piped(self, deadline: SnapshotDeadline, *words: str) -> Generator["subprocess.Popen[bytes]"]:
        process = self._start(words, "/", self._environment("/", ""), errors=subprocess.DEVNULL)
        # A process that hangs is killed, so that a write to it fails.
        ending = threading.Timer(deadline.left + 5, process.kill)
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
            process = subprocess.Popen(  # noqa: S603  the system's git with our arguments
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
        with contextlib.suppress(OSError, AttributeError):  # it ended already, or this system has no prlimit
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
    return b"blob\ndata %d\n%b\n" % (len(data), data)


def _finish_storing(process: "subprocess.Popen[bytes]", stdin: "IO[bytes]") -> None:
    with contextlib.suppress(BrokenPipeError):
        stdin.write(b"done\n")
        stdin.close()
    if process.wait() != 0:
        raise GitError("it failed")


def _read_object(stdout: "IO[bytes]") -> bytes | None:
    header = stdout.readline().split()
    if len(header) != 3:
        if header[1:] == [b"missing"]:
            return None
        raise GitError("git cannot find the stored content")
    data = stdout.read(int(header[2]) + 1)
    return data[:-1] if len(data) == int(header[2]) + 1 else None


def _find_work_tree(folder: str) -> str | None:
    """The nearest folder above that holds a repository."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        if folder == (folder := os.path.dirname(folder)):
            return None
    return folder


def _find_repository(top: str) -> str | None:
    path = os.path.join(top, ".git")
    if not os.path.isfile(path):
        return path
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # a linked work tree
            text = file.read(4096)
    except OSError:
        return None
    return os.path.join(top, text[8:].strip()) if text.startswith("gitdir: ") else None


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
        raise AssertionError("it is a pipe")
    return stream


def _last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else "git failed"
