"""The tables of git compared with git itself: a proven command changes nothing."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.policy.programs.support import read

from handrail.policy.programs import git
from handrail.policy.programs.options import parse_path_uses
from handrail.policy.programs.spec import ProgramSpec
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script, Word

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

_OUT = "OUT"
_WISH = f"--output={_OUT}"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    (folder / "src").mkdir()
    (folder / "src" / "a.py").write_text("a = 1\n")
    _git(folder, "init", "-q", "-b", "main")
    for number in range(2):
        (folder / "src" / "a.py").write_text(f"a = {number}\n")
        _git(folder, "add", ".")
        _git(folder, "-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "-m", f"change {number}")
    for hook in ("pre-commit", "post-checkout", "reference-transaction"):
        file = folder / ".git" / "hooks" / hook
        file.write_text("#!/bin/sh\ntouch HOOK\n")
        file.chmod(0o755)
    return folder


def _git(folder: Path, *words: str) -> None:
    home = str(folder.parent)
    environment = {
        "PATH": os.environ["PATH"], "HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat", "GIT_CEILING_DIRECTORIES": home,
    }  # fmt: skip
    subprocess.run(
        ["git", *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )


def _state(folder: Path) -> dict[str, str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _options(table: ProgramSpec) -> list[str]:
    short = [f"-{letter}" for letter in table.flags + table.values + table.attached]
    names = [f"--{name.rstrip('=')}" for name in f"{table.long_flags} {table.long_values}".split()]
    return [*short, *names, *table.paths]


@pytest.mark.parametrize("table", git.TABLES, ids=lambda table: table.name)
def test_what_a_table_accepts_changes_nothing(table: ProgramSpec, repository: Path) -> None:
    before = _state(repository)
    for example in table.match:
        script = lex(example)
        assert isinstance(script, Script)
        _git(repository, *(word.text for word in script.commands[0].words[1:]))
    assert _state(repository) == before


def _obeyed(table: ProgramSpec, options: list[str], repository: Path) -> list[list[str]]:
    """Commands that the table accepts and that make git write a file.

    `--format --output=x` is one option with a value to who is wrong about --format, and two options to git; of
    `--decorate-refs -- --output=x` git takes `--` for the value.
    """
    found: list[list[str]] = []
    for option in options:
        for words in ([option, _WISH], [option, "--", _WISH], ["HEAD", option, "--", _WISH]):
            if not isinstance(parse_path_uses(table, tuple(map(Word, words))), str):
                _git(repository, *table.name.split()[1:], *words)
                if (repository / _OUT).exists():
                    (repository / _OUT).unlink()
                    found.append(words)
    return found


@pytest.mark.parametrize("table", git.TABLES, ids=lambda table: table.name)
def test_no_option_of_a_table_leaves_git_a_word_that_it_obeys(table: ProgramSpec, repository: Path, deep: bool) -> None:
    options = _options(table)
    assert _obeyed(table, options if deep else options[len(table.name) % 10 :: 10], repository) == []


@pytest.mark.parametrize(
    "command",
    [
        "git log --format --output=x", "git log -U --output=x", "git log --max-parents --output=x",
        "git log --decorate-refs -- --output=x", "git show HEAD --decorate-refs-exclude -- --output=x",
        "git shortlog --encoding -- --output=x", "git shortlog --since-as-filter -- --output=x",
        "git blame --since -- --output=x", "git blame --encoding -- --output=x", "git shortlog --committer --output=x",
    ],
)  # fmt: skip
def test_options_that_were_once_seen_to_do_so_ask(command: str) -> None:
    assert read(command).effect == "unproven"


def test_git_does_obey_such_a_word(repository: Path) -> None:
    _git(repository, "log", "--format", _WISH)
    written = (repository / _OUT).exists()
    (repository / _OUT).unlink(missing_ok=True)
    assert written


@pytest.mark.parametrize(
    "words",
    [
        ["branch", "--contains", "--", "-D", "main"],
        ["branch", "--list", "new"],
        ["branch", "--merged", "main", "new"],
        ["tag", "--points-at", "HEAD", "v1"],
        ["tag", "-l", "--contains", "HEAD", "v1"],
        ["config", "a.b"],
        ["config", "--get", "a.b", "c"],
        ["config", "get", "a.b"],
        ["reflog", "HEAD"],
    ],
)
def test_forms_that_only_look_create_nothing(words: list[str], repository: Path) -> None:
    before = _state(repository)
    _git(repository, *words)
    assert _state(repository) == before
