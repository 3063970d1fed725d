"""Runs many commands in one real bash and tells what came of each. No program is started: all of them are functions."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bash_model import Told

BASH = shutil.which("bash") or "/bin/bash"

DRIVER = r"""
set -f
trap '' PIPE
told() {
  builtin local input
  IFS= builtin read -r -d '' input
  builtin printf '%s\0' "$number" "$#" "$@" "$input" >&9
  builtin printf o 2>/dev/null
  builtin printf e >&2 2>/dev/null
  builtin return $(($# % 2))
}
command_not_found_handle() { told "$@"; }
while IFS= builtin read -r -d '' -u 7 name; do
  builtin eval "function $name { told $name \"\$@\"; }"
done
number=0
while IFS= builtin read -r -d '' -u 8 folder && IFS= builtin read -r -d '' -u 8 text; do
  builtin cd "$folder"
  builtin eval "$text" </dev/null >>"../$number.out" 2>>"../$number.err"
  number=$((number + 1))
done
"""
FUNCTION = re.compile(r"[A-Za-z0-9_./:][A-Za-z0-9_.:+@,/^~#-]*|\[")
"""Programs that can be functions; another one is caught when bash does not find it, unless it is a path."""


class Case(NamedTuple):
    """A command, its programs, and the files that it finds in its folder."""

    text: str
    programs: frozenset[str]
    files: dict[str, bytes]


class Ran(NamedTuple):
    """What bash did."""

    told: list[Told]
    files: dict[str, bytes]
    out: bytes
    err: bytes


def run_all(cases: Sequence[Case], scratch: Path) -> list[Ran]:
    """Each in a folder of its own, in one bash."""
    scratch.mkdir()
    for number, case in enumerate(cases):
        folder = scratch / f"in{number}"
        folder.mkdir()
        for name, data in case.files.items():
            (folder / name).write_bytes(data)
    programs = {name for case in cases for name in case.programs if FUNCTION.fullmatch(name)} - {"builtin", "told"}
    pieces = [part for number, case in enumerate(cases) for part in (str(scratch / f"in{number}"), case.text)]
    log = _bash(scratch, sorted(programs), pieces)
    told = _entries(log, len(cases))
    return [_ran(scratch, number, told[number]) for number in range(len(cases))]


def _bash(scratch: Path, programs: list[str], pieces: list[str]) -> str:
    for name, items in (("names", programs), ("cases", pieces)):
        (scratch / name).write_bytes(b"".join(item.encode() + b"\0" for item in items))
    (scratch / "driver").write_text(DRIVER)
    run = 'exec 7<"$0/names" 8<"$0/cases" 9>>"$0/log"; . "$0/driver"'
    done = subprocess.run(
        [BASH, "--noprofile", "--norc", "-c", run, str(scratch)],
        env={"PATH": "/nonexistent", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    assert not done.stderr, done.stderr
    return (scratch / "log").read_bytes().decode()


def _entries(log: str, count: int) -> list[list[Told]]:
    found: list[list[Told]] = [[] for _ in range(count)]
    items = log.split("\0")
    place = 0
    while place < len(items) - 1:
        words = int(items[place + 1])
        end = place + 2 + words
        found[int(items[place])].append(Told(tuple(items[place + 2 : end]), items[end]))
        place = end + 1
    return found


def _ran(scratch: Path, number: int, told: list[Told]) -> Ran:
    files = {name: (scratch / f"in{number}" / name).read_bytes() for name in os.listdir(scratch / f"in{number}")}
    out, err = ((scratch / f"{number}.{kind}").read_bytes() for kind in ("out", "err"))
    return Ran(told, files, out, err)
