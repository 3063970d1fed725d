"""Files outside the roots, and those in the workspace that no command may see or change."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
from pathlib import Path

SECRET = "words that nobody outside may read"
LONG_AGO = 1_000_000_000
HARD_TO_SPELL = 'it\'s "odd" \\ $(id) \n *'
_GET_FLAGS = 0x80086601

_OUTSIDE = {
    "outside/canary.txt": "canary\n",
    "outside/folder/inner.txt": "inner\n",
    "outside/empty/.keep": "",
    "outside/secret.txt": SECRET,
    "shown/canary.txt": "canary\n",
    "shown/folder/inner.txt": "inner\n",
    "home/.ssh/id_ed25519": SECRET,
    "home/.netrc": SECRET,
    "home/.bash_history": SECRET,
    "home/.config/gh/hosts.yml": SECRET,
    "home/.cargo/credentials.toml": SECRET,
    "home/.cargo/registry/readme": "a toolchain's ordinary file",
    "home/.m2/settings.xml": SECRET,
    "home/.gradle/gradle.properties": SECRET,
    "home/project/notes.txt": SECRET,
    "neighbour/notes.txt": SECRET,
}
_IN_WORKSPACE = {
    ".env": SECRET,
    ".npmrc": SECRET,
    ".aws/credentials": SECRET,
    "deep/er/and/deep/er/.env.production": SECRET,
    "node_modules/package/.env": SECRET,
    f"{HARD_TO_SPELL}/.env": SECRET,
    "keys/server.pem": SECRET,
    "keys/id_rsa": SECRET,
    "handrail.toml": "# nothing\n",
    ".handrail/rules.toml": "# nothing\n",
    "ordinary/notes.txt": "ordinary\n",
}


class Files:
    """Makes the files, tells how they are, makes them anew."""

    def __init__(self, place: Path, name: str, *, root: bool) -> None:
        self.place = place
        self.workspace = place / "workspace"
        shared = [Path(folder) / f"{name}-canary" for folder in ("/tmp", "/var/tmp", "/dev/shm")]
        self.shared = [path for path in shared if os.access(path.parent, os.W_OK)]
        wanted = ("/usr", "/etc", "/opt", "/var/lib", "/run", "/usr/local/bin", "/", "/root", "/home", "/mnt", "/dev")
        self.absent = [Path(folder) / f"{name}-new" for folder in (*wanted, "/tmp", "/var/tmp", "/dev/shm")]
        self.root = root
        self.build()

    def constants(self) -> dict[str, object]:
        return {
            "PLACE": str(self.place),
            "OUTSIDE": str(self.place / "outside"),
            "SHOWN": str(self.place / "shown"),
            "HOME": str(self.place / "home"),
            "NEIGHBOUR": str(self.place / "neighbour"),
            "STATE": str(self.place / "state"),
            "WORKSPACE": str(self.workspace),
            "FREE": str(self.workspace / "ordinary"),
            "SHARED": [str(path) for path in self.shared],
            "ABSENT": [str(path) for path in self.absent],
            "SECRET_INODE": (self.place / "outside/secret.txt").stat().st_ino,
            "DEVICE": self.place.stat().st_dev,
            "PARENT_INODE": self.place.stat().st_ino,
        }

    def build(self) -> None:
        """All files as they are to be, whatever happened to them; the workspace keeps nothing else."""
        self.clear()
        for name, text in _OUTSIDE.items():
            _write(self.place / name, text)
        for name, text in _IN_WORKSPACE.items():
            _write(self.workspace / name, text)
        for path in self.shared:
            _write(path, "canary\n")
        for folder in self._folders():
            for path in (folder, *folder.rglob("*")):
                if not path.is_symlink():
                    os.utime(path, (LONG_AGO, LONG_AGO))

    def clear(self) -> None:
        for folder in self._folders():
            _remove(folder)
        _remove_contents(self.workspace)
        for path in (*self.shared, *self.absent):
            _remove(path)

    def tidy(self) -> None:
        """Takes away what a command has left in the workspace, where it may; what it may not change stays."""
        known = {name.partition("/")[0] for name in _IN_WORKSPACE} | {".agent.sock"}
        for path in self.workspace.iterdir():
            if path.name not in known:
                _remove(path)
        _remove(self.workspace / "ordinary")
        _write(self.workspace / "ordinary/notes.txt", "ordinary\n")

    def fingerprint(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for folder in self._folders():
            for path in (folder, *sorted(folder.rglob("*"))):
                found[str(path)] = _looks(path)
        for path in (*self.shared, *self.absent, *(self.workspace / name for name in _guarded())):
            found[str(path)] = _looks(path)
        return found

    def complete(self) -> bool:
        """Whether the workspace still has everything: commands may move what they may not read."""
        return all((self.workspace / name).exists() for name in (*_IN_WORKSPACE, ".agent.sock", "deep/er/agent.sock"))

    def _folders(self) -> list[Path]:
        return [self.place / name for name in ("outside", "shown", "home", "neighbour")]


def whole(folder: Path) -> dict[str, object]:
    """How everything below a folder is: for commands that may change nothing in it."""
    return {str(path): _looks(path) for path in sorted(folder.rglob("*"))}


def _guarded() -> list[str]:
    return ["handrail.toml", ".handrail/rules.toml", ".env", ".npmrc"]


def _looks(path: Path) -> tuple[object, ...] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    kept = (
        stat.filemode(status.st_mode),
        status.st_uid,
        status.st_gid,
        status.st_nlink,
        status.st_rdev,
        status.st_mtime_ns,
    )
    if stat.S_ISSOCK(status.st_mode) or stat.S_ISFIFO(status.st_mode):
        return kept[:3]
    return (*kept, status.st_ctime_ns, _content(path, status), _attributes(path), _flags(path, status))


def _content(path: Path, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return str(path.readlink())
    if not stat.S_ISREG(status.st_mode):
        return ""
    with contextlib.suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return "unreadable"


def _attributes(path: Path) -> tuple[tuple[str, bytes], ...]:
    with contextlib.suppress(OSError):
        names = os.listxattr(path, follow_symlinks=False)
        return tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in sorted(names))
    return ()


def _flags(path: Path, status: os.stat_result) -> bytes:
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return b""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return fcntl.ioctl(descriptor, _GET_FLAGS, b"\0" * 8)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            _remove_contents(path)
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def _remove_contents(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(OSError):
        folder.chmod(0o755)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        _remove(path)
