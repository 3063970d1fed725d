"""Finds the other names (hard links) that files have in a root."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping

FileId = tuple[int, int]
"""What tells a file apart: its device and its number."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def list_hard_links(root: str, wanted: Mapping[FileId, int]) -> Iterator[tuple[str, FileId]]:
    """Every name in a root of the files that are wanted, below the root. They come with how many names they have: when
    all of them are found, nobody looks further."""
    left = Counter(wanted)
    waiting = [""]
    numbers = {number for _, number in wanted}
    while waiting and left:
        folder = waiting.pop()
        for name, number, is_folder in _entries(root, folder):
            path = f"{folder}/{name}" if folder else name
            if is_folder:
                waiting.append(path)
            elif number in numbers:
                file = _file_at(root, path)
                if file is not None and file in left:
                    yield path, file
                    left[file] -= 1
                    left += Counter()


def _entries(root: str, folder: str) -> list[tuple[str, int, bool]]:
    """What is in a folder; nothing where nobody may look, since nobody can write through such a name either."""
    try:
        descriptor = os.open(os.path.join(root, folder), _FOLDER)
    except OSError:
        return []
    try:
        with os.scandir(descriptor) as entries:
            return [(entry.name, entry.inode(), entry.is_dir(follow_symlinks=False)) for entry in entries]
    finally:
        os.close(descriptor)


def _file_at(root: str, path: str) -> FileId | None:
    try:
        status = os.lstat(os.path.join(root, path))
    except OSError:
        return None
    return status.st_dev, status.st_ino
