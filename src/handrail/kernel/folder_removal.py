"""Removes folders, however deep their content. Loaded by a bare interpreter."""

import os

OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def empty_folder(folder: int) -> None:
    """Remove everything in a folder. Works with descriptors and without links, so no other process can redirect it.

    Folders two levels down are moved up first. So the depth of a tree needs no stack and no long paths.
    """
    while entries := _list_entries(folder):
        for name, is_folder in entries:
            if is_folder:
                _remove_subfolder(folder, name)
            else:
                os.unlink(name, dir_fd=folder)


def _remove_subfolder(folder: int, name: str) -> None:
    os.chmod(name, 0o700, dir_fd=folder)
    inner = os.open(name, OPEN_FOLDER, dir_fd=folder)
    try:
        for inside, is_folder in _list_entries(inner):
            if is_folder:
                os.chmod(inside, 0o700, dir_fd=inner)  # a folder must be writable to be moved
                os.rename(inside, os.urandom(16).hex(), src_dir_fd=inner, dst_dir_fd=folder)
            else:
                os.unlink(inside, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)


def _list_entries(folder: int) -> list[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
