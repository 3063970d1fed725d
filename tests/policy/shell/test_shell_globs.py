"""Patterns, expanded by the real bash in a folder whose files have hostile names."""

import fnmatch
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script, Unparsed, Word, to_bash

NAMES = (
    *(
        "-rf",
        "--help",
        "-",
        "--",
        "-n.py",
        ".env",
        ".e",
        "..x",
        ".git",
        "a.py",
        "b.py",
        "é.py",
        "漢",
        "a b.py",
        " ",
        " x",
    ),
    *(
        "new\nline.py",
        "tab\t.py",
        "quo'te.py",
        'dou"ble.py',
        "$HOME",
        "$(touch pwned).py",
        "`id`.py",
        "a;b",
        "x&y",
        "a|b",
    ),
    *(
        "*",
        "?",
        "[a]",
        "[",
        "]",
        "\\",
        "back\\slash.py",
        "{a,b}",
        "~",
        "~root",
        "#x",
        "!x",
        "=x",
        "+x",
        "(x)",
        "<x",
        ">x",
    ),
)
FOLDERS = ("src", "-dir", ".hidden", "sub dir")
PATTERNS = (
    *(
        "*",
        "?",
        "*.py",
        "a*",
        "a?py",
        "[a-c]*",
        "[!a]*",
        "[^a]*",
        "*[b]*",
        "./*",
        "./[!-]*",
        "*y",
        "??",
        "[a]",
        "[.]*",
        "[-]*",
    ),
    *(
        "src/*",
        "src/*.py",
        "*/*",
        "*/*.py",
        "s*/a*",
        "'sub dir'/*",
        "'*'",
        "\\**",
        "'['*",
        "'$'*",
        "\\\\*",
        "\\?*",
        "a' '*",
    ),
    *("-*", "--*", "+*", "--x=*", "x[", "]x*", "a[b*", "nothing*", "no[t]hing"),
    *("=*", "!*", "\\#*", "\\~*", "\\<*", "'{a'*", "b*.py", "*\\ *", "*\\'*", '*\\"*', "***", "*?*", "**/*.py"),
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    for folder in (".", *FOLDERS):
        (tmp_path / folder).mkdir(exist_ok=True)
        for name in NAMES:
            (tmp_path / folder / name).touch()
    return tmp_path


@pytest.mark.parametrize("pattern", PATTERNS)
def test_only_names_that_match_get_through_and_none_is_an_option_or_hidden(hostile: Path, pattern: str) -> None:
    script = lex(f"printf '%s\\0' x {pattern} y")
    assert isinstance(script, Script)
    word = script.commands[0].words[3]
    got = expanded(script, hostile)
    if got == [word.text]:
        return
    assert word.globs
    assert sorted(got) == sorted(matching(word, hostile))
    for name in got:
        assert name[0] not in "-+"
        assert not any(part.startswith(".") for part in name.removeprefix("./").split("/"))


def test_all_patterns_in_one_command_match_much_and_run_nothing(hostile: Path) -> None:
    before = sorted(os.listdir(hostile))
    script = lex(f"printf '%s\\0' x {' '.join(PATTERNS)} y")
    assert isinstance(script, Script)
    assert len(expanded(script, hostile)) > 500
    assert sorted(os.listdir(hostile)) == before


@pytest.mark.parametrize("pattern", [".*", ".e*", "src/.*", "*/.e*", "*/../*", "[[:alpha:]]*", "~*", "{a*,b}"])
def test_patterns_for_hidden_files_and_ways_up_are_refused(pattern: str) -> None:
    assert isinstance(lex(f"ls {pattern}"), Unparsed)


def expanded(script: Script, folder: Path) -> list[str]:
    """What bash makes of the word between x and y."""
    command = [shutil.which("bash") or "/bin/bash", "--noprofile", "--norc", "-c", to_bash(script)]
    done = subprocess.run(command, cwd=folder, env={"LC_ALL": "C.UTF-8"}, capture_output=True, check=True)
    words = done.stdout.decode().split("\0")
    assert (words[0], words[-2:]) == ("x", ["y", ""])
    return words[1:-2]


def matching(word: Word, folder: Path) -> list[str]:
    """The names that match, by Python: `*` and `?` stand for no slash and for no dot at the start."""
    prefix = "./" if word.text.startswith("./") else ""
    parts = glob_parts(word, len(prefix))
    found = [""]
    for number, part in enumerate(parts):
        found = [
            f"{above}{name}{'/' if number < len(parts) - 1 else ''}"
            for above in found
            if (folder / above).is_dir()
            for name in os.listdir(folder / above)
            if not name.startswith(".") and fnmatch.fnmatchcase(name, part)
        ]
    return [prefix + name for name in found if (folder / name).exists()]


def glob_parts(word: Word, start: int) -> list[str]:
    """The word as patterns for fnmatch, a folder each."""
    parts, inside = [""], False
    for place in range(start, len(word.text)):
        sign = word.text[place]
        is_open = place in word.globs
        if sign == "/":
            parts.append("")
            continue
        if is_open or inside:
            parts[-1] += "!" if sign == "^" and inside else sign
            inside = (inside or sign == "[") and not (is_open and sign == "]")
        else:
            parts[-1] += f"[{sign}]" if sign in "*?[" else sign
    return parts
