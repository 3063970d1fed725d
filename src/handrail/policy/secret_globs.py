"""The credential names of policy as globs: never broader than `protection`, so that nothing else is passed over."""

from collections.abc import Iterable, Iterator

from handrail.policy.name_tables import (
    CREDENTIAL_ENDINGS,
    CREDENTIAL_FILES,
    CREDENTIAL_FOLDERS,
    PLAIN_ENDINGS,
    PLAIN_FILES,
    PUBLIC_ENDINGS,
    TEMPLATES,
    VARIANTS,
)

_MAX_ENDING_CHARS = 3
"""Characters at the end of a name that tell a template; names alike in more than these are left to `protection`."""


def list_secret_globs() -> tuple[str, ...]:
    """Globs of names, to be compared in any case, that `protection` calls credentials.

    What a glob cannot say well (dots or spaces at the end, letters that only case-folding makes equal, names that
    nearly are a template's) is left out: who uses these globs asks `protection` as well. They are few, since a search
    program builds them anew each time it starts.
    """
    exact = [*sorted(CREDENTIAL_FOLDERS | CREDENTIAL_FILES | PLAIN_FILES)]
    endings: list[str] = []
    for ending in (*CREDENTIAL_ENDINGS, *PLAIN_ENDINGS):
        public = [end.removesuffix(ending) for end in PUBLIC_ENDINGS if end.endswith(ending)]
        pieces = list(_other_endings(public))
        exact += [f"{suffix}{ending}" for suffix, _ in pieces]
        endings += [f"[!{before}]{suffix}{ending}" for suffix, before in pieces] or [ending]
    # The last character must not be one that `protection` strips: it would then be about another name.
    environments = [
        f"[!{before}{'' if suffix else '. '}]{suffix}" for suffix, before in _other_endings(f".{w}" for w in TEMPLATES)
    ]
    return _either("", exact), _either("*", endings), _either(f"{{{','.join(VARIANTS)}}}*", environments)


def _either(start: str, ends: list[str]) -> str:
    return f"{start}{{{','.join(ends)}}}"


def _other_endings(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """How texts end that end in none of the words: a piece, and the characters that do not stand before it."""
    before: dict[str, set[str]] = {}
    for word in words:
        for start in range(max(0, len(word) - _MAX_ENDING_CHARS - 1), len(word)):
            before.setdefault(word[start + 1 :], set()).add(word[start])
    for suffix in sorted(before):
        yield suffix, "".join(sorted(before[suffix]))
