"""The credential names of policy as globs: never broader than `protection`, so that nothing else is passed over."""

from collections.abc import Iterable, Iterator

from handrail.policy.names import (
    CREDENTIAL_ENDINGS,
    CREDENTIAL_FILES,
    CREDENTIAL_FOLDERS,
    PUBLIC_ENDINGS,
    TEMPLATES,
)


def secret_globs() -> tuple[str, ...]:
    """Globs of names, in any case, that `protection` calls credentials.

    Spellings that a glob cannot describe (dots or spaces at the end, letters that only case-folding makes equal) are
    left out: who uses these globs asks `protection` as well.
    """
    exact = sorted(CREDENTIAL_FOLDERS | CREDENTIAL_FILES)
    endings = [glob for ending in CREDENTIAL_ENDINGS for glob in _with_ending(ending)]
    return (*exact, *endings, *_environments())


def _with_ending(ending: str) -> Iterator[str]:
    """Names with an ending, but for the public halves of keys."""
    public = [end.removesuffix(ending) for end in PUBLIC_ENDINGS if end.endswith(ending)]
    if not public:
        yield f"*{ending}"
        return
    for suffix, before in _other_endings(public):
        yield f"*[!{before}]{suffix}{ending}"
        yield f"{suffix}{ending}"


def _environments() -> Iterator[str]:
    """`.env.local` and its like, but for templates: their last part is a word of the list."""
    words = [f".{word}" for word in TEMPLATES]
    for suffix, before in _other_endings(words):
        # The name must not end in what `protection` strips: it would then be about another name.
        yield f".env.*[!{before}{'' if suffix else '. '}]{suffix}"
        if suffix and f".{suffix}" not in words:
            yield f".env.{suffix}"


def _other_endings(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """How texts end that end in none of the words: a piece, and the characters that do not stand before it."""
    before: dict[str, set[str]] = {}
    for word in words:
        for start in range(len(word)):
            before.setdefault(word[start + 1 :], set()).add(word[start])
    for suffix in sorted(before):
        yield suffix, "".join(sorted(before[suffix]))
