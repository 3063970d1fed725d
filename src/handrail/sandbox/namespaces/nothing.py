"""The empty file and the empty folder that lie over what a command must not see."""

import os
import stat


def make_empty_placeholders(state: str) -> str:
    """The folder in the state folder that has them, as `file` and `folder`; made where it is not there."""
    place = os.path.join(state, "nothing")
    if not _is_there(place):
        _make(place)
    if not _is_there(place):
        raise FileExistsError(f"{place} holds something; remove it")
    return place


def _is_there(place: str) -> bool:
    return _is_empty_file(f"{place}/file") and _is_empty_folder(f"{place}/folder")


def _make(place: str) -> None:
    os.makedirs(f"{place}/folder", mode=0o700, exist_ok=True)
    # Written anew and put in place at once: another command may be starting with the one that is there.
    new = f"{place}/file.{os.urandom(6).hex()}"
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444))
    os.replace(new, f"{place}/file")


def _is_empty_file(path: str) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == 0


def _is_empty_folder(path: str) -> bool:
    try:
        return not os.path.islink(path) and not os.listdir(path)
    except OSError:
        return False
