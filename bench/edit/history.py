"""Takes hunks from the history of a git repository, the same ones for the same seed."""

import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from typing import cast

from bench.edit.case import UnusableError
from bench.edit.hunk import Hunk, Step, Tag
from bench.edit.languages import LANGUAGES

_COMMITS = 4_000
_DIFF = 400_000
"""Characters of a diff that is worth taking apart."""
_FILES = 6
"""Files of a commit that are looked at."""
_FROM_A_FILE = 3
_FROM_A_DIFF = 2
_SMALL, _USUAL, _LARGE = 800, 22_000, 58_000
"""Characters of a file; of those larger than usual every fifth is taken."""
_HEADER = re.compile(r"-(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")


def harvest(repository: str, language: str, count: int, chance: random.Random) -> list[Hunk]:
    """So many hunks of files in a language, or fewer; UnusableError where there is no repository."""
    if _git(repository, "rev-parse", "--git-dir") is None:
        raise UnusableError(f"{repository} is no git repository; name a bare one, or the .git of a checkout")
    files = LANGUAGES[language].files
    listed = _git(repository, "log", "--no-merges", f"-n{_COMMITS}", "--format=%H", "HEAD", "--", files) or ""
    commits = listed.split()
    chance.shuffle(commits)
    hunks: list[Hunk] = []
    often: Counter[str] = Counter()
    for commit in commits:
        for hunk in _hunks_of_commit(repository, language, commit, chance):
            if often[hunk.path] < _FROM_A_FILE:
                often[hunk.path] += 1
                hunks.append(hunk)
        if len(hunks) >= count:
            break
    return hunks[:count]


def _hunks_of_commit(repository: str, language: str, commit: str, chance: random.Random) -> Iterator[Hunk]:
    files = LANGUAGES[language].files
    options = ("-p", "-U9", "--no-commit-id", "--no-color", "--no-ext-diff", "--diff-filter=M", "-r")
    diff = _git(repository, "diff-tree", *options, commit, "--", files)
    if not diff or len(diff) > _DIFF:
        return
    for part in diff.split("\ndiff --git ")[:_FILES]:
        path = _path_of(part)
        if path is None:
            continue
        bodies = list(filter(None, map(_body, re.split(r"^@@ ", part, flags=re.M)[1:])))
        before = _git(repository, "cat-file", "blob", f"{commit}^:{path}") if bodies else None
        if before is None or not _usable(before, chance):
            continue
        chance.shuffle(bodies)
        for first, steps in bodies[:_FROM_A_DIFF]:
            yield Hunk(repository, language, path, commit[:12], before, first, steps)


def _path_of(diff: str) -> str | None:
    found = re.search(r"^--- a/(.+)$", diff, re.M)
    path = found[1].rstrip("\t") if found else ""
    return None if not path or "vendor/" in path or "generated" in path else path


def _body(hunk: str) -> tuple[int, tuple[Step, ...]] | None:
    """The number of the first line, from 0, and the steps; None where a hunk is too large or no plain change."""
    header = _HEADER.match(hunk)
    if not header or "\\ No newline" in hunk:
        return None
    rows = hunk.split("\n")[1:]
    if rows and not rows[-1]:
        rows.pop()
    if any(row and row[0] not in " -+" for row in rows):
        return None
    steps = tuple(Step(cast("Tag", row[:1] or " "), row[1:]) for row in rows)
    return (int(header[1]) - 1, steps) if _is_small(steps) else None


def _is_small(steps: tuple[Step, ...]) -> bool:
    changed = [number for number, step in enumerate(steps) if step.tag != " "]
    removed = sum(step.tag == "-" for step in steps)
    return 1 <= removed <= 15 and len(changed) <= 30 and changed[-1] - changed[0] <= 25


def _usable(text: str, chance: random.Random) -> bool:
    if not _SMALL <= len(text) <= _LARGE or "\r" in text or "\0" in text:
        return False
    return len(text) <= _USUAL or chance.random() < 0.2


def _git(repository: str, *arguments: str) -> str | None:
    """What git prints, where it is text."""
    command = ["git", "--git-dir", repository, *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    try:
        return None if done.returncode else done.stdout.decode()
    except UnicodeDecodeError:
        return None
