"""Makes cases of hunks: for each kind as many as wanted, from all repositories in turn."""

import itertools
import random
from collections.abc import Iterator, Sequence

import msgspec

from bench.edit.case import Case, Expectation, encoded, spliced
from bench.edit.hunk import Draft, Hunk, UnfitError
from bench.edit.kinds import KINDS, Kind


def cases_of(repositories: Sequence[Sequence[Hunk]], count: int, seed: int) -> Iterator[Case]:
    """So many cases of each kind, or fewer; a kind has the same ones whatever other kinds there are."""
    for name, kind in KINDS.items():
        chance = random.Random(f"{seed} {name}")
        made = itertools.islice(_made(kind, _in_turn(repositories, chance), chance), count)
        for number, (hunk, draft) in enumerate(made):
            yield _case(f"{name}-{number:03d}", name, hunk, draft)


def with_strangers(hunks: Sequence[Hunk], chance: random.Random) -> list[Hunk]:
    """Each hunk with one of another file in the same language, where there is one."""
    return [_with_stranger(hunk, hunks, chance) for hunk in hunks]


def _with_stranger(hunk: Hunk, hunks: Sequence[Hunk], chance: random.Random) -> Hunk:
    others = [other for other in hunks if other.language == hunk.language and other.path != hunk.path]
    return msgspec.structs.replace(hunk, stranger=chance.choice(others).steps) if others else hunk


def _in_turn(repositories: Sequence[Sequence[Hunk]], chance: random.Random) -> Iterator[Hunk]:
    """All hunks, shuffled, one of each repository after the other."""
    shuffled = [chance.sample(hunks, len(hunks)) for hunks in repositories]
    for row in itertools.zip_longest(*shuffled):
        yield from (hunk for hunk in row if hunk is not None)


def _made(kind: Kind, hunks: Iterator[Hunk], chance: random.Random) -> Iterator[tuple[Hunk, Draft]]:
    for hunk in hunks:
        try:
            draft = kind(hunk, chance)
        except UnfitError:
            continue
        if _is_sound(draft):
            yield hunk, draft


def _is_sound(draft: Draft) -> bool:
    """Whether it asks for a change, and for what it says: an old text as it is in the file would need no tolerance."""
    if draft.old == draft.new or not draft.old.strip():
        return False
    if not draft.exact and draft.old in draft.file.replace("\r\n", "\n"):
        return False
    before = encoded(draft.file, draft.encoding)
    return all(encoded(spliced(draft.file, splices), draft.encoding) != before for splices in draft.right)


def _case(name: str, kind: str, hunk: Hunk, draft: Draft) -> Case:
    return Case(
        id=name,
        kind=kind,
        path=hunk.path,
        file=draft.file,
        old=draft.old,
        new=draft.new,
        expect=Expectation("apply" if draft.right else "refuse", draft.right),
        encoding=draft.encoding,
        replace_all=draft.replace_all,
        repository=hunk.repository,
        language=hunk.language,
        commit=hunk.commit,
    )
