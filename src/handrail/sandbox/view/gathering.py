"""Hides folders as a whole where they hold very many hidden files: bubblewrap's time grows with the square of these."""

from collections import Counter

import msgspec

from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.view.mounts import is_within

_MAX_HIDDEN_FILES = 50


def collapse_hidden(profile: SandboxProfile, most: int = _MAX_HIDDEN_FILES) -> SandboxProfile:
    """The same where there are few. Else those folders are hidden that hold most of them, until few are left; never one
    that holds a root, the folder the command starts in, or something that it is to see."""
    files = profile.hidden_files
    if len(files) <= most:
        return profile
    needed = (*profile.roots, *profile.read_only_paths, profile.cwd)
    folders: list[str] = []
    for folder, _ in Counter(_folder_of(path) for path in files).most_common():
        if len(files) <= most:
            break
        if not any(is_within(path, folder) for path in needed):
            folders.append(folder)
            files = tuple(path for path in files if not is_within(path, folder))
    hidden = (*(path for path in profile.hidden_folders if not _is_in_any(path, folders)), *folders)
    return msgspec.structs.replace(profile, hidden_files=files, hidden_folders=hidden)


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _is_in_any(path: str, folders: list[str]) -> bool:
    return any(is_within(path, folder) for folder in folders)
