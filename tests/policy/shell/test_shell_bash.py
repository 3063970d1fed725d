"""The lexer against the real bash: whatever it accepts, bash takes to be the same words for the same programs."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product
from pathlib import Path

import pytest
from bash_model import Outcome, Told, outcome
from bash_runs import FUNCTION, Case, Ran, run_all
from odd_commands import odd_commands

from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script, to_bash

ACCEPTED = 200_000
AT_ONCE = 1_000
SIGNS = "a2 &|;<>'\"\n\\#~=*[]{}!-$.`()%:@"


@pytest.mark.deep
def test_bash_does_with_the_text_and_with_what_is_written_for_it_what_the_lexer_read(
    tmp_path: Path, note: Callable[[str], None], deep: bool
) -> None:
    texts = islice(accepted(odd_commands(20_260_801)), ACCEPTED if deep else 800)
    number = compare_all(texts, tmp_path)
    note(f"{number} accepted texts, each as it is and as it is written anew")


@pytest.mark.deep
def test_so_it_is_with_every_short_text(tmp_path: Path, note: Callable[[str], None], deep: bool) -> None:
    lengths = range(5) if deep else range(3)
    texts = (f"a{''.join(signs)}" for length in lengths for signs in product(SIGNS, repeat=length))
    number = compare_all(accepted(texts), tmp_path)
    note(f"{number} accepted texts of up to {len(lengths)} signs, each as it is and as it is written anew")


def compare_all(texts: Iterator[tuple[str, Script]], scratch: Path) -> int:
    number = 0
    while some := list(islice(texts, AT_ONCE)):
        compare(some, scratch / str(number))
        number += len(some)
    return number


def accepted(texts: Iterable[str]) -> Iterator[tuple[str, Script]]:
    seen: set[str] = set()
    for text in texts:
        script = lex(text)
        if text not in seen and isinstance(script, Script) and stays_here(script):
            seen.add(text)
            yield text, script


def stays_here(script: Script) -> bool:
    """Only files of the case's own folder are written to, and nothing real is run."""
    programs = [command.words[0].text for command in script.commands]
    if any("/" in name and not FUNCTION.fullmatch(name) for name in programs):
        return False
    targets = [one.target.text for command in script.commands for one in command.redirections if one.target]
    return all(name == "/dev/null" or ("/" not in name and name not in {".", ".."}) for name in targets)


def compare(read: list[tuple[str, Script]], scratch: Path) -> None:
    cases: list[Case] = []
    for text, script in read:
        programs = frozenset(command.words[0].text for command in script.commands)
        cases += [Case(one, programs, inputs(script)) for one in (text, to_bash(script))]
    for number, ran in enumerate(run_all(cases, scratch)):
        script = read[number // 2][1]
        wrong = difference(outcome(script, inputs(script)), ran, as_written=number % 2 == 0)
        assert wrong is None, (cases[number].text, wrong)
    shutil.rmtree(scratch)


def inputs(script: Script) -> dict[str, bytes]:
    read = [one for command in script.commands for one in command.redirections if one.operator == "<"]
    return {one.target.text: b"i" for one in read if one.target and one.target.text != "/dev/null"}


def difference(expected: Outcome, ran: Ran, *, as_written: bool) -> object:
    """What bash did otherwise; None if nothing."""
    told = list(ran.told)
    for pipeline in expected.pipelines:
        part, told = told[: len(pipeline)], told[len(pipeline) :]
        if alike(part, expected, as_written) != alike(pipeline, expected, as_written):
            return expected.pipelines, ran.told
    if told:
        return expected.pipelines, ran.told
    model = (expected.files, sorted(expected.streams["out"]), sorted(expected.streams["err"]))
    real = (ran.files, sorted(ran.out), sorted(ran.err))
    return None if model == real or expected.is_racy else (model, real)


def alike(pipeline: list[Told], expected: Outcome, as_written: bool) -> list[Told]:
    """In an order that does not depend on which program was first; without the `./` that is put before patterns."""
    if expected.is_racy:
        pipeline = [told._replace(input="") for told in pipeline]
    return sorted(map(bare, pipeline) if as_written else pipeline)


def bare(told: Told) -> Told:
    return told._replace(words=tuple(word[2:] if word[:3] in {"./*", "./?", "./["} else word for word in told.words))
