"""Folders that belong to a process as long as it lives: the kernel releases the lock when the process ends."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Generator


def lock_folder(folder: str) -> int:
    """A descriptor that holds the folder's lock; -1 where another one does, or the folder is gone."""
    descriptor = -1
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.stat(folder), os.fstat(descriptor)):
            return descriptor
    if descriptor >= 0:
        os.close(descriptor)
    return -1


def is_locked(path: str) -> bool:
    """Whether a live process holds the lock of a file or folder. Several processes may ask at the same moment."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def make_locked_folder(around: str, prefix: str = "") -> Generator[str]:
    """A new folder, its real path, for the time of the `with`."""
    import shutil  # noqa: PLC0415  every session asks for locks, and few make folders
    import tempfile  # noqa: PLC0415

    descriptor, folder = -1, ""
    while descriptor < 0:  # somebody may take it for left before it is locked
        folder = tempfile.mkdtemp(prefix=prefix, dir=around)
        descriptor = lock_folder(folder)
    try:
        yield os.path.realpath(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


@contextlib.contextmanager
def make_temporary_folder(prefix: str, around: str | None = None) -> Generator[str]:
    """The same for a purpose of ours, after what killed processes left of it is removed."""
    import tempfile  # noqa: PLC0415

    around = around or tempfile.gettempdir()
    remove_stale_folders(around, lambda: None, prefix)
    with make_locked_folder(around, prefix) as folder:
        yield folder


def remove_stale_folders(around: str, before: Callable[[], object], prefix: str = "") -> None:
    """Removes the folders that killed processes left. If there are any, `before` is called first. If this process is
    killed meanwhile, the next call removes the rest."""
    import shutil  # noqa: PLC0415

    called = False
    for name in os.listdir(around):
        descriptor = lock_folder(os.path.join(around, name)) if name.startswith(prefix) else -1
        if descriptor < 0:
            continue  # its process lives
        try:
            if not called:
                before()
                called = True
            shutil.rmtree(os.path.join(around, name), ignore_errors=True)
        finally:
            os.close(descriptor)
