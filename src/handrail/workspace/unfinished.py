"""What a write that was cut off left, under a name that says what it is."""

import contextlib
import os

from handrail.workspace.current import HASH_DIGITS, hash_link, read_file_snapshot


def remove_unfinished(folder: int, temporary: str) -> None:
    """Removes what a write that was cut off left: its own file, or the one it took the place of and had seen.

    Anything else was put there by another program just before the swap. It is the only copy, so it stays.
    """
    for found in _names(folder):
        known = found.removeprefix(f"{temporary}-").split("-")
        if found == temporary or (found.startswith(f"{temporary}-") and _starts(folder, found, known)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(found, dir_fd=folder)


def _names(folder: int) -> list[str]:
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.listdir(descriptor)
    finally:
        os.close(descriptor)


def _starts(folder: int, name: str, known: list[str]) -> bool:
    try:
        now = read_file_snapshot(folder, name, 0)
        return now is not None and now.hash[:HASH_DIGITS] in known
    except OSError:
        return (hash_link(folder, name) or "")[:HASH_DIGITS] in known
