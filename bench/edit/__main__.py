"""python -m bench.edit make | score: makes cases of edits, and scores handrail's edit on them."""

import argparse
import itertools
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from bench.edit.case import Case, UnusableError, read_cases, write_cases
from bench.edit.editor import workshop
from bench.edit.history import harvest
from bench.edit.hunk import Hunk
from bench.edit.languages import LANGUAGES
from bench.edit.maker import cases_of, with_strangers
from bench.edit.report import as_json, shown, table
from bench.edit.score import Verdict, score_of, verdicts


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return make(options) if options.command == "make" else score(options)
    except UnusableError as error:
        _say(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        _say(f"{error.filename} cannot be used: {error.strerror}")
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/edit-cases", description="How often are edits right?")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="make cases from the history of git repositories")
    make.add_argument("cases", type=Path, help="file to write; it will hold texts of those repositories")
    make.add_argument(
        "repositories",
        nargs="+",
        type=_repository,
        metavar="LANGUAGE:GITDIR",
        help=f"a bare repository or the .git of a checkout, and one of: {', '.join(LANGUAGES)}",
    )
    make.add_argument("--per-kind", type=int, default=20, metavar="N", help="cases of each kind, at most (20)")
    make.add_argument("--hunks", type=int, default=400, metavar="N", help="hunks to take from each repository (400)")
    make.add_argument("--seed", type=int, default=1, help="another one gives other cases (1)")
    score = commands.add_parser("score", help="run them; exit 1 when a file was damaged or too few are correct")
    score.add_argument("cases", type=Path)
    score.add_argument("--kind", action="append", default=[], metavar="NAME", help="only this kind; may be repeated")
    score.add_argument("--show", type=int, default=0, metavar="N", help="print that many that did not come out well")
    score.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    score.add_argument("--at-least", type=float, default=0.0, metavar="PERCENT", help="of the positives, correct")
    return parser


def _repository(text: str) -> tuple[str, str]:
    language, _, folder = text.partition(":")
    if language not in LANGUAGES or not folder or not Path(folder).is_dir():
        known = ", ".join(LANGUAGES)
        raise argparse.ArgumentTypeError(f"{text!r} is not LANGUAGE:GITDIR with a folder and one of {known}")
    return language, folder


def make(options: argparse.Namespace) -> int:
    repositories = list(_harvested(options))
    if not any(repositories):
        _say("no hunk to make cases of: the repositories need a history of modified files in their language")
        return 1
    strangers = random.Random(options.seed)
    everything = with_strangers([hunk for hunks in repositories for hunk in hunks], strangers)
    parts = iter(everything)
    repositories = [list(itertools.islice(parts, len(hunks))) for hunks in repositories]
    made = list(cases_of(repositories, options.per_kind, options.seed))
    for kind, count in Counter(case.kind for case in made).items():
        _say(f"{kind}: {count}")
    _say(f"{write_cases(options.cases, made)} cases in {options.cases}")
    return 0


def _harvested(options: argparse.Namespace) -> Iterator[list[Hunk]]:
    for language, folder in cast("list[tuple[str, str]]", options.repositories):
        hunks = harvest(folder, language, options.hunks, random.Random(f"{options.seed} {language}"))
        _say(f"{folder}: {len(hunks)} hunks")
        yield hunks


def score(options: argparse.Namespace) -> int:
    kinds = cast("list[str]", options.kind)
    cases = [case for case in read_cases(options.cases) if not kinds or case.kind in kinds]
    if not cases:
        _say(f"no case in {options.cases}" + (f" of kind {', '.join(kinds)}" if kinds else ""))
        return 1
    found = _run(cases)
    for verdict in itertools.islice((one for one in found if one.outcome not in {"correct", "kept"}), options.show):
        print(shown(verdict), file=sys.stderr if options.json else sys.stdout)
    result = score_of(found)
    print(as_json(result) if options.json else table(result))
    return 0 if result.passes(options.at_least) else 1


def _run(cases: list[Case]) -> list[Verdict]:
    with workshop() as (editor, folder):
        return list(verdicts(cases, editor, folder))


def _say(text: str) -> None:
    print(f"edit-cases: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
