"""A small git repository with a history that every kind of case can be made of."""

import os
import random
import subprocess
from pathlib import Path

import pytest
from bench.edit.case import Case
from bench.edit.history import harvest
from bench.edit.hunk import Hunk
from bench.edit.maker import cases_of, with_strangers

_FUNCTION = '''
def {name}_of_{noun}({noun}, rate):
    """The {name} of a {noun} - as it is in the shop's own book."""
    if {noun}.closed:
        raise ValueError("no {name}")

    book = {noun}.open_{name}(rate << 1)
    amount = book.{name} + {noun}.{name} * rate
    label = "{name}:{escape}it's {noun}"
    for {noun}_entry in book.entries:
        report_entry({noun}_entry)
        amount += {noun}_entry.{name}

    book.close_{name}(
        label,
    )
    return amount + rate * {noun}.rate

'''
_NOUNS = ("order", "ticket", "voyage", "harvest", "library", "orchard")
_NAMES = ("price", "weight", "colour", "length", "season", "width")
_CHANGES = (
    ("return amount + rate", "return 2 * amount + rate"),
    ("    amount = book.", "    amount = 2 * book."),
    ('    label = "', '    check_entries(book)\n    label = "new '),
)


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three commits over six files: each changes a line in a function of each file."""
    folder = tmp_path_factory.mktemp("history")
    texts = {noun: _module(noun) for noun in _NOUNS}
    _git(folder, "init", "--quiet")
    _commit(folder, texts)
    for number, (old, new) in enumerate(_CHANGES):
        texts = {noun: _changed(text, _NAMES[2 * number], old, new) for noun, text in texts.items()}
        _commit(folder, texts)
    return folder


def _module(noun: str) -> str:
    escapes = (" ", " ", r"\n", " ", " ", " ")
    pairs = zip(_NAMES, escapes, strict=True)
    return f"import {noun}\n" + "".join(_FUNCTION.format(name=name, noun=noun, escape=escape) for name, escape in pairs)


def _changed(text: str, name: str, old: str, new: str) -> str:
    at = text.index(old, text.index(f"def {name}_"))
    return text[:at] + new + text[at + len(old) :]


def _commit(folder: Path, texts: dict[str, str]) -> None:
    for noun, text in texts.items():
        (folder / f"{noun}.py").write_text(text)
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "--message=a change")


def _git(folder: Path, *arguments: str) -> None:
    person = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *arguments], cwd=folder, check=True, env={**os.environ, **person, **alone})


@pytest.fixture(scope="session")
def hunks(repository: Path) -> list[Hunk]:
    return with_strangers(harvest(str(repository / ".git"), "python", 100, random.Random(1)), random.Random(1))


@pytest.fixture(scope="session")
def cases(hunks: list[Hunk]) -> list[Case]:
    return list(cases_of([hunks], 2, seed=1))
